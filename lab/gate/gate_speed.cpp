// fagen: the last stage of a gate: times against require, with their intervals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gate.h"
#include "lab/kernel_set/forms.h"
#include "lab/time/comparison.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fagen::lab {

std::string baselineOfGate(const std::string &name) {
  if (name == "fa2")
    return "sdpa:flash";
  if (name == "cudnn")
    return "sdpa:cudnn";
  return name == "cublas" ? "cublas-unfused" : name;
}

namespace {

std::vector<Gate> timeGates(const KernelSet &set) {
  std::vector<Gate> gates = set.gates();
  std::erase_if(gates, [](const Gate &gate) { return gate.name != "time"; });
  return gates;
}

/// Whether all of the interval satisfies the gate.
bool surelyHolds(const Gate &gate, const Interval &interval) {
  return gate.holds(interval.low) && gate.holds(interval.high);
}

/// Why a variant cannot be timed here; empty: it can.
std::string obstacle(const GatedVariant &variant, const GateDevices &devices) {
  if (!devices.timing)
    return fmt::format("times need a GPU of {}; this is the {}", variant.row->target, devices.device.name());
  if (uint32_t sm = devices.timing->computeCapability(); sm != variant.row->sm)
    return fmt::format("it is for {}, and {} is sm_{}", variant.row->target, devices.timing->name(), sm);
  return "";
}

template <typename Value> void addTo(std::vector<Value> &values, const Value &value) {
  if (std::find(values.begin(), values.end(), value) == values.end())
    values.push_back(value);
}

class SpeedStage {
public:
  SpeedStage(const std::vector<std::unique_ptr<KernelSet>> &sets, const GateDevices &devices,
             const GateOptions &options, const Progress &progress, GateReport &report)
      : sets(sets), devices(devices), options(options), progress(progress), report(report) {}

  void run() {
    for (GatedVariant &variant : report.variants)
      if (variant.at(Stage::Determinism).verdict == Verdict::Pass)
        enter(variant);
    if (!entered.empty())
      time();
    for (GatedVariant *variant : entered)
      judge(*variant);
  }

private:
  /// A variant with gates on time that can be timed here.
  void enter(GatedVariant &variant) {
    if (timeGates(*variant.set).empty())
      return variant.judge(Stage::Speed, Verdict::NotRequired, "no gate on time");
    if (std::string why = obstacle(variant, devices); !why.empty())
      return variant.judge(Stage::Speed, Verdict::Skipped, why);
    if (!isDispatched(variant)) {
      std::vector<std::string> shapes;
      for (const Shape &shape : options.time.shapes)
        shapes.push_back(formatShape(shape));
      return variant.judge(
          Stage::Speed, Verdict::Skipped,
          fmt::format("dispatch gives it none of the shapes {}; --shape names others", fmt::join(shapes, " and ")));
    }
    entered.push_back(&variant);
  }

  /// Whether dispatch picks the variant for any of the shapes.
  bool isDispatched(const GatedVariant &variant) const {
    return std::any_of(options.time.shapes.begin(), options.time.shapes.end(), [&](const Shape &shape) {
      const Case c = timedCase(shape, caseOfRow(*variant.set, *variant.row), variant.set->form(*variant.row), {},
                               options.time.seed);
      fagen_problem problem = describeProblem(c, Placements(c));
      const fagen_table *table = variant.set->table();
      fagen_choice choice = makeAbi<fagen_choice>();
      return fagen_query(&table, 1, &problem, devices.timing->queryDevice(), &choice) == FAGEN_OK &&
             choice.row == variant.row;
    });
  }

  /// The problems and variants of all that entered; baselines of this process apart from those of the peer.
  void time() {
    TimeOptions wanted = options.time;
    wanted.dispatchedOnly = true;
    wanted.variants.clear();
    wanted.masks.clear();
    wanted.dtypes.clear();
    std::vector<std::string> here, elsewhere;
    bool absolute = false;
    for (const GatedVariant *variant : entered) {
      const fagen_row &row = *variant->row;
      addTo(wanted.variants, std::string(row.variant));
      const Case c = caseOfRow(*variant->set, row);
      if (const FormPtr form = variant->set->form(row))
        addTo(wanted.forms, form);
      else
        addTo(wanted.masks, c.mask);
      addTo(wanted.dtypes, c.dtype);
      for (const Gate &gate : timeGates(*variant->set)) {
        std::string baseline = baselineOfGate(gate.baseline);
        absolute |= baseline.empty();
        if (!baseline.empty())
          addTo(devices.timing->timesBaseline(baseline) ? here : elsewhere, baseline);
      }
    }
    if (absolute || !here.empty())
      timeWith(wanted, here);
    if (!elsewhere.empty())
      timeWith(wanted, elsewhere);
  }

  void timeWith(TimeOptions wanted, const std::vector<std::string> &baselines) {
    wanted.baselines = baselines;
    try {
      TimeReport times = runTime(*devices.timing, sets, wanted, progress);
      report.times.results.insert(report.times.results.end(), times.results.begin(), times.results.end());
      report.times.notes.insert(report.times.notes.end(), times.notes.begin(), times.notes.end());
    } catch (const UserError &reason) { // no shape fits, or no PyTorch
      refusal = reason.what();
    }
  }

  void judge(GatedVariant &variant) {
    std::string passed;
    std::vector<std::string> missing;
    for (const Gate &gate : timeGates(*variant.set)) {
      int judged = 0;
      for (const TimeResult &result : report.times.results) {
        if (result.row != variant.row || !result.picked)
          continue;
        if (!result.failure.empty())
          return variant.judge(Stage::Speed, Verdict::Fail,
                               fmt::format("on {} {}: {}", formatShape(result.shape), result.mask, result.failure));
        Figure figure = figureOf(gate, result);
        if (!figure.text.empty() && !surelyHolds(gate, figure.interval))
          return variant.judge(Stage::Speed, Verdict::Fail,
                               fmt::format("{}, which {} '{}'", figure.text,
                                           gate.holds(figure.value) ? "does not surely pass" : "fails", gate.text));
        if (!figure.text.empty())
          passed += fmt::format("{}{}", judged++ || !passed.empty() ? "; " : "", figure.text);
      }
      if (!judged)
        addTo(missing, whyNotJudged(variant, gate));
    }
    if (!missing.empty())
      return variant.judge(Stage::Speed, Verdict::Skipped, fmt::format("{}", fmt::join(missing, "; ")));
    variant.judge(Stage::Speed, Verdict::Pass, passed);
  }

  /// What a gate compares, and how to say it; no text when the baseline did not run.
  struct Figure {
    double value = 0;
    Interval interval{0, 0};
    std::string text;
  };
  Figure figureOf(const Gate &gate, const TimeResult &result) const {
    std::string place = fmt::format("on {} {}", formatShape(result.shape), result.mask);
    if (gate.baseline.empty()) {
      Interval interval = intervalOfMedian(result.sampleSegments(), kBootstrapSeed);
      double value = result.medianMicroseconds();
      return {value, interval,
              fmt::format("{} time is {:.2f} us ({:.2f} to {:.2f})", place, value, interval.low, interval.high)};
    }
    auto ratio = ratioToBaseline(report.times, result, baselineOfGate(gate.baseline));
    if (!ratio)
      return {};
    return {ratio->value, ratio->interval,
            fmt::format("{} time is {:.3f} ({:.3f} to {:.3f}) of {}", place, ratio->value, ratio->interval.low,
                        ratio->interval.high, ratio->over)};
  }

  std::string whyNotJudged(const GatedVariant &variant, const Gate &gate) const {
    std::string name = baselineOfGate(gate.baseline);
    for (const TimeResult &result : report.times.results)
      if (result.row == variant.row && result.picked) {
        std::string why;
        for (const TimeResult &baseline : report.times.results)
          if (baseline.name.starts_with(name) && !baseline.failure.empty() && !name.empty())
            why = fmt::format(": {}: {}", baseline.name, baseline.failure);
        return fmt::format("'{}': {} did not run{}", gate.text, name, why);
      }
    return refusal.empty() ? fmt::format("'{}': it was not timed", gate.text) : refusal;
  }

  const std::vector<std::unique_ptr<KernelSet>> &sets;
  const GateDevices &devices;
  const GateOptions &options;
  const Progress &progress;
  GateReport &report;
  std::vector<GatedVariant *> entered;
  std::string refusal; ///< why a round of timing could not begin
};

} // namespace

void gateSpeed(const std::vector<std::unique_ptr<KernelSet>> &sets, const GateDevices &devices,
               const GateOptions &options, const Progress &progress, GateReport &report) {
  SpeedStage(sets, devices, options, progress, report).run();
}

} // namespace fagen::lab
