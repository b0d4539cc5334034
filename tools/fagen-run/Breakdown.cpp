// fagen: fagen-run breakdown: where the time of instrumented kernels goes, and what telling it costs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/profile/breakdown.h"
#include "Command.h"
#include "TimingOptions.h"
#include "lab/check/check.h"
#include "lab/kernel_set/forms.h"
#include "lab/profile/stage_trace.h"
#include "lab/support/write_file.h"
#include "lab/time/comparison.h"
#include "lab/time/gpu_timing.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <optional>

namespace fagen::lab {

namespace {

constexpr const char *kBreakdownFooter = R"(
DIR has kernels that fagen --instrument wrote. Clocks are of a warp, from its begin to its end; docs/Breakdown.md says
what each component is.

Examples:
  fagen specs/l4_fp16.fa -o instrumented --instrument
  fagen-run breakdown instrumented --plain generated/l4_fp16 --variant l4_fp16_prefill_f16_d64_none --shape mission
  fagen specs/l4_fp16.fa -o traced --instrument=trace
  fagen-run breakdown traced --variant l4_fp16_prefill_f16_d64_none --shape mission --trace warps.json

Exit codes: 0 done, 1 your mistake, 2 a launch failed, or stages do not add up to their warp's span within 5 %.)";

constexpr int kWarmups = 3; ///< of a GPU: caches, clocks

/// What the timestamps cost.
struct Cost {
  double instrumented, plain; ///< microseconds, medians
  double ratio;
  Interval interval; ///< 95 %
};

struct Result {
  Breakdown breakdown;
  std::optional<Cost> cost;
  std::string noCost; ///< why there is none
};

Json spreadJson(const Spread &spread) { return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}}; }

/// What is told of some warps.
Json warpsJson(const Breakdown &b) {
  Json json{{"warps", b.warps.size()},
            {"stages", Json::array()},
            {"span", spreadJson(b.span())},
            {"sum_over_span", spreadJson(b.sumOverSpan())},
            {"untold", spreadJson(b.untold())}};
  if (b.hasTiles())
    json["tiles"] = spreadJson(b.tiles());
  for (const StageSummary &stage : b.stages()) {
    Json entry{{"name", stage.name}, {"clocks", spreadJson(stage.clocks)}, {"share", spreadJson(stage.share)}};
    if (b.hasTiles())
      entry["clocks_per_tile"] = stage.perTile;
    json["stages"].push_back(std::move(entry));
  }
  return json;
}

/// Of the warps that compute; those that load stand for themselves.
Json resultJson(const Result &result) {
  const Breakdown &b = result.breakdown;
  const std::vector<Breakdown> roles = b.byRole();
  Json json = warpsJson(roles.empty() ? b : roles.front());
  json["variant"] = b.row->variant;
  json["target"] = b.row->target;
  json["case"] = formatCase(b.testCase);
  json["adds_up"] = b.addsUp();
  json["failures"] = Json::array();
  if (roles.size() > 1)
    json["load"] = warpsJson(roles.back());
  json["sm_mhz"] = b.megahertz() > 0 ? Json(b.megahertz()) : Json();
  for (const Failure &failure : b.failures)
    json["failures"].push_back(failure.message);
  if (result.cost)
    json["cost"] = {{"instrumented_us", result.cost->instrumented},
                    {"plain_us", result.cost->plain},
                    {"ratio", result.cost->ratio},
                    {"interval", {result.cost->interval.low, result.cost->interval.high}}};
  else
    json["cost"] = nullptr;
  return json;
}

/// Where tiles are counted, a column more: the clocks of each.
std::string breakdownTable(const Breakdown &b) {
  std::vector<TextTable::Column> columns = {{"component"},   {"clocks", true}, {"min", true}, {"max", true},
                                            {"share", true}, {"min", true},    {"max", true}};
  if (b.hasTiles())
    columns.push_back({"a tile", true});
  TextTable table(columns);
  auto clocks = [](double value) { return fmt::format("{:.0f}", value); };
  auto percent = [](double value) { return fmt::format("{:.1f} %", 100 * value); };
  auto add = [&](std::vector<std::string> cells) {
    cells.resize(columns.size());
    table.add(std::move(cells));
  };
  for (const StageSummary &stage : b.stages())
    add({stage.name, clocks(stage.clocks.median), clocks(stage.clocks.min), clocks(stage.clocks.max),
         percent(stage.share.median), percent(stage.share.min), percent(stage.share.max), clocks(stage.perTile)});
  const Spread span = b.span(), ratio = b.sumOverSpan();
  add({"sum / span", "", "", "", percent(ratio.median), percent(ratio.min), percent(ratio.max)});
  add({"span", clocks(span.median), clocks(span.min), clocks(span.max)});
  if (const Spread tiles = b.tiles(); b.hasTiles())
    add({"tiles", clocks(tiles.median), clocks(tiles.min), clocks(tiles.max)});
  return table.text();
}

std::string resultText(const Result &result) {
  const Breakdown &b = result.breakdown;
  std::string text;
  const std::vector<Breakdown> roles = b.byRole();
  for (const Breakdown &role : roles)
    text += fmt::format("{} on {}: {} {}; medians over them\n", b.row->variant, formatCase(b.testCase),
                        role.warps.size(), role.role()) +
            breakdownTable(role);
  if (const Spread untold = (roles.empty() ? b : roles.front()).untold(); untold.max > 0)
    text += fmt::format("{:.1f} % of a warp's time lies in steps of a sampled loop that tell only their waits; it is "
                        "shared out as in those that tell all, where there are any (--instrument=every: all tell)\n",
                        100 * untold.median);
  if (result.cost)
    text += fmt::format("time {:.2f} us instrumented, {:.2f} us plain: {:+.1f} % [{:+.1f}, {:+.1f}]\n",
                        result.cost->instrumented, result.cost->plain, 100 * (result.cost->ratio - 1),
                        100 * (result.cost->interval.low - 1), 100 * (result.cost->interval.high - 1));
  else
    text += fmt::format("cost of the timestamps: {}\n", result.noCost);
  return text + "\n";
}

class BreakdownCommand : public Command {
public:
  BreakdownCommand() : Command("breakdown", "where the time of instrumented kernels goes, stage by stage") {}

  std::string withoutGpu() const override { return "clocks need one: run this on a machine with a GPU"; }

  void addOptions(CLI::App &app) override {
    timing.declare(app, "gpu; cpu: the emulator, which counts ends of stages instead of clocks; "
                        "simulated:FILE.json: the emulator, and recorded times");
    app.add_option("--variant", variants, "only this variant; may be repeated (default: all that take the shape)");
    app.add_option("--plain", plainDirectories, "the same kernels without timestamps: what these cost");
    app.add_option("--trace", tracePath,
                   "write the first steps of some CTAs as a Perfetto trace; of kernels by --instrument=trace");
    app.footer(kBreakdownFooter);
  }

  int run() override {
    auto sets = loadKernelSets(directories);
    requireVariants(sets, variants);
    instrumentedSets = sets.size();
    if (!plainDirectories.empty())
      for (auto &set : loadKernelSets(plainDirectories))
        sets.push_back(std::move(set));
    std::unique_ptr<TestDevice> emulator;
    std::unique_ptr<TimingDevice> timer;
    if (timing.device != "cpu")
      timer = makeTimingDevice(timing.device);
    auto *gpu = dynamic_cast<GpuTiming *>(timer.get());
    if (!gpu)
      emulator = makeEmulatorDevice();
    std::vector<Result> results = runAll(sets, gpu ? gpu->device() : *emulator, timer.get(), gpu ? kWarmups : 0);
    if (!tracePath.empty())
      writeTrace(results);
    std::string text;
    Json json = envelope(gpu ? gpu->gpu() : nullptr);
    json["clock"] = gpu ? "SM clocks" : "ends of stages, counted by the emulator";
    json["breakdown"] = Json::array();
    for (const Result &result : results) {
      text += resultText(result);
      json["breakdown"].push_back(resultJson(result));
    }
    deliver(text, json);
    return judge(results);
  }

private:
  bool isWanted(const fagen_row &row) const {
    return variants.empty() || std::find(variants.begin(), variants.end(), row.variant) != variants.end();
  }

  std::vector<Result> runAll(const std::vector<std::unique_ptr<KernelSet>> &sets, TestDevice &device,
                             TimingDevice *timer, int warmups) {
    std::vector<Result> results;
    for (const Shape &shape : timing.options().shapes)
      for (size_t i = 0; i < instrumentedSets; ++i)
        for (const fagen_row *row : sets[i]->rows())
          if (isWanted(*row)) {
            requireInstrumented(*sets[i], *row);
            const Case c = caseOf(*sets[i], *row, shape);
            std::vector<Failure> failures;
            if (!fitsRow(device, *sets[i], *row, describeProblem(c, Placements(c)), failures))
              continue;
            Result result{runBreakdown(device, *sets[i], *row, c, timing.options().seed, warmups), {}, {}};
            if (timer)
              addCost(result, sets, *timer);
            else
              result.noCost = "the emulator has no times";
            results.push_back(std::move(result));
          }
    if (results.empty())
      throw UserError(fmt::format("no variant takes the shape on {}; fagen-run list shows head_dim and target of each",
                                  device.name()));
    return results;
  }

  void requireInstrumented(const KernelSet &set, const fagen_row &row) const {
    if (!isInstrumented(row))
      throw UserError(fmt::format("{} in {} has no timestamps; fagen SPEC -o DIR --instrument writes kernels that have",
                                  row.variant, set.directory().string()));
    if (!tracePath.empty() && !isInstrumented(row, true))
      throw UserError(fmt::format("{} in {} keeps no events for --trace; fagen SPEC -o DIR --instrument=trace writes "
                                  "kernels that do",
                                  row.variant, set.directory().string()));
  }

  Case caseOf(const KernelSet &set, const fagen_row &row, const Shape &shape) const {
    Case c = timedCase(shape, caseOfRow(set, row), set.form(row), timing.options().numbers, timing.options().seed);
    c.lse = false;
    return c;
  }

  void addCost(Result &result, const std::vector<std::unique_ptr<KernelSet>> &sets, TimingDevice &timer) const {
    const Breakdown &b = result.breakdown;
    if (instrumentedSets == sets.size()) {
      result.noCost = "name the plain kernels with --plain DIR";
      return;
    }
    TimeOptions options = timing.options();
    options.shapes = {b.testCase.shape};
    options.masks = {b.testCase.mask};
    options.dtypes = {b.testCase.dtype};
    options.variants = {b.row->variant};
    const TimeReport report = runTime(timer, sets, options, [](size_t, size_t, const std::string &) {});
    const TimeResult *instrumented = nullptr, *plain = nullptr;
    for (const TimeResult &time : report.results) {
      if (!time.ran())
        result.noCost = time.failure;
      else if (time.set == b.set)
        instrumented = &time;
      else if (!isInstrumented(*time.row))
        plain = &time;
    }
    if (instrumented && plain)
      result.cost = {instrumented->medianMicroseconds(), plain->medianMicroseconds(),
                     instrumented->medianMicroseconds() / plain->medianMicroseconds(),
                     ratioOfMedians(instrumented->sampleSegments(), plain->sampleSegments(), kBootstrapSeed)};
    else if (result.noCost.empty())
      result.noCost = fmt::format("--plain has no variant {} without timestamps", b.row->variant);
  }

  void writeTrace(const std::vector<Result> &results) const {
    if (results.size() != 1)
      throw UserError(fmt::format("--trace takes one variant on one shape, not {}; choose with --variant and --shape",
                                  results.size()));
    writeFile(tracePath, stageTrace(results.front().breakdown).dump() + '\n');
  }

  /// Says on standard error what is wrong; gives the exit code.
  static int judge(const std::vector<Result> &results) {
    bool failed = false;
    for (const Result &result : results) {
      const Breakdown &b = result.breakdown;
      for (const Failure &failure : b.failures)
        fmt::print(stderr, "{}: {}\n", b.row->variant, failure.message);
      if (b.failures.empty() && !b.addsUp())
        fmt::print(stderr, "{}: stages add up to {:.3f} to {:.3f} of their warp's span; {} is allowed\n",
                   b.row->variant, b.sumOverSpan().min, b.sumOverSpan().max, kSumTolerance);
      failed |= !b.failures.empty() || !b.addsUp();
      if (result.cost && result.cost->ratio > 1 + kCostLimit)
        fmt::print(stderr,
                   "warning: {}: timestamps cost {:.1f} %: the shares are of a slower kernel than the plain one\n",
                   b.row->variant, 100 * (result.cost->ratio - 1));
    }
    return failed ? kFailedCheck : kOk;
  }

  TimingFlags timing;
  std::vector<std::string> variants, plainDirectories;
  std::string tracePath;
  size_t instrumentedSets = 0;
};

} // namespace

std::unique_ptr<Command> makeBreakdownCommand() { return std::make_unique<BreakdownCommand>(); }

} // namespace fagen::lab
