// fagen: a load of equal launches, and what a launch of it takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "timing_device.h"

namespace fagen::lab {

struct MeteredLoad {
  Energy energy;
  double seconds = 0; ///< pauses between replays included
  int64_t launches = 0;

  /// Average watts times the seconds of a launch; 0: not told.
  double joulesPerLaunch() const { return launches > 0 ? energy.watts() * seconds / static_cast<double>(launches) : 0; }
};

/// Replays the graph, of so many launches, for 1.25 s: a second between the counter's steps, and what may be lost of it
/// before the first of them and after the last.
MeteredLoad meterLoad(TimingDevice &device, Launchable &graph, int launchesOfGraph);

} // namespace fagen::lab
