// fagen: times launches on a GPU by CUDA graphs and events.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/device/gpu_device.h"
#include "timing_device.h"

namespace fagen::lab {

class GpuTiming : public TimingDevice {
public:
  /// UserError when there is no GPU.
  GpuTiming();

  std::string name() const override { return gpuDevice.name(); }
  uint32_t computeCapability() const override { return gpuDevice.gpu.info().compute_capability; }
  fagen_device *queryDevice() override { return gpuDevice.gpu.device(); }
  bool timesBaseline(const std::string &name) const override;
  std::unique_ptr<TimedProblem> open(const Case &c, uint64_t seed, L2State l2) override;
  Telemetry telemetry() override { return nvml.read(); }
  void beginEnergy() override { meter.begin(); }
  Energy endEnergy() override { return meter.end(); }
  const Gpu *gpu() const override { return &gpuDevice.gpu; }
  double now() override;
  void sleep(double seconds) override;

  GpuDevice &device() { return gpuDevice; }

private:
  GpuDevice gpuDevice;
  Nvml nvml;
  EnergyMeter meter;
};

/// Graphs of launches one after the other, whose L2 holds what the launch before left there.
std::unique_ptr<Launchable> makeWarmLaunchable(CuStream stream, std::unique_ptr<class GpuWork> work);
/// One of our kernels on these tensors. CannotRun with the reason when it does not load.
std::unique_ptr<class GpuWork> makeChoiceWork(class GpuTensors &tensors, const fagen_choice &choice);

} // namespace fagen::lab
