// fagen: the report's gates: what passed, failed or could not be judged, and why.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "section.h"

#include <algorithm>
#include <fmt/format.h>

namespace fagen::lab::page {

static constexpr const char *kGatesRemedy = "fagen-run gate DIR --output FILE writes such a file";

namespace {

/// As fagen-run gate prints them; a verdict that is not known is an error.
std::string wordOf(const Field &stage) {
  static constexpr std::pair<const char *, const char *> kWords[] = {
      {"pass", "pass"}, {"not required", "none"}, {"fail", "FAIL"}, {"skipped", "skip"}, {"not reached", "-"}};
  const std::string verdict = stage["verdict"].text();
  for (const auto &[name, word] : kWords)
    if (verdict == name)
      return word;
  stage["verdict"].fail(fmt::format("is '{}'; known are pass, not required, fail, skipped, not reached", verdict));
}

std::string tableOf(const std::vector<Field> &variants, const std::string &caption) {
  std::vector<HtmlTable::Column> columns = {{"variant"}, {"target"}};
  for (const Field &stage : variants.front()["stages"].items())
    columns.push_back({stage["stage"].text()});
  HtmlTable table(caption, columns);
  for (const Field &variant : variants) {
    std::vector<std::string> cells = {variant["variant"].text(), variant["target"].text()};
    for (const Field &stage : variant["stages"].items())
      cells.push_back(wordOf(stage));
    if (cells.size() != columns.size())
      variant["stages"].fail("has other stages than the first variant");
    table.add(cells);
  }
  return table.markup();
}

/// Failures one by one; skipped stages once for each reason.
std::vector<std::string> reasonsOf(const std::vector<Field> &variants) {
  std::vector<std::string> failures;
  std::vector<std::pair<std::string, size_t>> skipped;
  for (const Field &variant : variants)
    for (const Field &stage : variant["stages"].items()) {
      const std::string reason = stage["stage"].text() + ": " + stage.textOr("why", "");
      if (wordOf(stage) == "FAIL")
        failures.push_back(
            fmt::format("{} on {} fails {}", variant["variant"].text(), variant["target"].text(), reason));
      if (wordOf(stage) != "skip")
        continue;
      auto known = std::find_if(skipped.begin(), skipped.end(), [&](auto &entry) { return entry.first == reason; });
      if (known == skipped.end())
        known = skipped.insert(skipped.end(), {reason, 0});
      ++known->second;
    }
  for (const auto &[reason, count] : skipped)
    failures.push_back(fmt::format("skipped for {}: {}", counted(count, "variant"), reason));
  return failures;
}

std::vector<std::string> requirementsOf(const Field &gate) {
  std::vector<std::string> lines;
  if (gate.has("require"))
    for (const auto &[kernel, texts] : gate["require"].members()) {
      std::string line = kernel + " requires";
      for (const Field &text : texts.items())
        line += (line.ends_with("requires") ? " " : "; ") + text.text();
      lines.push_back(line.ends_with("requires") ? kernel + " requires nothing" : line);
    }
  return lines;
}

} // namespace

Section gatesSection(const std::vector<std::string> &files) {
  if (files.empty())
    return missingSection("gates", "Gates", "fagen-run gate DIR --output gates.json");
  Section section{"gates", "Gates", "", "", {}, false};
  section.body +=
      paragraph("Stage by stage, until the first that fails. skip: could not be judged on that machine, which "
                "is not a pass; none: the spec asks for nothing; -: not reached.");
  size_t passed = 0, count = 0;
  for (const std::string &file : files) {
    const Field result = Field::read(file, kGatesRemedy);
    const Field gate = result["gate"];
    const std::vector<Field> variants = gate["variants"].items();
    section.body += provenance(result);
    if (variants.empty())
      continue;
    section.body += tableOf(variants, fmt::format("{}{}", gate["passed"].truth() ? "PASS" : "FAIL",
                                                  gate.isTrue("strict") ? ", a skipped stage counts as failed" : ""));
    section.body += bullets(reasonsOf(variants), "warnings") + bullets(requirementsOf(gate));
    for (const Field &variant : variants)
      passed += variant["passed"].truth();
    count += variants.size();
  }
  section.summary = fmt::format("{} of {} passed", passed, counted(count, "variant"));
  return section;
}

} // namespace fagen::lab::page
