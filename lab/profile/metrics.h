// fagen: the hardware counters that a profile is made of, by the names that CUPTI and ncu share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fagen::lab {

enum class Unit { Percent, Count, Bytes, Nanoseconds, Hertz, BytesPerClock };

/// A figure of a profile.
struct Quantity {
  const char *key;   ///< as code and JSON name it: "tensor_active"
  const char *title; ///< as the table names it
  Unit unit;
  std::string metric;    ///< as the chip names it
  bool judged;           ///< CUPTI and ncu must agree on it
  std::string rest = {}; ///< where the figure is a share: the metric that counts what `metric` does not
};
/// Of a GPU of this compute capability: some names differ.
std::vector<Quantity> quantities(uint32_t computeCapability);

enum class StallKind {
  Latency, ///< a warp waits for a result or for room in a pipe
  Barrier, ///< for other warps
  Issue    ///< none: the warp issued, or was ready when another one issued
};

/// Why a warp does not issue.
struct StallReason {
  const char *name; ///< as in the metric: "long_scoreboard"
  StallKind kind;
  const char *meaning; ///< what a warp waits for; of StallKind::Issue, what it does
};
std::vector<StallReason> stallReasons(uint32_t computeCapability);
/// Warps in this state for each instruction issued.
std::string stallMetric(const StallReason &reason);

/// Everything that a profile reads.
std::vector<std::string> profileMetrics(uint32_t computeCapability);

/// Metric to value; what could not be told is missing.
using Counters = std::map<std::string, double>;

/// The figure, in its unit; a share in percent. None where a metric is missing, or nothing was counted to share.
std::optional<double> valueOf(const Quantity &quantity, const Counters &counters);

} // namespace fagen::lab
