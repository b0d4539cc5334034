// fagen: results as tables and JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "check_report.h"
#include "lab/kernels/sum_loss.h"

#include <algorithm>
#include <fmt/format.h>

namespace fagen::lab {

namespace {

/// The results of one row, in the order of their first case.
struct VariantSummary {
  const CaseResult *worst = nullptr; ///< nearest to, or furthest beyond, its bound
  int64_t cases = 0, failed = 0;
  double cosine = 0, lseError = 0, lseUsed = 0;
};

double strain(const Measured &measured) { return measured.bound > 0 ? measured.maxError / measured.bound : 0; }

std::vector<std::pair<const fagen_row *, VariantSummary>> summarizeVariants(const CheckReport &report) {
  std::vector<std::pair<const fagen_row *, VariantSummary>> summaries;
  for (const CaseResult &result : report.results) {
    auto found =
        std::find_if(summaries.begin(), summaries.end(), [&](auto &entry) { return entry.first == result.row; });
    if (found == summaries.end())
      found = summaries.insert(summaries.end(), {result.row, {}});
    VariantSummary &summary = found->second;
    const Measured &measured = result.measured;
    ++summary.cases;
    summary.failed += !measured.failures.empty();
    summary.cosine = std::max(summary.cosine, measured.cosine);
    summary.lseError = std::max(summary.lseError, measured.lseError);
    summary.lseUsed = std::max(summary.lseUsed, measured.lseUsed);
    if (!summary.worst || strain(measured) > strain(summary.worst->measured))
      summary.worst = &result;
  }
  return summaries;
}

} // namespace

std::string checkTable(const CheckReport &report) {
  TextTable table({{"variant"},
                   {"target"},
                   {"cases", true},
                   {"max |O - ref|", true},
                   {"allowed", true},
                   {"cosine", true},
                   {"LSE", true},
                   {"result"}});
  for (const auto &[row, summary] : summarizeVariants(report)) {
    const Measured &worst = summary.worst->measured;
    table.add({row->variant, row->target, std::to_string(summary.cases), fmt::format("{:.2e}", worst.maxError),
               fmt::format("{:.2e}", worst.bound), fmt::format("{:.1e}", summary.cosine),
               fmt::format("{:.1e}", summary.lseError),
               summary.failed ? fmt::format("FAIL ({})", summary.failed) : "PASS"});
  }
  return table.text();
}

std::string checkFailures(const CheckReport &report, const CheckOptions &options, size_t limit) {
  std::string text;
  size_t shown = 0, total = 0;
  for (const Failure &failure : report.failures) {
    ++total;
    if (shown < limit && ++shown)
      text += fmt::format("{}: {}\n", failure.criterion, failure.message);
  }
  for (const CaseResult &result : report.results) {
    if (result.measured.failures.empty())
      continue;
    ++total;
    if (shown >= limit)
      continue;
    ++shown;
    text += fmt::format("{} on \"{}\"\n", result.row->variant, formatCase(result.testCase));
    for (const Failure &failure : result.measured.failures)
      text += fmt::format("  {}: {}\n", failure.criterion, failure.message);
    text += fmt::format("  again: {}\n", reproLine(result, options));
  }
  if (total > shown)
    text += fmt::format("and {} more\n", total - shown);
  return text;
}

/// One side of a finding: line of the kernel, op of the IR, line of the spec, thread; what is not known is left out.
static Json accessJson(int line, const std::string &op, const std::string &spec, int thread) {
  Json access{{"line", line}};
  if (!op.empty())
    access["op"] = op;
  if (!spec.empty())
    access["spec"] = spec;
  if (thread >= 0)
    access["thread"] = thread;
  return access;
}

static Json failuresJson(const std::vector<Failure> &failures) {
  Json list = Json::array();
  for (const Failure &failure : failures) {
    Json entry{{"criterion", failure.criterion}, {"message", failure.message}};
    if (const emulator::Finding *finding = failure.finding.get()) {
      entry["kind"] = finding->kind;
      entry["file"] = finding->file;
      entry["access"] = accessJson(finding->line, finding->op, finding->spec, finding->thread);
      if (finding->otherLine)
        entry["other"] = accessJson(finding->otherLine, finding->otherOp, finding->otherSpec, finding->otherThread);
    }
    list.push_back(entry);
  }
  return list;
}

Json checkJson(const CheckReport &report, const CheckOptions &options) {
  Json json{{"passed", report.passed()},
            {"suite", options.cases.empty() ? options.suite : "given"},
            {"part", options.part},
            {"parts", options.parts},
            {"seed", options.seed},
            {"seeds", options.seeds},
            {"device", options.deviceFlag},
            {"skipped", report.skipped},
            {"too_large", report.tooLarge},
            {"tolerances",
             {{"plain_factor", kTolerances.plainFactor},
              {"ulps", kTolerances.ulps},
              {"cosine", kTolerances.cosine},
              {"lse", kTolerances.lse},
              {"lse_loss", {{"products", kTensorSum.products}, {"bits", kTensorSum.bits}}},
              {"runs", options.runs}}},
            {"failures", failuresJson(report.failures)},
            {"variants", Json::array()},
            {"cases", Json::array()}};
  for (const auto &[row, summary] : summarizeVariants(report))
    json["variants"].push_back({{"variant", row->variant},
                                {"target", row->target},
                                {"cases", summary.cases},
                                {"failed", summary.failed},
                                {"max_error", summary.worst->measured.maxError},
                                {"bound", summary.worst->measured.bound},
                                {"cosine", summary.cosine},
                                {"lse_error", summary.lseError},
                                {"lse_used", summary.lseUsed},
                                {"passed", summary.failed == 0}});
  for (const CaseResult &result : report.results) {
    const Measured &m = result.measured;
    Json entry{{"variant", result.row->variant},
               {"target", result.row->target},
               {"case", formatCase(result.testCase)},
               {"max_error", m.maxError},
               {"bound", m.bound},
               {"cosine", m.cosine},
               {"lse_error", m.lseError},
               {"lse_used", m.lseUsed},
               {"undecided_rows", m.undecided},
               {"digest", m.digest},
               {"first_batch_digest", m.firstBatchDigest},
               {"seconds", result.seconds},
               {"passed", m.failures.empty()}};
    if (!result.testCase.form.empty()) {
      entry["form"] = result.testCase.form;
      entry["args"] = result.numbers;
    }
    if (!m.failures.empty()) {
      entry["failures"] = failuresJson(m.failures);
      entry["again"] = reproLine(result, options);
    }
    json["cases"].push_back(entry);
  }
  return json;
}

} // namespace fagen::lab
