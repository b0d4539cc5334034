// fagen: what else computes attention, or products, on the GPU of this process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/device/form_memory.h"
#include "lab/device/gpu_device.h"
#include "lab/reference/reference.h"

namespace fagen::lab {

/// The dense tensors of a problem on the GPU.
class GpuTensors {
public:
  GpuTensors(GpuDevice &device, const Case &c, uint64_t seed);

  GpuDevice &device;
  const Case problem;
  DeviceMemory q, k, v, o, lse;
  FormOnDevice form;
  fagen_tensors tensors = makeAbi<fagen_tensors>();
};

/// What one launch puts on a stream; it may be captured.
class GpuWork {
public:
  virtual ~GpuWork() = default;
  virtual void enqueue(CuStream stream) = 0;
  /// Whether it writes O; then O is compared with what our kernels write.
  virtual bool computesAttention() const { return true; }
  /// The problem's FLOPs over those of one launch: times are multiplied by it.
  virtual double scale() const { return 1; }

  int registers = -1, localBytes = -1; ///< a thread's; -1: not known
  std::string library;                 ///< whose work it is, with its version; empty: ours
};

class Baseline {
public:
  virtual ~Baseline() = default;
  /// Why it cannot run on this machine; empty: it can.
  virtual std::string unavailable() const = 0;
  /// CannotRun with the reason when it cannot take this problem.
  virtual std::unique_ptr<GpuWork> prepare(GpuTensors &tensors) = 0;
};

/// The baseline of this name, or null.
std::unique_ptr<Baseline> makeBaseline(const std::string &name);

} // namespace fagen::lab
