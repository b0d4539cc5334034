// fagen: the report's breakdown: where warps spend their time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "section.h"
#include "stack_chart.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace fagen::lab::page {

static constexpr const char *kBreakdownRemedy =
    "fagen-run breakdown INSTRUMENTED --plain DIR --output FILE writes such a file";
static constexpr size_t kColumns = 12;

namespace {

/// "1,8,8,512,512,64 mask=causal lse=off" as "B 1, H 8, S 512, d 64 causal".
std::string caseText(const std::string &text) {
  const size_t space = text.find(' ');
  return problemText(text.substr(0, space)) + (text.find("mask=causal") != std::string::npos ? " causal" : "");
}

/// Components of all results, in the order of the first that has each.
std::vector<std::string> componentsOf(const std::vector<Field> &results) {
  std::vector<std::string> names;
  for (const Field &result : results) {
    size_t at = 0; // of the next component that the result has: where a new name is put
    for (const Field &stage : result["stages"].items()) {
      const std::string name = stage["name"].text();
      const auto known = std::find(names.begin(), names.end(), name);
      if (known != names.end())
        at = static_cast<size_t>(known - names.begin()) + 1;
      else
        names.insert(names.begin() + static_cast<std::ptrdiff_t>(at++), name);
    }
  }
  return names;
}

Stack stackOf(const Field &result, size_t number) {
  Stack stack{fmt::format("{}  {}, {}", number, result["variant"].text(), caseText(result["case"].text())), {}};
  double sum = 0;
  for (const Field &stage : result["stages"].items()) {
    const double share = stage["share"]["median"].number();
    if (share < 0)
      stage["share"]["median"].fail(fmt::format("is {}, not a share", share));
    stack.parts.push_back({stage["name"].text(), share});
    sum += share;
  }
  for (StackPart &part : stack.parts) // medians of shares need not add up
    part.share /= std::max(1.0, sum);
  return stack;
}

std::string costText(const Field &result) {
  if (!result.has("cost"))
    return "-";
  const Field cost = result["cost"];
  const std::vector<Field> interval = cost["interval"].items();
  if (interval.size() != 2)
    cost["interval"].fail("is not two numbers");
  return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f})", 100 * (cost["ratio"].number() - 1),
                     100 * (interval[0].number() - 1), 100 * (interval[1].number() - 1));
}

/// The share of a component, or nothing.
std::string shareText(const Field &result, const std::string &component) {
  for (const Field &stage : result["stages"].items())
    if (stage["name"].text() == component)
      return fmt::format("{:.1f}", 100 * stage["share"]["median"].number());
  return "";
}

/// What each launch was, and what its timestamps cost.
std::string launchTable(const std::vector<Field> &results, const std::string &clock) {
  HtmlTable table("Medians over warps; span in " + clock, {{"no.", true},
                                                           {"kernel"},
                                                           {"problem"},
                                                           {"warps", true},
                                                           {"span", true},
                                                           {"sum / span, %", true},
                                                           {"plain us", true},
                                                           {"instrumented us", true},
                                                           {"cost of the timestamps", true}});
  for (size_t i = 0; i < results.size(); ++i) {
    const Field &result = results[i];
    const bool isTold = result.has("cost");
    table.add({fmt::format("{}", i + 1), result["variant"].text(), caseText(result["case"].text()),
               numberText(result["warps"].number()), numberText(result["span"]["median"].number()),
               fmt::format("{:.1f}", 100 * result["sum_over_span"]["median"].number()),
               isTold ? numberText(result["cost"]["plain_us"].number()) : "-",
               isTold ? numberText(result["cost"]["instrumented_us"].number()) : "-", costText(result)});
  }
  return table.markup();
}

/// A row for each component and a column for each launch; of many launches several tables, which fit on paper.
std::string shareTables(const std::vector<Field> &results, const std::vector<std::string> &components) {
  std::string tables;
  for (size_t begin = 0; begin < results.size(); begin += kColumns) {
    const size_t end = std::min(begin + kColumns, results.size());
    std::vector<HtmlTable::Column> columns = {{"component"}};
    for (size_t i = begin; i < end; ++i)
      columns.push_back({fmt::format("{}", i + 1), true});
    HtmlTable table("Share of a warp's time in %, by the number of the launch", columns);
    for (size_t c = 0; c < components.size(); ++c) {
      std::vector<std::string> cells = {partKey(c) + " " + components[c]};
      for (size_t i = begin; i < end; ++i)
        cells.push_back(shareText(results[i], components[c]));
      table.add(cells);
    }
    tables += table.markup();
  }
  return tables;
}

/// What went wrong, result by result.
std::vector<std::string> failuresOf(const std::vector<Field> &results) {
  std::vector<std::string> lines;
  for (const Field &result : results) {
    const std::string name = result["variant"].text() + ", " + caseText(result["case"].text()) + ": ";
    for (const Field &failure : result["failures"].items())
      lines.push_back(name + failure.text());
    if (!result["adds_up"].truth())
      lines.push_back(name + "stages do not add up to their warp's span");
  }
  return lines;
}

} // namespace

Section breakdownSection(const std::vector<std::string> &files) {
  if (files.empty())
    return missingSection("breakdown", "Breakdown",
                          "fagen-run breakdown INSTRUMENTED --plain DIR --output breakdown.json");
  Section section{"breakdown", "Breakdown", "", "", {}, false};
  section.body += paragraph("Where a warp of an instrumented kernel spends its time, from its first clock to its last. "
                            "A letter names each component; the table has all numbers.");
  size_t kernels = 0;
  for (const std::string &file : files) {
    const Field head = Field::read(file, kBreakdownRemedy);
    const std::vector<Field> results = head["breakdown"].items();
    const std::vector<std::string> components = componentsOf(results);
    std::vector<Stack> stacks;
    for (const Field &result : results)
      stacks.push_back(stackOf(result, stacks.size() + 1));
    const Chart chart = stackChart(fmt::format("breakdown-{}", section.charts.size() + 1),
                                   "Share of a warp's time by component", components, stacks);
    section.body += provenance(head) + sideBySide(chart, shareTables(results, components)) +
                    launchTable(results, head["clock"].text());
    section.body += bullets(failuresOf(results), "warnings");
    section.charts.push_back(chart);
    kernels += results.size();
  }
  section.summary = kernels == 1 ? "1 launch" : fmt::format("{} launches", kernels);
  return section;
}

} // namespace fagen::lab::page
