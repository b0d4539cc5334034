// fagen: the last stage of a gate: times and joules against require, with their intervals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gate.h"
#include "lab/kernel_set/forms.h"
#include "lab/time/comparison.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>

namespace fagen::lab {

std::string baselineOfGate(const std::string &name) {
  if (name == "fa2")
    return "sdpa:flash";
  if (name == "cudnn")
    return "sdpa:cudnn";
  return name == "cublas" ? "cublas-unfused" : name;
}

namespace {

Measure measureOf(const Gate &gate) { return gate.name == "joules" ? Measure::Joules : Measure::Time; }

std::vector<Gate> speedGates(const KernelSet &set) {
  std::vector<Gate> gates = set.gates();
  std::erase_if(gates, [](const Gate &gate) { return gate.name != "time" && gate.name != "joules"; });
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
      measure();
    for (GatedVariant *variant : entered)
      judge(*variant);
  }

private:
  /// A variant with gates on time or joules that can be timed here.
  void enter(GatedVariant &variant) {
    if (speedGates(*variant.set).empty())
      return variant.judge(Stage::Speed, Verdict::NotRequired, "no gate on time or joules");
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

  bool isSteady() const { return options.time.state == PowerState::Steady; }

  /// Joules are told in the steady state only: where times are of bursts, their gates have rounds of their own.
  void measure() {
    timeGates(
        options.time.state, [&](const Gate &gate) { return isSteady() || measureOf(gate) == Measure::Time; },
        report.times);
    if (!isSteady())
      timeGates(PowerState::Steady, [](const Gate &gate) { return measureOf(gate) == Measure::Joules; }, report.steady);
  }

  const TimeReport &reportOf(const Gate &gate) const {
    return isSteady() || measureOf(gate) == Measure::Time ? report.times : report.steady;
  }

  /// For the gates that are `asked`: the problems and variants of all that entered; baselines of this process apart
  /// from those of the peer.
  void timeGates(PowerState state, const std::function<bool(const Gate &)> &asked, TimeReport &into) {
    TimeOptions wanted = options.time;
    wanted.state = state;
    wanted.dispatchedOnly = true;
    wanted.variants.clear();
    wanted.masks.clear();
    wanted.dtypes.clear();
    std::vector<std::string> here, elsewhere;
    bool absolute = false;
    for (const GatedVariant *variant : entered) {
      std::vector<Gate> gates = speedGates(*variant->set);
      std::erase_if(gates, [&](const Gate &gate) { return !asked(gate); });
      if (gates.empty())
        continue;
      const fagen_row &row = *variant->row;
      addTo(wanted.variants, std::string(row.variant));
      const Case c = caseOfRow(*variant->set, row);
      if (const FormPtr form = variant->set->form(row))
        addTo(wanted.forms, form);
      else
        addTo(wanted.masks, c.mask);
      addTo(wanted.dtypes, c.dtype);
      for (const Gate &gate : gates) {
        std::string baseline = baselineOfGate(gate.baseline);
        absolute |= baseline.empty();
        if (!baseline.empty())
          addTo(devices.timing->timesBaseline(baseline) ? here : elsewhere, baseline);
      }
    }
    if (absolute || !here.empty())
      timeWith(wanted, here, into);
    if (!elsewhere.empty())
      timeWith(wanted, elsewhere, into);
  }

  void timeWith(TimeOptions wanted, const std::vector<std::string> &baselines, TimeReport &into) {
    wanted.baselines = baselines;
    try {
      TimeReport times = runTime(*devices.timing, sets, wanted, progress);
      into.results.insert(into.results.end(), times.results.begin(), times.results.end());
      into.notes.insert(into.notes.end(), times.notes.begin(), times.notes.end());
    } catch (const UserError &reason) { // no shape fits, or no PyTorch
      refusal = reason.what();
    }
  }

  void judge(GatedVariant &variant) {
    std::string passed;
    std::vector<std::string> missing;
    for (const Gate &gate : speedGates(*variant.set)) {
      int judged = 0;
      for (const TimeResult &result : reportOf(gate).results) {
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

  /// What a gate compares, and how to say it; no text when the baseline did not run, or joules are not told.
  struct Figure {
    double value = 0;
    Interval interval{0, 0};
    std::string text;
  };
  Figure figureOf(const Gate &gate, const TimeResult &result) const {
    std::string place = fmt::format("on {} {}", formatShape(result.shape), result.mask);
    const Measure measure = measureOf(gate);
    if (gate.baseline.empty()) {
      const double value = medianBy(measure, result);
      if (!(value > 0))
        return {};
      const Interval interval = intervalBy(measure, result);
      return {value, interval,
              measure == Measure::Time
                  ? fmt::format("{} time is {:.2f} us ({:.2f} to {:.2f})", place, value, interval.low, interval.high)
                  : fmt::format("{} a launch takes {:.4g} J ({:.4g} to {:.4g})", place, value, interval.low,
                                interval.high)};
    }
    auto ratio = ratioToBaseline(reportOf(gate), result, baselineOfGate(gate.baseline), measure);
    if (!ratio)
      return {};
    return {ratio->value, ratio->interval,
            fmt::format("{} {} {:.3f} ({:.3f} to {:.3f}) of {}", place,
                        measure == Measure::Time ? "time is" : "joules are", ratio->value, ratio->interval.low,
                        ratio->interval.high, ratio->over)};
  }

  std::string whyNotJudged(const GatedVariant &variant, const Gate &gate) const {
    std::string name = baselineOfGate(gate.baseline);
    const TimeReport &times = reportOf(gate);
    for (const TimeResult &result : times.results)
      if (result.row == variant.row && result.picked) {
        if (measureOf(gate) == Measure::Joules)
          for (const Segment &segment : result.segments)
            if (!segment.load.energy.told())
              return fmt::format("'{}': joules are not told: {}", gate.text, segment.load.energy.missing);
        std::string why;
        for (const TimeResult &baseline : times.results)
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
