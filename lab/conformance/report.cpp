// fagen: conformance results as a table and as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conformance.h"

#include <fmt/format.h>

namespace fagen::lab {

static std::string verdict(const ConformanceCase &c, const Measurement &m) {
  if (m.skipped)
    return "no such GPU";
  if (!m.failure.empty())
    return "failed";
  if (c.exact())
    return m.wrong ? fmt::format("{} wrong", m.wrong) : "exact";
  return fmt::format("{:.3f} ulp{}, {:.2f} of bound{}", m.maxUlp,
                     c.isAbsolute ? fmt::format(", {:.2e}", m.maxAbsolute) : "", m.maxOfBound,
                     m.wrong ? fmt::format(", {} beyond", m.wrong) : "");
}

std::string conformanceTable(const ConformanceReport &report) {
  std::vector<TextTable::Column> columns = {{"function"}, {"values", true}};
  for (const std::string &device : report.devices)
    columns.push_back({device});
  if (report.devices.size() > 1)
    columns.push_back({"different", true});
  columns.push_back({"result"});
  TextTable table(columns);
  for (const CaseReport &result : report.cases) {
    std::vector<std::string> cells = {result.testCase->name, std::to_string(result.devices[0].values)};
    for (const Measurement &m : result.devices)
      cells.push_back(verdict(*result.testCase, m));
    if (report.devices.size() > 1)
      cells.push_back(std::to_string(result.different));
    cells.push_back(result.passed() ? "PASS" : "FAIL");
    table.add(std::move(cells));
  }
  std::string text = table.text();
  for (const ModelReport &model : report.models) {
    text += fmt::format("\n{} on {} adds like\n", model.name, report.devices[0]);
    for (size_t i = 0; i < 3 && i < model.candidates.size(); ++i)
      text += fmt::format("  {}: {}{} of {} differ\n", model.candidates[i].name,
                          model.candidates[i].stopped ? "at least " : "", model.candidates[i].different, model.values);
  }
  return text;
}

std::string conformanceFailures(const ConformanceReport &report) {
  std::string text;
  for (const CaseReport &result : report.cases)
    for (size_t d = 0; d < result.devices.size(); ++d) {
      const Measurement &m = result.devices[d];
      if (m.failure.empty() && m.wrong == 0)
        continue;
      text += fmt::format("{} on {}: {}\n", result.testCase->name, report.devices[d],
                          m.failure.empty() ? fmt::format("{} of {} words are wrong", m.wrong, m.values) : m.failure);
      for (const std::string &example : m.examples)
        text += fmt::format("  {}\n", example);
    }
  return text;
}

static Json measurementJson(const ConformanceCase &c, const std::string &device, const Measurement &m) {
  Json json{{"device", device}, {"values", m.values}, {"wrong", m.wrong}, {"hash", fmt::format("{:016x}", m.hash)}};
  if (!c.exact()) {
    json["max_ulp"] = m.maxUlp;
    json["max_absolute"] = m.maxAbsolute;
    json["max_of_bound"] = m.maxOfBound;
  }
  if (!m.failure.empty())
    json["failure"] = m.failure;
  if (!m.examples.empty())
    json["examples"] = m.examples;
  return json;
}

static Json modelJson(const ModelReport &model) {
  Json best = Json::array();
  for (size_t i = 0; i < 8 && i < model.candidates.size(); ++i) {
    const ModelReport::Candidate &candidate = model.candidates[i];
    best.push_back({{"model", candidate.name}, {"different", candidate.different}, {"stopped", candidate.stopped}});
  }
  return {{"name", model.name}, {"values", model.values}, {"tried", model.candidates.size()}, {"best", best}};
}

Json conformanceJson(const ConformanceReport &report) {
  Json functions = Json::array();
  for (const CaseReport &result : report.cases) {
    const ConformanceCase &c = *result.testCase;
    Json entry{{"name", c.name}, {"functions", c.functions}, {"inputs", c.inputs}};
    entry["bound"] = c.exact() ? Json("exact") : Json(c.bound);
    entry["is_absolute"] = c.isAbsolute;
    entry["results"] = Json::array();
    for (size_t d = 0; d < result.devices.size(); ++d)
      entry["results"].push_back(measurementJson(c, report.devices[d], result.devices[d]));
    if (report.devices.size() > 1)
      entry["different"] = result.different;
    entry["passed"] = result.passed();
    functions.push_back(std::move(entry));
  }
  Json models = Json::array();
  for (const ModelReport &model : report.models)
    models.push_back(modelJson(model));
  return {{"seed", report.seed},       {"rounds", report.rounds}, {"devices", report.devices},
          {"passed", report.passed()}, {"functions", functions},  {"models", models}};
}

} // namespace fagen::lab
