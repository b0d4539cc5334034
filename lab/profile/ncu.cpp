// fagen: counts one launch with Nsight Compute's command line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ncu.h"
#include "lab/support/child_process.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fagen::lab {

static constexpr double kNcuSeconds = 300;

std::vector<std::string> ncuCommand(const std::string &ncu, const std::string &program, const ProfiledRow &row,
                                    const std::vector<std::string> &metrics) {
  const Case &c = row.problem;
  return {ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--cache-control", "none",
          "--kernel-name", row.row->launches[0].symbol, "--launch-skip", fmt::to_string(kProfileWarmups),
          "--launch-count", "1", "--metrics", fmt::format("{}", fmt::join(metrics, ",")),
          // What it profiles:
          program, "profile", row.set->directory().string(), "--counters", "none", "--variant", row.row->variant,
          "--shape", formatShape(c.shape), "--seed", fmt::to_string(row.seed)};
}

namespace {

/// The cells of a line of CSV; quotes inside a cell are doubled.
std::vector<std::string> splitCsv(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      cells.back() += line[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  return cells;
}

/// "1,234.5"; none for "n/a".
std::optional<double> number(std::string text) {
  std::erase(text, ',');
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(value) : std::nullopt;
}

size_t columnOf(const std::vector<std::string> &head, const std::string &name) {
  return static_cast<size_t>(std::find(head.begin(), head.end(), name) - head.begin());
}

/// Kernel name without its parameters.
std::string baseName(const std::string &kernel) { return kernel.substr(0, kernel.find('(')); }

std::string findNcu() {
  if (const char *named = getenv("FAGEN_NCU"); named && *named)
    return named;
  constexpr const char *kToolkit = "/usr/local/cuda/bin/ncu";
  for (const std::string &directory : split(getenv("PATH") ? getenv("PATH") : "", ':'))
    if (std::error_code error; std::filesystem::exists(std::filesystem::path(directory) / "ncu", error))
      return "ncu";
  std::error_code error;
  return std::filesystem::exists(kToolkit, error) ? kToolkit : "ncu";
}

/// The line in which ncu, or its program, says what went wrong.
std::string complaint(const std::string &page, const ChildOutcome &outcome) {
  for (const std::string *text : {&page, &outcome.errors})
    for (const std::string &line : split(*text, '\n'))
      if (line.find("==ERROR==") != std::string::npos || line.find("error:") != std::string::npos)
        return line;
  if (outcome.timedOut)
    return fmt::format("ncu took more than {} s", kNcuSeconds);
  return outcome.signal ? fmt::format("ncu died of signal {}", outcome.signal)
                        : fmt::format("ncu ended with exit code {}", outcome.exitCode);
}

} // namespace

Counters parseNcuPage(const std::string &page, const std::string &symbol, const std::vector<std::string> &metrics) {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> launches;
  for (const std::string &line : split(page, '\n')) {
    if (!line.starts_with('"'))
      continue; // ncu's own talk, or the program's
    std::vector<std::string> cells = splitCsv(line);
    if (head.empty() && columnOf(cells, "Kernel Name") < cells.size())
      head = std::move(cells);
    else if (cells.size() == head.size() && !cells[0].empty()) // the line of units has no ID
      launches.push_back(std::move(cells));
  }
  if (head.empty())
    throw CountersRefused("ncu printed no table with the column 'Kernel Name'");
  if (launches.size() != 1)
    throw CountersRefused(fmt::format("ncu profiled {} launches, not one", launches.size()));
  const std::vector<std::string> &launch = launches.front();
  if (std::string name = baseName(launch[columnOf(head, "Kernel Name")]); name != symbol)
    throw CountersRefused(fmt::format("ncu profiled {}, not {}", name, symbol));
  Counters counters;
  for (const std::string &metric : metrics)
    if (size_t column = columnOf(head, metric); column < head.size())
      if (std::optional<double> value = number(launch[column]))
        counters[metric] = *value;
  if (counters.empty())
    throw CountersRefused("ncu told none of the metrics");
  return counters;
}

Reading countWithNcu(const ProfiledRow &row, const std::vector<std::string> &metrics) {
  std::string page;
  ChildOutcome outcome =
      runChild(ncuCommand(findNcu(), std::filesystem::read_symlink("/proc/self/exe").string(), row, metrics),
               kNcuSeconds, [&](const std::string &line) { page += line + "\n"; });
  if (outcome.exitCode == kNotStarted)
    throw CountersRefused("ncu (Nsight Compute) is not found; FAGEN_NCU can name the file");
  if (!outcome.succeeded())
    throw CountersRefused(complaint(page, outcome));
  return {CounterKind::Ncu, "ncu", parseNcuPage(page, row.row->launches[0].symbol, metrics)};
}

} // namespace fagen::lab
