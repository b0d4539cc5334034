// fagen: the report's resources: registers, spills, shared memory, occupancy.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bar_chart.h"
#include "section.h"

#include <fmt/format.h>

namespace fagen::lab::page {

static constexpr const char *kResourcesRemedy =
    "fagen SPEC -o DIR --check-resources writes such a file, DIR/KERNEL/resources.json";

/// Nothing where the compiler that wrote the file did not say.
static std::string toldNumber(const Field &row, const std::string &key) {
  return row.has(key) ? fmt::format("{:.0f}", row[key].number()) : "-";
}

/// In percent.
static double occupancyOf(const Field &row) {
  const double occupancy = row["occupancy"].number();
  if (occupancy < 0 || occupancy > 1)
    row["occupancy"].fail(fmt::format("is {}, not from 0 to 1", occupancy));
  return 100 * occupancy;
}

Section resourcesSection(const std::vector<std::string> &files) {
  if (files.empty())
    return missingSection("resources", "Resources",
                          "fagen SPEC -o DIR --check-resources, as DIR/KERNEL/resources.json");
  Section section{"resources", "Resources", "", "", {}, false};
  section.body +=
      paragraph("As ptxas counts them for the target. Occupancy is warps that fit an SM at once over the most "
                "it can hold; the last column says what limits it.");
  size_t count = 0, spilling = 0;
  for (const std::string &file : files) {
    const Field result = Field::read(file, kResourcesRemedy);
    HtmlTable table(file, {{"variant"},
                           {"target"},
                           {"registers", true},
                           {"spilled B", true},
                           {"shared B", true},
                           {"threads", true},
                           {"CTAs an SM", true},
                           {"occupancy, %", true},
                           {"limited by"}});
    std::vector<Bar> bars;
    for (const Field &row : result.items()) {
      const std::string variant = row["variant"].text();
      const double spilled = row["spill_bytes"].number();
      const bool isTold = row.has("occupancy");
      if (isTold)
        bars.push_back({variant, occupancyOf(row), {}, true});
      table.add({variant, row["target"].text(), fmt::format("{:.0f}", row["registers"].number()),
                 fmt::format("{:.0f}", spilled), fmt::format("{:.0f}", row["shared_bytes"].number()),
                 toldNumber(row, "threads"), toldNumber(row, "ctas_per_sm"),
                 isTold ? fmt::format("{:.1f}", bars.back().value) : "-", row.textOr("limit", "-")});
      spilling += spilled > 0;
      ++count;
    }
    if (bars.empty()) {
      section.body += table.markup();
      continue;
    }
    const Chart chart =
        barChart(fmt::format("occupancy-{}", section.charts.size() + 1), "Occupancy: " + file, "occupancy, %", bars);
    section.body += sideBySide(chart, table.markup());
    section.charts.push_back(chart);
  }
  section.summary = counted(count, "kernel") + fmt::format(", {} with spills", spilling);
  return section;
}

} // namespace fagen::lab::page
