// fagen: a load of equal launches, and what a launch of it takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "metered_load.h"

namespace fagen::lab {

static constexpr double kLoadSeconds = 1.25;

MeteredLoad meterLoad(TimingDevice &device, Launchable &graph, int launchesOfGraph) {
  MeteredLoad load;
  const double begin = device.now();
  device.beginEnergy();
  try {
    for (; load.seconds < kLoadSeconds; load.seconds = device.now() - begin) {
      graph.replay();
      load.launches += launchesOfGraph;
    }
  } catch (const CannotRun &) {
    device.endEnergy();
    throw;
  }
  load.energy = device.endEnergy();
  return load;
}

} // namespace fagen::lab
