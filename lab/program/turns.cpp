// fagen: programs and what they are compared with, timed in turn.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "turns.h"

#include <algorithm>

namespace fagen::lab {

static constexpr double kTurnMicroseconds = 10e3;
static constexpr double kWarmMicroseconds = 1e6;
static constexpr int kMostLaunches = 1000; ///< in a graph

std::vector<ProgramTime> timeInTurns(std::vector<Contestant> contestants, int rounds) {
  std::vector<ProgramTime> times;
  for (Contestant &contestant : contestants) {
    Launchable &launches = *contestant.launches;
    launches.build(1);
    launches.replay(); // the first one finds nothing in the L2
    const double once = std::max(launches.replay(), 1e-3);
    const auto wanted = std::clamp(static_cast<int>(kTurnMicroseconds / once), 1, kMostLaunches);
    launches.build(wanted);
    times.push_back({contestant.name, launches.library, wanted, {}});
  }
  auto turn = [&](size_t i) { return contestants[i].launches->replay(); };
  for (double load = 0; load < kWarmMicroseconds;)
    for (size_t i = 0; i < times.size(); ++i)
      load += turn(i) * times[i].launches;
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < times.size(); ++i)
      times[i].microseconds.push_back(turn(i));
  return times;
}

} // namespace fagen::lab
