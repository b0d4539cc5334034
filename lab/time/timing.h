// fagen: how long a launch takes: graphs of many launches, the contestants of a problem taking turns.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/cases/form_inputs.h"
#include "lab/kernel_set/manifest.h"
#include "lab/support/statistics.h"
#include "metered_load.h"
#include "timing_device.h"

#include <functional>

namespace fagen::lab {

enum class PowerState {
  Burst, ///< the first 30 ms after a second of idling
  Steady ///< after 1.25 s of the same load, whose energy is measured
};

/// What contestants are compared by.
enum class Measure {
  Time,  ///< microseconds of a launch
  Joules ///< of a launch; told in the steady state only
};

struct TimeOptions {
  std::vector<Shape> shapes;
  std::vector<Mask> masks = {Mask::None, Mask::Causal};
  std::vector<FormPtr> forms;            ///< in addition to the masks
  std::map<std::string, double> numbers; ///< of scalars of the forms; others have their usual ones
  std::vector<DType> dtypes = {DType::F16};
  std::vector<std::string> variants;  ///< only these, when not empty
  std::vector<std::string> baselines; ///< as baselines/names.h has them
  bool dispatchedOnly = false;        ///< only the row that dispatch picks
  PowerState state = PowerState::Burst;
  L2State l2 = L2State::Warm;
  int rounds = 3; ///< alternating segments of each contestant
  uint64_t seed = 1;
};

/// One turn of a contestant.
struct Segment {
  std::vector<double> microseconds; ///< of a launch, one for each timed replay
  Telemetry before, after;
  MeteredLoad load; ///< before them, in the steady state
};

struct TimeResult {
  std::string name;               ///< of the variant or the baseline
  const KernelSet *set = nullptr; ///< of a variant
  const fagen_row *row = nullptr;
  Shape shape;
  DType dtype = DType::F16;
  std::string mask = "none";             ///< or the form's text
  std::map<std::string, double> numbers; ///< of the form's scalars
  double flops = 0;                      ///< of the visible keys
  bool picked = false;                   ///< dispatch picks this row
  std::string process;                   ///< who timed it; only times of one process are compared
  int launchesPerGraph = 0;
  int registers = -1, localBytes = -1;
  std::vector<Segment> segments;
  std::string library; ///< of a baseline: "cuBLAS 13.1.0"
  std::string failure; ///< empty: it ran

  bool ran() const { return failure.empty() && !segments.empty(); }
  std::vector<double> samples() const;
  Segments sampleSegments() const;
  /// Its joules a launch, a number a segment; none where any segment does not tell.
  Segments energySegments() const;
  double percentileMicroseconds(double fraction) const;
  double medianMicroseconds() const { return percentileMicroseconds(0.5); }
  double teraflops() const;
  double medianJoules() const; ///< of a launch; 0: not told
  double averageWatts() const; ///< of the loads; 0: not told
  double energyError() const;  ///< the largest of the segments' (Energy::error)
  /// The median over the segments of a figure of each; 0 when none tells.
  double medianOf(const std::function<double(const Segment &)> &figure) const;
};

struct TimeReport {
  std::vector<TimeResult> results;
  std::vector<std::string> notes; ///< about the whole: a process that could not be started
};

using TimeProgress = std::function<void(size_t done, size_t total, const std::string &what)>;

/// Times every fitting variant, and the baselines, on every shape. UserError when nothing fits.
TimeReport runTime(TimingDevice &device, const std::vector<std::unique_ptr<KernelSet>> &sets,
                   const TimeOptions &options, const TimeProgress &progress);

} // namespace fagen::lab
