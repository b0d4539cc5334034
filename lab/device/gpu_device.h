// fagen: checks on a GPU: memory by the driver, kernels by the runtime.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "cuda.h"
#include "gpu_module.h"

#include <optional>

namespace fagen::lab {

class GpuDevice : public TestDevice {
public:
  std::string name() const override { return gpu.info().name; }
  fagen_device *queryDevice(const fagen_row &) override { return gpu.device(); }
  int64_t largestTensor() const override { return int64_t{16} << 30; }
  void *allocate(int64_t bytes) override;
  void release(void *memory) override;
  void upload(void *to, const void *from, int64_t bytes) override;
  void download(void *to, const void *from, int64_t bytes) override;
  Built build(const Launch &launch) override;
  std::vector<Failure> run(const Launch &launch) override;
  Sequence runAll(const std::vector<Launch> &launches, double patience) override;
  void copy(void *to, const void *from, int64_t bytes) override;
  std::vector<int64_t> differences(const std::vector<MemoryPair> &pairs) override;
  std::unique_ptr<Load> load() override;

  Gpu gpu;

private:
  /// What a launch without a workspace gets.
  struct OwnWorkspace {
    std::optional<DeviceMemory> memory;
    int64_t bytes = 0;
  };
  std::vector<Failure> enqueue(const Launch &launch, OwnWorkspace &own);

  GpuModule &soakKernels();

  std::unique_ptr<GpuModule> soak; ///< kernels/soak.cu, once one of them is needed
};

/// Whether this machine has a GPU that the runtime can use.
bool hasGpu();

} // namespace fagen::lab
