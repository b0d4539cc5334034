// fagen: a gate's verdicts as a table, as JSON and as JUnit XML.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gate_report.h"
#include "lab/time/time_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace fagen::lab {

static std::string_view wordOf(Verdict verdict) {
  switch (verdict) {
  case Verdict::Pass:
    return "pass";
  case Verdict::NotRequired:
    return "none";
  case Verdict::Fail:
    return "FAIL";
  case Verdict::Skipped:
    return "skip";
  case Verdict::NotReached:
    break;
  }
  return "-";
}

std::string gateTable(const GateReport &report) {
  std::vector<TextTable::Column> columns = {{"variant"}, {"target"}};
  for (int stage = 0; stage < kStages; ++stage)
    columns.push_back({std::string(nameOf(static_cast<Stage>(stage)))});
  TextTable table(columns);
  for (const GatedVariant &variant : report.variants) {
    std::vector<std::string> cells = {variant.row->variant, variant.row->target};
    for (const StageResult &stage : variant.stages)
      cells.emplace_back(wordOf(stage.verdict));
    table.add(cells);
  }
  return table.text();
}

std::string gateReasons(const GateReport &report) {
  std::string failed;
  std::vector<std::pair<std::string, int>> skipped; // in the order in which they came up
  for (const GatedVariant &variant : report.variants)
    for (int stage = 0; stage < kStages; ++stage) {
      const StageResult &result = variant.stages[stage];
      std::string_view name = nameOf(static_cast<Stage>(stage));
      if (result.verdict == Verdict::Fail)
        failed += fmt::format("{} on {} fails {}: {}\n", variant.row->variant, variant.row->target, name, result.why);
      if (result.verdict != Verdict::Skipped)
        continue;
      std::string reason = fmt::format("{}: {}", name, result.why);
      auto known = std::find_if(skipped.begin(), skipped.end(), [&](auto &entry) { return entry.first == reason; });
      if (known == skipped.end())
        known = skipped.insert(skipped.end(), {reason, 0});
      ++known->second;
    }
  std::string text = failed;
  for (const auto &[reason, count] : skipped)
    text += fmt::format("skipped for {} {}: {}\n", count, count == 1 ? "variant" : "variants", reason);
  return text;
}

Json gateJson(const GateReport &report, const GateOptions &options) {
  Json json{{"passed", report.passed(options)}, {"strict", options.strict},           {"suite", options.check.suite},
            {"seed", options.check.seed},       {"device", options.check.deviceFlag}, {"variants", Json::array()}};
  for (const GatedVariant &variant : report.variants) {
    Json entry{{"variant", variant.row->variant},
               {"target", variant.row->target},
               {"kernel", variant.set->table()->kernel},
               {"passed", !variant.has(Verdict::Fail) && !(options.strict && variant.has(Verdict::Skipped))},
               {"stages", Json::array()}};
    for (int stage = 0; stage < kStages; ++stage) {
      const StageResult &result = variant.stages[stage];
      static constexpr std::string_view kWords[] = {"pass", "not required", "fail", "skipped", "not reached"};
      entry["stages"].push_back({{"stage", nameOf(static_cast<Stage>(stage))},
                                 {"verdict", kWords[static_cast<size_t>(result.verdict)]},
                                 {"why", result.why}});
    }
    json["variants"].push_back(entry);
  }
  Json gates = Json::object();
  for (const GatedVariant &variant : report.variants) {
    Json texts = Json::array();
    for (const Gate &gate : variant.set->gates())
      texts.push_back(gate.text);
    gates[variant.set->table()->kernel] = texts;
  }
  json["require"] = gates;
  json["time"] = timeJson(report.times, options.time);
  if (!report.steady.results.empty()) {
    TimeOptions steady = options.time;
    steady.state = PowerState::Steady;
    json["steady"] = timeJson(report.steady, steady);
  }
  return json;
}

static std::string escaped(const std::string &text) {
  std::string xml;
  for (char letter : text)
    switch (letter) {
    case '<':
      xml += "&lt;";
      break;
    case '>':
      xml += "&gt;";
      break;
    case '&':
      xml += "&amp;";
      break;
    case '"':
      xml += "&quot;";
      break;
    case '\n':
      xml += "&#10;";
      break;
    default: // other control characters are not allowed in XML
      xml += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
  return xml;
}

/// "" where the stage passed.
static std::string junitOutcome(const StageResult &result, bool strict) {
  std::string why = escaped(result.why);
  switch (result.verdict) {
  case Verdict::Pass:
  case Verdict::NotRequired:
    return "";
  case Verdict::Fail:
    return fmt::format("<failure message=\"{}\"/>", why);
  case Verdict::Skipped:
    return strict ? fmt::format("<failure message=\"skipped: {}\"/>", why)
                  : fmt::format("<skipped message=\"{}\"/>", why);
  case Verdict::NotReached:
    break;
  }
  return "<skipped message=\"an earlier stage failed\"/>";
}

std::string gateJUnit(const GateReport &report, const GateOptions &options) {
  struct Suite {
    std::string cases;
    int tests = 0, failures = 0, skipped = 0;
  };
  std::map<std::string, Suite> suites;
  for (const GatedVariant &variant : report.variants) {
    Suite &suite = suites[variant.set->table()->kernel];
    for (int stage = 0; stage < kStages; ++stage) {
      std::string outcome = junitOutcome(variant.stages[stage], options.strict);
      ++suite.tests;
      suite.failures += outcome.starts_with("<failure");
      suite.skipped += outcome.starts_with("<skipped");
      suite.cases +=
          fmt::format("    <testcase classname=\"{}.{}\" name=\"{}\">{}</testcase>\n", escaped(variant.row->variant),
                      variant.row->target, nameOf(static_cast<Stage>(stage)), outcome);
    }
  }
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"fagen-run gate\">\n";
  for (const auto &[kernel, suite] : suites)
    xml += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n{}  </testsuite>\n",
                       escaped(kernel), suite.tests, suite.failures, suite.skipped, suite.cases);
  return xml + "</testsuites>\n";
}

} // namespace fagen::lab
