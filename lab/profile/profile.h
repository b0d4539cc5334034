// fagen: what the hardware counters of a launch mean: what bounds it, what its warps wait for, how far it is from the
// roofline's floor.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "counter_device.h"
#include "roofline.h"

namespace fagen::lab {

/// The rules of the verdict, in percent of what the unit can do in the time of the launch.
struct BoundRules {
  double tensorBusy = 50; ///< at least this, with DRAM below `dramIdle`: compute-bound
  double dramIdle = 50;
  double dramBusy = 70; ///< more: memory-bound
  double smsIdle = 60;  ///< below this share of time SMs have no work: said next to the verdict
};
inline constexpr BoundRules kBoundRules;

/// A reason not to issue, and its part of the time of a warp.
struct Stall {
  StallReason reason;
  double perIssue = 0; ///< warps in this state for each instruction issued
  double share = 0;    ///< of all states; 0 to 1
};

struct Bottleneck {
  std::string kind; ///< compute-bound, memory-bound, latency-bound, barrier-bound; empty: counters are missing
  std::string why;  ///< one line, with the numbers
};

/// One row on one problem.
struct Profile {
  ProfiledRow subject;
  uint32_t computeCapability = 0;
  int sms = 0;
  std::vector<Reading> readings;              ///< the first one is judged
  std::map<CounterKind, std::string> refused; ///< sources that were asked, and why they did not count

  std::optional<double> value(const std::string &key) const; ///< of the first reading, by the quantity's key
  /// By their share, the largest first; states in which a warp issues or could have are among them.
  std::vector<Stall> stalls() const;
  Bottleneck bottleneck() const;
  /// With the launch's SM clock and the DRAM's peak; null when the clock is not told.
  std::optional<Roofline> roofline() const;
  /// The duration over the floor; none when either is not known.
  std::optional<double> timesFloor() const;
};

/// Asks one source after the other until one counts.
Profile runProfile(CounterDevice &device, const ProfiledRow &row, const std::vector<CounterKind> &sources,
                   const std::vector<std::string> &extraMetrics);

/// Adds what the other source says.
void addReading(CounterDevice &device, Profile &profile, CounterKind kind,
                const std::vector<std::string> &extraMetrics);

/// How far two readings of a counter may be apart, over the larger.
inline constexpr double kCounterTolerance = 0.05;

struct ComparedCounter {
  Quantity quantity;
  std::optional<double> first, second;
  double apart() const; ///< over the larger; 1 when one is missing
  bool agrees() const { return apart() <= kCounterTolerance; }
};
/// All quantities of two readings.
std::vector<ComparedCounter> compareReadings(const Profile &profile);
/// Whether both are there and agree on every judged quantity.
bool readingsAgree(const Profile &profile);

} // namespace fagen::lab
