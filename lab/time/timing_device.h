// fagen: where launches are timed: a GPU, or a record of what one said.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything above this interface (contests, gates, the tuner) is the same code on both.
#pragma once

#include "lab/cases/cases.h"
#include "lab/device/energy_meter.h"
#include "lab/device/nvml.h"

#include <fagen/fagen.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace fagen::lab {

/// One contestant cannot be prepared or launched here; the others can go on.
struct CannotRun : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class L2State {
  Warm, ///< what the launch before left there
  Cold  ///< a buffer larger than the L2 is written before each launch, outside its time
};

/// A graph of equal launches.
class Launchable {
public:
  virtual ~Launchable() = default;
  /// Makes the graph anew, of so many launches.
  virtual void build(int launches) = 0;
  /// Replays the graph, waits for it, and gives the microseconds of one launch.
  virtual double replay() = 0;

  int registers = -1, localBytes = -1; ///< a thread's; -1: not known
  std::string library;                 ///< whose work it is: "cuBLAS 13.1.0"; empty: ours
};

/// The tensors of one problem on a device.
class TimedProblem {
public:
  virtual ~TimedProblem() = default;
  /// CannotRun with the reason when this row does not load, or computes something else than the others.
  virtual std::unique_ptr<Launchable> prepare(const fagen_choice &choice) = 0;
  /// The same for a baseline that is not one of our kernels: "cublas-gemm".
  virtual std::unique_ptr<Launchable> prepareBaseline(const std::string &name) = 0;
};

class TimingDevice {
public:
  virtual ~TimingDevice() = default;
  virtual std::string name() const = 0;
  virtual uint32_t computeCapability() const = 0;
  /// For fagen_query.
  virtual fagen_device *queryDevice() = 0;
  /// Whether a baseline is timed here; if not, by a process that has its library (baselines/peer.h).
  virtual bool timesBaseline(const std::string &name) const = 0;
  virtual std::unique_ptr<TimedProblem> open(const Case &c, uint64_t seed, L2State l2) = 0;
  virtual Telemetry telemetry() = 0;
  /// What runs from the first call to the second is metered.
  virtual void beginEnergy() = 0;
  virtual Energy endEnergy() = 0;
  /// For the description of the machine; null where there is none.
  virtual const class Gpu *gpu() const { return nullptr; }
  virtual double now() = 0; ///< seconds since some moment
  virtual void sleep(double seconds) = 0;
};

} // namespace fagen::lab
