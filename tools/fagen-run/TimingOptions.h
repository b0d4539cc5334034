// fagen: options of every command that times, and the device they name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/time/timing.h"

#include <CLI/CLI.hpp>

namespace fagen::lab {

/// How to time, and on which shapes.
class TimingFlags {
public:
  void declare(CLI::App &app, const std::string &devices);
  /// With the shapes, state, L2, rounds, seed and numbers of forms that were asked for.
  TimeOptions options() const;

  std::string device = "gpu";

private:
  std::vector<std::string> shapes;
  std::string state = "burst", l2 = "warm";
  bool grid = false;
  int rounds = 3;
  uint64_t seed = 1;
  std::vector<std::string> numbers;
};

/// "gpu", or "simulated:FILE.json".
std::unique_ptr<TimingDevice> makeTimingDevice(const std::string &flag);
bool isSimulated(const std::string &flag);

/// UserError unless each is a known baseline, and each kernel:VARIANT is in the sets.
void requireBaselines(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::vector<std::string> &baselines);

} // namespace fagen::lab
