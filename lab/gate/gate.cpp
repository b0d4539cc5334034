// fagen: the stages of a gate but the last.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gate.h"
#include "lab/device/resources.h"
#include "lab/kernel_set/forms.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace fagen::lab {

std::string_view nameOf(Stage stage) {
  static constexpr std::string_view kNames[kStages] = {"build",       "resources",   "launch", "sanity",
                                                       "correctness", "determinism", "speed"};
  return kNames[static_cast<size_t>(stage)];
}

bool GatedVariant::has(Verdict verdict) const {
  return std::any_of(stages.begin(), stages.end(), [&](const StageResult &stage) { return stage.verdict == verdict; });
}

void GatedVariant::judge(Stage stage, Verdict verdict, std::string why) {
  at(stage) = {verdict, std::move(why)};
  for (auto later = static_cast<size_t>(stage) + 1; verdict == Verdict::Fail && later < kStages; ++later)
    stages[later] = {};
}

bool GateReport::passed(const GateOptions &options) const {
  return !variants.empty() && std::none_of(variants.begin(), variants.end(), [&](const GatedVariant &variant) {
    return variant.has(Verdict::Fail) || (options.strict && variant.has(Verdict::Skipped));
  });
}

namespace {

/// The stage that a criterion of the check belongs to.
Stage stageOf(const std::string &criterion) {
  if (criterion == "launch" || criterion == "emulator" || criterion == "device" || criterion == "query" ||
      criterion == "compile")
    return Stage::Launch;
  if (criterion == "nan" || criterion == "unwritten")
    return Stage::Sanity;
  return criterion == "determinism" ? Stage::Determinism : Stage::Correctness;
}

class GateRun {
public:
  GateRun(const std::vector<std::unique_ptr<KernelSet>> &sets, const GateDevices &devices, const GateOptions &options,
          const Progress &progress)
      : sets(sets), devices(devices), options(options), progress(progress) {
    const std::vector<std::string> &wanted = options.check.variants;
    for (const auto &set : sets)
      for (const fagen_row *row : set->rows())
        if (wanted.empty() || std::find(wanted.begin(), wanted.end(), row->variant) != wanted.end())
          report.variants.push_back({set.get(), row, {}});
  }

  GateReport run() {
    for (size_t i = 0; i < report.variants.size(); ++i) {
      GatedVariant &variant = report.variants[i];
      progress(i, report.variants.size(), fmt::format("build and launch {}", variant.row->variant));
      if (!lost.empty())
        skip(variant, Stage::Build, lost);
      else if (build(variant) && resources(variant))
        firstLaunch(variant);
    }
    checkSuite();
    gateSpeed(sets, devices, options, progress, report);
    progress(report.variants.size(), report.variants.size(), "");
    return std::move(report);
  }

private:
  /// From this stage on nothing can be judged.
  static void skip(GatedVariant &variant, Stage from, const std::string &why) {
    for (auto stage = static_cast<size_t>(from); stage < kStages; ++stage)
      variant.stages[stage] = {Verdict::Skipped, why};
  }

  /// A small problem with ragged edges, as launch, sanity and build see it.
  static Case firstCase(const GatedVariant &variant) {
    const fagen_row &row = *variant.row;
    Case c = caseOfRow(*variant.set, row);
    c.shape = {1, 2, 1, row.tile_rows + 3, row.tile_keys + 5, row.head_dim_qk, row.head_dim_v};
    return c;
  }

  bool build(GatedVariant &variant) {
    const Case c = withForm(firstCase(variant), variant.set->form(*variant.row), 1);
    Launch launch;
    launch.set = variant.set;
    launch.row = variant.row;
    launch.problem = describeProblem(c, Placements(c));
    launch.problem.variant = variant.row->variant;
    const fagen_table *table = variant.set->table();
    fagen_choice choice = makeAbi<fagen_choice>();
    fagen_status status = fagen_query(&table, 1, &launch.problem, devices.device.queryDevice(*variant.row), &choice);
    if (status != FAGEN_OK || choice.row != variant.row) {
      std::string why = status != FAGEN_OK
                            ? fagen_last_error()
                            : fmt::format("{} takes its text for {}", devices.device.name(), choice.row->target);
      skip(variant, Stage::Build, why);
      return false;
    }
    built[variant.row] = devices.device.build(launch);
    const Built &result = built[variant.row];
    bool ok = result.failure.empty();
    variant.judge(Stage::Build, ok ? Verdict::Pass : Verdict::Fail, ok ? "by " + result.by : result.failure);
    return ok;
  }

  bool resources(GatedVariant &variant) {
    ResourceFigures figures = resourcesOf(*variant.set, *variant.row, built[variant.row], devices.sm);
    std::string told, unknown;
    for (const Gate &gate : variant.set->gates()) {
      if (gate.name != "registers" && gate.name != "spills" && gate.name != "shared" && gate.name != "ctas")
        continue;
      int64_t figure = gate.name == "registers" ? figures.registers
                       : gate.name == "spills"  ? figures.spillBytes
                       : gate.name == "ctas"    ? figures.ctasPerSm
                                                : figures.sharedBytes;
      if (figure < 0) {
        unknown += (unknown.empty() ? "" : ", ") + gate.name;
        continue;
      }
      told += fmt::format("{}{} {}", told.empty() ? "" : ", ", gate.name, figure);
      if (!gate.holds(static_cast<double>(figure))) {
        variant.judge(Stage::Resources, Verdict::Fail,
                      fmt::format("{} is {} by {}, which fails '{}'", gate.name, figure, figures.source, gate.text));
        return false;
      }
    }
    if (!unknown.empty())
      variant.judge(
          Stage::Resources, Verdict::Skipped,
          fmt::format("{}: neither a GPU of the target nor resources.json tells; fagen --check-resources writes one",
                      unknown));
    else if (told.empty())
      variant.judge(Stage::Resources, Verdict::NotRequired, "no gate on resources");
    else
      variant.judge(Stage::Resources, Verdict::Pass, fmt::format("{} by {}", told, figures.source));
    return true;
  }

  /// Whether the kernel gets through one launch, and what it leaves are numbers.
  void firstLaunch(GatedVariant &variant) {
    CheckOptions check = options.check;
    check.cases = {firstCase(variant)};
    check.variants = {variant.row->variant};
    CheckReport result = runCheck(sets, devices.device, devices.engine, check, [](size_t, size_t, const auto &) {});
    variant.judge(Stage::Launch, Verdict::Pass, "one launch of " + formatCase(check.cases[0]));
    variant.judge(Stage::Sanity, Verdict::Pass, "every element is finite");
    for (const Failure &failure : result.failures) {
      variant.judge(Stage::Launch, Verdict::Fail, fmt::format("{}: {}", failure.criterion, failure.message));
      if (failure.criterion == "device")
        lost = fmt::format("the device was lost by {}", variant.row->variant);
    }
    for (const CaseResult &one : result.results)
      if (one.row == variant.row)
        for (const Failure &failure : one.measured.failures)
          if (Stage stage = stageOf(failure.criterion); stage <= Stage::Sanity && !failed(variant, stage))
            fail(variant, stage, one, failure);
  }

  static bool failed(const GatedVariant &variant, Stage upTo) {
    for (int stage = 0; stage <= static_cast<int>(upTo); ++stage)
      if (variant.stages[stage].verdict == Verdict::Fail)
        return true;
    return false;
  }

  /// The earliest stage that anything failed in counts, and there what failed first.
  void fail(GatedVariant &variant, Stage stage, const CaseResult &result, const Failure &failure) const {
    variant.judge(stage, Verdict::Fail,
                  fmt::format("{}: {} on \"{}\"; again: {}", failure.criterion, failure.message,
                              formatCase(result.testCase), reproLine(result, options.check)));
  }

  /// Correctness and determinism of all that have got so far, case by case.
  void checkSuite() {
    CheckOptions check = options.check;
    check.variants.clear();
    for (const GatedVariant &variant : report.variants)
      if (variant.at(Stage::Sanity).verdict == Verdict::Pass)
        check.variants.emplace_back(variant.row->variant);
    if (check.variants.empty())
      return;
    if (!lost.empty()) {
      for (GatedVariant &variant : report.variants)
        if (variant.at(Stage::Sanity).verdict == Verdict::Pass)
          skip(variant, Stage::Correctness, lost);
      return;
    }
    CheckReport result = runCheck(sets, devices.device, devices.engine, check, progress);
    for (GatedVariant &variant : report.variants)
      if (variant.at(Stage::Sanity).verdict == Verdict::Pass)
        judgeSuite(variant, result);
  }

  void judgeSuite(GatedVariant &variant, const CheckReport &result) {
    int cases = 0;
    const CaseResult *worst = nullptr; // of normal inputs
    for (const CaseResult &one : result.results) {
      if (one.row != variant.row)
        continue;
      ++cases;
      if (one.testCase.inputs == Inputs::Normal && (!worst || one.measured.maxError > worst->measured.maxError))
        worst = &one;
    }
    if (cases == 0 && result.failures.empty())
      return variant.judge(Stage::Correctness, Verdict::Fail,
                           fmt::format("no case of suite {} fits it", options.check.suite));
    variant.judge(Stage::Correctness, Verdict::Pass,
                  fmt::format("{} cases of suite {}, max |O - ref| {:.2e}", cases, options.check.suite,
                              worst ? worst->measured.maxError : 0.0));
    variant.judge(Stage::Determinism, Verdict::Pass, fmt::format("{} runs of each case, equal bits", kTolerances.runs));
    for (const CaseResult &one : result.results)
      if (one.row == variant.row)
        for (const Failure &failure : one.measured.failures)
          if (Stage stage = stageOf(failure.criterion); !failed(variant, stage))
            fail(variant, stage, one, failure);
    for (const Failure &failure : result.failures) // a lost device: nobody knows by whom
      if (!failed(variant, Stage::Launch))
        variant.judge(stageOf(failure.criterion), Verdict::Fail,
                      fmt::format("{}: {}", failure.criterion, failure.message));
    for (const Gate &gate : variant.set->gates())
      if (gate.name == "error" && worst && !gate.holds(worst->measured.maxError) &&
          !failed(variant, Stage::Correctness))
        variant.judge(Stage::Correctness, Verdict::Fail,
                      fmt::format("max |O - ref| on normal inputs is {:.3e} on \"{}\", which fails '{}'",
                                  worst->measured.maxError, formatCase(worst->testCase), gate.text));
  }

  const std::vector<std::unique_ptr<KernelSet>> &sets;
  const GateDevices &devices;
  const GateOptions &options;
  const Progress &progress;
  std::map<const fagen_row *, Built> built;
  std::string lost; ///< by whom the device was lost; empty: it was not
  GateReport report;
};

} // namespace

GateReport runGate(const std::vector<std::unique_ptr<KernelSet>> &sets, const GateDevices &devices,
                   const GateOptions &options, const Progress &progress) {
  return GateRun(sets, devices, options, progress).run();
}

} // namespace fagen::lab
