// fagen: times against one another, and what makes a comparison doubtful.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "comparison.h"
#include "lab/time/baselines/names.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fagen::lab {

bool Ratio::isClear() const { return std::abs(value - 1) > interval.width(); }

static bool sameContest(const TimeResult &a, const TimeResult &b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.mask == b.mask && a.process == b.process;
}

static Segments segmentsBy(Measure measure, const TimeResult &result) {
  return measure == Measure::Time ? result.sampleSegments() : result.energySegments();
}

static Interval widened(const Interval &interval, double error) {
  return {interval.low * (1 - error), interval.high * (1 + error)};
}

static double meterError(Measure measure, const TimeResult &result) {
  return measure == Measure::Time ? 0 : result.energyError();
}

double medianBy(Measure measure, const TimeResult &result) {
  return measure == Measure::Time ? result.medianMicroseconds() : result.medianJoules();
}

Interval intervalBy(Measure measure, const TimeResult &result) {
  return widened(intervalOfMedian(segmentsBy(measure, result), kBootstrapSeed), meterError(measure, result));
}

static Ratio ratioOf(const TimeResult &result, const TimeResult &over, Measure measure = Measure::Time) {
  return {over.name, medianBy(measure, result) / medianBy(measure, over),
          widened(ratioOfMedians(segmentsBy(measure, result), segmentsBy(measure, over), kBootstrapSeed),
                  meterError(measure, result) + meterError(measure, over))};
}

std::optional<Ratio> ratioToBaseline(const TimeReport &report, const TimeResult &result, const std::string &baseline,
                                     Measure measure) {
  std::string variant = baselineVariant(baseline);
  std::vector<std::string> members = variant.empty() ? baselineMembers(baseline) : std::vector{variant};
  const TimeResult *best = nullptr;
  auto tells = [&](const TimeResult &one) { return one.ran() && medianBy(measure, one) > 0; };
  for (const TimeResult &other : report.results) {
    bool member = std::find(members.begin(), members.end(), other.name) != members.end();
    if (member && tells(other) && sameContest(other, result) &&
        (!best || medianBy(measure, other) < medianBy(measure, *best)))
      best = &other;
  }
  if (!best || !tells(result))
    return std::nullopt;
  return ratioOf(result, *best, measure);
}

std::optional<Ratio> ratioToPicked(const TimeReport &report, const TimeResult &result) {
  for (const TimeResult &picked : report.results)
    if (picked.picked && picked.set == result.set && sameContest(picked, result) && picked.ran() && result.ran())
      return ratioOf(result, picked);
  return std::nullopt;
}

std::vector<Ratio> ratiosOf(const TimeReport &report, const TimeResult &result, const TimeOptions &options) {
  std::vector<Ratio> ratios;
  for (const std::string &baseline : options.baselines)
    if (auto ratio = ratioToBaseline(report, result, baseline); ratio && ratio->over != result.name)
      ratios.push_back(*ratio);
  if (options.baselines.empty())
    if (auto ratio = ratioToPicked(report, result); ratio && !result.picked)
      ratios.push_back(*ratio);
  return ratios;
}

namespace {

/// The smallest and largest of what the segments tell; nothing when fewer than two tell.
struct Range {
  double low = INFINITY, high = -INFINITY;
  int told = 0;

  template <typename Figure> Range(const TimeResult &result, Figure figure) {
    for (const Segment &segment : result.segments)
      if (double value = figure(segment); value > 0) {
        low = std::min(low, value);
        high = std::max(high, value);
        ++told;
      }
  }
  double absolute() const { return told > 1 ? high - low : 0; }
  double relative() const { return told > 1 ? (high - low) / high : 0; }
};

std::string describe(const TimeResult &result) {
  return fmt::format("{} on {} {} {}", result.name, formatShape(result.shape), nameOf(result.dtype), result.mask);
}

void warnOfDrift(const TimeResult &result, const TimeOptions &options, std::vector<std::string> &warnings) {
  auto warn = [&](const char *what, const Range &range, const char *unit, const std::string &limit) {
    warnings.push_back(fmt::format("{}: {} went from {:.4g} to {:.4g} {} between segments; at most {} is steady",
                                   describe(result), what, range.low, range.high, unit, limit));
  };
  auto percent = [](double fraction) { return fmt::format("{:.0f} %", fraction * 100); };
  Range clock(result, [](const Segment &s) { return s.after.clockMhz; });
  Range watts(result, [](const Segment &s) { return s.after.watts; });
  Range celsius(result, [](const Segment &s) { return s.after.celsius; });
  Range medians(result, [](const Segment &s) { return median(s.microseconds); });
  if (clock.relative() > kDriftLimits.clock)
    warn("the SM clock", clock, "MHz", percent(kDriftLimits.clock));
  if (options.state == PowerState::Steady && watts.relative() > kDriftLimits.watts)
    warn("power", watts, "W", percent(kDriftLimits.watts));
  if (celsius.absolute() > kDriftLimits.celsius)
    warn("the temperature", celsius, "C", fmt::format("{:.0f} C", kDriftLimits.celsius));
  if (medians.relative() > kDriftLimits.medians)
    warn("the median", medians, "us", percent(kDriftLimits.medians));
}

} // namespace

std::vector<std::string> timeWarnings(const TimeReport &report, const TimeOptions &options) {
  std::vector<std::string> warnings;
  for (const TimeResult &result : report.results) {
    warnOfDrift(result, options, warnings);
    if (!result.row)
      continue; // baselines are not compared with one another
    for (const Ratio &ratio : ratiosOf(report, result, options))
      if (!ratio.isClear())
        warnings.push_back(
            fmt::format("{}: time over {} is {:.3f} ({:.3f} to {:.3f}): the interval is wider than the difference; "
                        "more --rounds narrow it",
                        describe(result), ratio.over, ratio.value, ratio.interval.low, ratio.interval.high));
  }
  return warnings;
}

} // namespace fagen::lab
