// fagen: times against one another, and what makes a comparison doubtful.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "timing.h"

#include <optional>

namespace fagen::lab {

/// A result's median time or joules over that of another of the same problem and process.
struct Ratio {
  std::string over; ///< the contestant's name
  double value;
  Interval interval; ///< 95 %, by bootstrap
  /// Whether the difference is larger than the interval is wide.
  bool isClear() const;
};

constexpr uint64_t kBootstrapSeed = 1;

/// To a baseline by its name of the command line; to the best of the group for "sdpa": the fastest, or the one that
/// takes fewest joules. Nothing when it did not run, or joules are not told.
std::optional<Ratio> ratioToBaseline(const TimeReport &report, const TimeResult &result, const std::string &baseline,
                                     Measure measure = Measure::Time);
/// The median time (us) or joules of a launch; 0: not told.
double medianBy(Measure measure, const TimeResult &result);
/// Its 95 % interval; joules also have the error of the meter in it.
Interval intervalBy(Measure measure, const TimeResult &result);
/// To the row that dispatch picks from the same set.
std::optional<Ratio> ratioToPicked(const TimeReport &report, const TimeResult &result);
/// To each baseline, or, when none was asked for, to the picked row.
std::vector<Ratio> ratiosOf(const TimeReport &report, const TimeResult &result, const TimeOptions &options);

/// How far the segments of one contestant may be apart.
struct DriftLimits {
  double clock = 0.03;   ///< of the SMs: (largest - smallest) / largest
  double watts = 0.10;   ///< the same of power, in the steady state; a burst is too short for the sensor
  double celsius = 5;    ///< largest - smallest
  double medians = 0.05; ///< of the segments' medians: (largest - smallest) / largest
};
inline constexpr DriftLimits kDriftLimits;

/// One line for each drift beyond the limits and for each comparison that is not clear.
std::vector<std::string> timeWarnings(const TimeReport &report, const TimeOptions &options);

} // namespace fagen::lab
