// fagen: what every command of fagen-run shares.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "lab/device/machine.h"
#include "lab/support/json_file.h"
#include "lab/support/write_file.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <unistd.h>

namespace fagen::lab {

void Command::declare(CLI::App &app) {
  declared = app.add_subcommand(name, summary);
  if (takesKernels)
    declared->add_option("DIR", directories, "generated kernel directories, or a directory of such")->required();
  declared->add_flag("--json", json, "print JSON instead of the table");
  declared->add_option("--output", output, "also write the JSON to this file");
  declared->add_option("--note", notes, "key=value to keep in the JSON: --note commit=1a2b3c");
  addOptions(*declared);
}

Json Command::envelope(const Gpu *gpu) const {
  Json head{{"tool", fmt::format("fagen-run {}", name)}, {"version", FAGEN_VERSION}, {"machine", describeMachine(gpu)}};
  if (takesKernels)
    head["kernels"] = directories;
  if (const char *commit = getenv("FAGEN_COMMIT"); commit && *commit)
    head["notes"]["commit"] = commit;
  for (const std::string &note : notes) {
    size_t equals = note.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UserError(fmt::format("--note '{}' is not key=value", note));
    head["notes"][note.substr(0, equals)] = note.substr(equals + 1);
  }
  return head;
}

void Command::deliver(const std::string &table, const Json &result) const {
  if (json)
    std::cout << printed(result) << '\n';
  else
    std::cout << table;
  flushStandardOutput();
  if (!output.empty())
    writeFile(output, printed(result) + '\n');
}

ProgressLine::ProgressLine() : terminal(isatty(STDERR_FILENO)) {}

void ProgressLine::operator()(size_t done, size_t total, const std::string &what) {
  auto now = std::chrono::steady_clock::now();
  if (terminal) {
    fmt::print(stderr, "\r\033[K");
    if (done < total)
      fmt::print(stderr, "[{}/{}] {}", done + 1, total, what);
    std::fflush(stderr);
  } else if (done < total && now - last >= std::chrono::seconds(10)) {
    last = now;
    fmt::print(stderr, "[{}/{}] {}\n", done + 1, total, what);
  }
}

void requireVariants(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::vector<std::string> &wanted) {
  std::vector<std::string> known;
  for (const auto &set : sets)
    for (const fagen_row *row : set->rows())
      known.emplace_back(row->variant);
  for (const std::string &name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end())
      continue;
    std::string near = nearest(name, known);
    throw UserError(fmt::format("unknown variant '{}'; {}fagen-run list shows all {}", name,
                                near.empty() ? "" : fmt::format("did you mean '{}'? ", near), known.size()));
  }
}

} // namespace fagen::lab
