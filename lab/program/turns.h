// fagen: programs and what they are compared with, timed in turn.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "run.h"

#include "lab/time/timing_device.h"

namespace fagen::lab {

struct Contestant {
  std::string name;
  std::unique_ptr<Launchable> launches;
};

/// After a second of load each contestant has a turn in every round: a graph of launches that takes milliseconds.
std::vector<ProgramTime> timeInTurns(std::vector<Contestant> contestants, int rounds);

} // namespace fagen::lab
