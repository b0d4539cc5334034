// fagen: fagen-run mutate: changes each barrier and wait at run time, and compares with what the compiler said.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"
#include "lab/check/mutation.h"

#include <algorithm>
#include <fmt/format.h>

namespace fagen::lab {

namespace {

constexpr const char *kMutateFooter = R"(
Every barrier and wait of a kernel is disabled, weakened and moved, one at a time, while the emulator runs the kernel
on problems that go through all of its loops. The analysis said beforehand which changes matter: exactly those must be
noticed. docs/internals/Mutation.md has the details.

Examples:
  fagen specs/l4_fp16.fa --emit=mutants -o mutants.json
  fagen-run mutate generated/l4_fp16 --mutants mutants.json
  fagen-run mutate generated/l4_fp16 --mutants mutants.json --only '*_prefill_*_d64_none_*' --json
  fagen-run mutate generated/l4_fp16 --mutants mutants.json --sample 60

Exit code 2 when a mutant is unexplained: noticed by one side only, or a site of `minimal` that can go.)";

/// Sums over kernels.
struct Totals {
  size_t kernels = 0, sites = 0, mutants = 0, byAnalysis = 0, byEmulator = 0, redundant = 0, unexplained = 0;
  size_t minimalDeletions = 0, minimalNoticed = 0;

  void add(const MutationResult &result) {
    ++kernels;
    sites += result.sites();
    redundant += result.count(MutantOutcome::Redundant);
    unexplained += result.unexplained();
    for (const MutantResult &one : result.mutants) {
      ++mutants;
      byAnalysis += one.mutant->isNeeded;
      byEmulator += !one.finding.empty();
      if (result.kernel->policy == "minimal" && one.mutant->mutation.action == emulator::Mutation::Disable) {
        ++minimalDeletions;
        minimalNoticed += one.outcome == MutantOutcome::Caught;
      }
    }
  }

  std::vector<std::string> cells() const {
    std::vector<std::string> texts;
    for (size_t number : {sites, mutants, byAnalysis, byEmulator, redundant, unexplained})
      texts.push_back(std::to_string(number));
    return texts;
  }

  Json toJson() const {
    return {{"kernels", kernels},
            {"sites", sites},
            {"mutants", mutants},
            {"caught_by_analysis", byAnalysis},
            {"caught_by_emulator", byEmulator},
            {"redundant_as_predicted", redundant},
            {"unexplained", unexplained},
            {"deletions_from_minimal", minimalDeletions},
            {"of_these_noticed_by_both", minimalNoticed}};
  }
};

Totals totalsOf(const std::vector<MutationResult> &results) {
  Totals totals;
  for (const MutationResult &result : results)
    totals.add(result);
  return totals;
}

std::string mutationTable(const std::vector<MutationResult> &results) {
  TextTable table({{"kernel"},
                   {"barriers"},
                   {"sites", true},
                   {"mutants", true},
                   {"analysis", true},
                   {"emulator", true},
                   {"redundant", true},
                   {"unexplained", true}});
  auto add = [&](const std::string &name, const std::string &policy, const Totals &totals) {
    std::vector<std::string> cells = {name, policy};
    for (std::string &cell : totals.cells())
      cells.push_back(std::move(cell));
    table.add(std::move(cells));
  };
  for (const MutationResult &result : results) {
    Totals totals;
    totals.add(result);
    add(result.kernel->variant, result.kernel->policy, totals);
  }
  add(fmt::format("{} kernels", results.size()), "", totalsOf(results));
  return table.text();
}

Json mutantJson(const MutantResult &result) {
  const MutantCase &mutant = *result.mutant;
  static constexpr const char *kActions[] = {"disable", "weaken", "move"};
  Json json{{"site", mutant.site},
            {"line", mutant.mutation.line},
            {"what", mutant.what},
            {"op", mutant.op},
            {"action", kActions[mutant.mutation.action]},
            {"change", mutant.text()},
            {"verdict", mutant.isNeeded ? "needed" : "redundant"},
            {"outcome", nameOf(result.outcome)}};
  if (!mutant.spec.empty())
    json["spec"] = mutant.spec;
  if (mutant.mutation.call == emulator::Mutation::CopyWait)
    json["pending"] = mutant.mutation.pending;
  if (mutant.mutation.action == emulator::Mutation::Move) {
    json["target"] = mutant.mutation.target;
    json["later"] = mutant.mutation.later;
  }
  if (mutant.isNeeded)
    json["why"] = mutant.why;
  if (!result.finding.empty()) {
    json["finding"] = result.finding;
    json["case"] = result.testCase;
    json["attempt"] = result.attempt;
  }
  return json;
}

Json resultJson(const MutationResult &result) {
  Totals totals;
  totals.add(result);
  Json json = totals.toJson();
  json.erase("kernels");
  Json head{{"variant", result.kernel->variant},
            {"target", result.row->target},
            {"symbol", result.kernel->symbol},
            {"policy", result.kernel->policy},
            {"source", result.row->code->source_name},
            {"seconds", result.seconds},
            {"cases", Json::array()}};
  for (const Case &c : result.cases)
    head["cases"].push_back(formatCase(c));
  head.update(json);
  head["failures"] = Json::array();
  for (const Failure &failure : result.failures)
    head["failures"].push_back(failure.message);
  head["results"] = Json::array();
  for (const MutantResult &one : result.mutants)
    head["results"].push_back(mutantJson(one));
  return head;
}

class MutateCommand : public Command {
public:
  MutateCommand() : Command("mutate", "change each barrier and wait on the emulator; compare with the analysis") {}

  void addOptions(CLI::App &app) override {
    app.add_option("--mutants", mutantFiles, "what fagen SPEC --emit=mutants -o FILE wrote; may be repeated")
        ->required();
    app.add_option("--only", options.pattern, "only kernels of this symbol; * stands for any characters, ? for one");
    app.add_option("--sample", options.sample, "only so many mutants, drawn from all");
    app.add_option("--seed", options.seed, "of the inputs and of the sample")->capture_default_str();
    app.add_option("--seeds", options.attempts,
                   "runs of a mutant on each problem: landings of copies and orders of threads differ")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    app.add_option("--device", device, "where: the emulator, cpu, is all there is")
        ->capture_default_str()
        ->check(CLI::IsMember({"cpu"}));
    app.footer(kMutateFooter);
  }

  int run() override {
    std::vector<MutantKernel> kernels;
    for (const std::string &file : mutantFiles)
      for (MutantKernel &kernel : readMutants(file))
        kernels.push_back(std::move(kernel));
    const auto sets = loadKernelSets(directories);
    const std::vector<MutationResult> results = runMutation(sets, kernels, options, ProgressLine());
    Json json = envelope(nullptr);
    json["mutation"] = {{"seed", options.seed}, {"seeds", options.attempts}, {"sample", options.sample}};
    json["mutation"].update(totalsOf(results).toJson());
    json["results"] = Json::array();
    for (const MutationResult &result : results)
      json["results"].push_back(resultJson(result));
    deliver(mutationTable(results), json);
    return judge(results);
  }

private:
  /// Says on standard error what is not explained; gives the exit code.
  static int judge(const std::vector<MutationResult> &results) {
    bool failed = false;
    for (const MutationResult &result : results) {
      for (const Failure &failure : result.failures)
        fmt::print(stderr, "{} without any change: {}\n", result.kernel->variant, failure.message);
      failed |= !result.failures.empty() || result.unexplained() != 0;
      for (const MutantResult &one : result.mutants)
        if (!isExplained(one.outcome))
          fmt::print(stderr, "{}: {}: {}: {}\n", result.kernel->variant, one.mutant->text(), nameOf(one.outcome),
                     one.finding.empty() ? one.mutant->why : one.finding);
    }
    const Totals totals = totalsOf(results);
    fmt::print(stderr,
               "{}: {} mutants of {} sites: {} caught by the analysis, {} by the emulator, {} redundant as predicted, "
               "{} unexplained; {} of {} deletions from minimal noticed by both\n",
               failed ? "FAIL" : "PASS", totals.mutants, totals.sites, totals.byAnalysis, totals.byEmulator,
               totals.redundant, totals.unexplained, totals.minimalNoticed, totals.minimalDeletions);
    return failed ? kFailedCheck : kOk;
  }

  MutationOptions options;
  std::vector<std::string> mutantFiles;
  std::string device = "cpu";
};

} // namespace

std::unique_ptr<Command> makeMutateCommand() { return std::make_unique<MutateCommand>(); }

} // namespace fagen::lab
