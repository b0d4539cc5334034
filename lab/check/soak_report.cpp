// fagen: what a soak found, as a table, as lines and as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/support/text_table.h"
#include "soak.h"

#include <fmt/format.h>

namespace fagen::lab {

std::string soakTable(const SoakReport &report) {
  TextTable table(
      {{"variant"}, {"target"}, {"runs", true}, {"other bits", true}, {"random launches", true}, {"result"}});
  for (const SoakedVariant &v : report.variants)
    table.add({v.row->variant, v.row->target, std::to_string(v.repeats), std::to_string(v.different),
               std::to_string(v.launches), v.failures.empty() ? "PASS" : "FAIL"});
  return table.text();
}

std::string soakFailures(const SoakReport &report) {
  std::string text;
  for (const Failure &failure : report.failures)
    text += fmt::format("{}: {}\n", failure.criterion, failure.message);
  for (const SoakedVariant &v : report.variants) {
    if (v.failures.empty())
      continue;
    text += fmt::format("{}\n", v.row->variant);
    for (const Failure &failure : v.failures)
      text += fmt::format("  {} on {}\n", failure.criterion, failure.message);
    text += fmt::format("  again: {}\n", v.again);
  }
  return text;
}

static Json soakFailuresJson(const std::vector<Failure> &failures) {
  Json list = Json::array();
  for (const Failure &failure : failures)
    list.push_back({{"criterion", failure.criterion}, {"message", failure.message}});
  return list;
}

Json soakJson(const SoakReport &report, const SoakOptions &options) {
  const auto total = [&](int64_t SoakedVariant::*count) {
    int64_t sum = 0;
    for (const SoakedVariant &v : report.variants)
      sum += v.*count;
    return sum;
  };
  Json json{
      {"passed", report.passed()},
      {"device", options.deviceFlag},
      {"seed", options.seed},
      {"repeats", options.repeats},
      {"patience_s", options.patience},
      {"limits", {{"batch", options.limits.batch}, {"heads", options.limits.heads}, {"rows", options.limits.rows}}},
      {"loaded", report.loaded},
      {"device_lost", report.deviceLost},
      {"runs", total(&SoakedVariant::repeats)},
      {"runs_with_other_bits", total(&SoakedVariant::different)},
      {"random_launches", total(&SoakedVariant::launches)},
      {"skipped", report.skipped},
      {"failures", soakFailuresJson(report.failures)},
      {"variants", Json::array()}};
  for (const SoakedVariant &v : report.variants) {
    Json entry{{"variant", v.row->variant},      {"target", v.row->target},
               {"case", formatCase(v.repeated)}, {"runs", v.repeats},
               {"other_bits", v.different},      {"digest", v.digest},
               {"random_launches", v.launches},  {"seconds", v.seconds},
               {"passed", v.failures.empty()}};
    if (!v.failures.empty()) {
      entry["failures"] = soakFailuresJson(v.failures);
      entry["again"] = v.again;
    }
    json["variants"].push_back(entry);
  }
  return json;
}

} // namespace fagen::lab
