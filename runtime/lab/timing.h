// fagen: how long a launch takes: CUDA graphs of many launches, replayed in a cold burst or under steady load.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "manifest.h"

#include <functional>

namespace fagen::lab {

enum class PowerState {
  Burst, ///< the first 30 ms after a second of idling
  Steady ///< after a second of the same load
};

struct TimeOptions {
  std::vector<Shape> shapes;
  std::vector<Mask> masks = {Mask::None, Mask::Causal};
  std::vector<DType> dtypes = {DType::F16};
  std::vector<std::string> variants; ///< only these, when not empty
  bool dispatchedOnly = false;       ///< only the row that dispatch picks
  PowerState state = PowerState::Burst;
  int rounds = 3; ///< alternating segments of each variant
  uint64_t seed = 1;
};

/// One replay of a graph.
struct Sample {
  double microseconds; ///< per launch
  int round;
};

struct TimeResult {
  const KernelSet *set = nullptr;
  const fagen_row *row = nullptr;
  Shape shape;
  DType dtype = DType::F16;
  Mask mask = Mask::None;
  bool picked = false; ///< dispatch picks this row
  int launchesPerGraph = 0;
  int registers = -1, localBytes = -1;
  std::vector<Sample> samples;
  double clockMhz = 0, watts = 0, joulesPerLaunch = 0; ///< 0: NVML does not say
  std::string failure;                                 ///< empty: it ran

  double medianMicroseconds() const;
  double percentileMicroseconds(double fraction) const;
  double teraflops() const;
};

struct TimeReport {
  std::vector<TimeResult> results;
};

using TimeProgress = std::function<void(size_t done, size_t total, const std::string &what)>;

/// Times every fitting variant on every shape on the first GPU. UserError when there is none.
TimeReport runTime(class GpuDevice &device, const std::vector<std::unique_ptr<KernelSet>> &sets,
                   const TimeOptions &options, const TimeProgress &progress);

} // namespace fagen::lab
