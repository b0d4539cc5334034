// fagen: reads what `fagen --emit=mutants` wrote.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/support/json_file.h"
#include "mutation.h"

#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace fagen::lab {

using nlohmann::json;

std::string MutantCase::text() const {
  std::string place = fmt::format("site {}, {} ({})", site, what, op);
  switch (mutation.action) {
  case emulator::Mutation::Disable:
    return place + " disabled";
  case emulator::Mutation::Weaken:
    return place + (what.starts_with("copy_wait") ? fmt::format(" weakened to {}", mutation.pending)
                                                  : std::string(" weakened to a warp barrier"));
  case emulator::Mutation::Move:
    return place + fmt::format(" moved {} {}", mutation.later ? "after" : "before", over);
  }
  return place;
}

namespace {

emulator::Mutation::Action actionOf(const std::string &word) {
  if (word == "disable")
    return emulator::Mutation::Disable;
  if (word == "weaken")
    return emulator::Mutation::Weaken;
  if (word == "move")
    return emulator::Mutation::Move;
  throw UserError(fmt::format("action is '{}'; known: disable, weaken, move", word));
}

/// "copy_wait 2", "barrier warp".
void setCall(emulator::Mutation &mutation, const std::string &what) {
  const size_t blank = what.find(' ');
  const std::string kind = what.substr(0, blank), detail = blank == std::string::npos ? "" : what.substr(blank + 1);
  if (kind == "copy_wait") {
    mutation.call = emulator::Mutation::CopyWait;
    mutation.pending = static_cast<unsigned>(parseInteger(detail, "the count of copy_wait"));
  } else if (what == "barrier cta") {
    mutation.call = emulator::Mutation::CtaBarrier;
  } else if (what == "barrier warp") {
    mutation.call = emulator::Mutation::WarpBarrier;
  } else {
    throw UserError(fmt::format("the emulator cannot change '{}'", what));
  }
}

MutantCase readMutant(const json &value) {
  MutantCase mutant;
  mutant.site = value.at("site").get<unsigned>();
  mutant.what = value.at("what").get<std::string>();
  mutant.op = value.at("op").get<std::string>();
  mutant.spec = value.value("spec", "");
  mutant.over = value.value("over", "");
  mutant.why = value.value("why", "");
  const std::string verdict = value.at("verdict").get<std::string>();
  if (verdict != "needed" && verdict != "redundant")
    throw UserError(fmt::format("verdict is '{}'; known: needed, redundant", verdict));
  mutant.isNeeded = verdict == "needed";
  mutant.mutation.action = actionOf(value.at("action").get<std::string>());
  mutant.mutation.line = value.at("line").get<int>();
  setCall(mutant.mutation, mutant.what);
  mutant.mutation.pending = value.value("pending", mutant.mutation.pending);
  mutant.mutation.target = value.value("target", 0);
  mutant.mutation.later = value.value("later", false);
  return mutant;
}

MutantKernel readKernel(const json &value) {
  MutantKernel kernel;
  kernel.variant = value.at("variant").get<std::string>();
  kernel.policy = value.at("policy").get<std::string>();
  kernel.symbol = value.at("symbol").get<std::string>();
  for (const json &mutant : value.at("mutants"))
    kernel.mutants.push_back(readMutant(mutant));
  return kernel;
}

} // namespace

std::vector<MutantKernel> readMutants(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw UserError(fmt::format("cannot read {}; fagen SPEC --emit=mutants -o FILE writes one", path));
  return readJsonFile<json>(path, "what fagen SPEC --emit=mutants writes", [](const json &text) {
    std::vector<MutantKernel> kernels;
    for (const json &kernel : text.at("kernels"))
      try {
        kernels.push_back(readKernel(kernel));
      } catch (const json::exception &error) {
        throw UserError(fmt::format("kernel {}: {}", kernels.size(), reasonOf(error)));
      } catch (const UserError &error) {
        throw UserError(fmt::format("kernel {}: {}", kernels.size(), error.what()));
      }
    return kernels;
  });
}

} // namespace fagen::lab
