// fagen: work on a stream of its own that keeps a GPU busy during what is checked.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu_device.h"
#include "lab/support/random.h"

#include <atomic>
#include <thread>

namespace fagen::lab {

namespace {

constexpr int64_t kWords = int64_t{1} << 24; ///< 64 MiB: more than any L2
constexpr unsigned kThreads = 256, kMostSteps = 128, kInFlight = 4;

class GpuLoad : public Load {
public:
  GpuLoad(GpuDevice &device, CuFunction kernel) : device(device), kernel(kernel), memory(device, kWords * 4) {
    checkCuda(measuringDriver().cuStreamCreate(&stream, 1 /* non-blocking */), "create a stream");
    thread = std::thread([this] { work(); });
  }
  ~GpuLoad() override {
    stop = true;
    thread.join();
    measuringDriver().cuStreamDestroy(stream);
  }

private:
  /// Launches of 1 to 2 SMs' worth of CTAs, as the random numbers say, until it is stopped or the GPU gives up.
  void work() {
    fagen_device_make_current(device.gpu.device());
    void *address = memory.address();
    unsigned words = kWords, mostSteps = kMostSteps;
    for (unsigned number = 0; !stop; ++number) {
      const auto drawn = philox({number, 0, 0, 0}, 1);
      unsigned ctas = 1 + drawn[0] % (2 * device.gpu.info().sm_count), seed = drawn[1];
      void *arguments[] = {&address, &words, &seed, &mostSteps};
      if (fagen::driver()->cuLaunchKernel(kernel, ctas, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr))
        return;
      if (number % kInFlight == 0 && measuringDriver().cuStreamSynchronize(stream))
        return;
    }
    measuringDriver().cuStreamSynchronize(stream);
  }

  GpuDevice &device;
  CuFunction kernel;
  DeviceMemory memory;
  CuStream stream = nullptr;
  std::atomic<bool> stop = false;
  std::thread thread;
};

} // namespace

std::unique_ptr<Load> GpuDevice::load() { return std::make_unique<GpuLoad>(*this, soakKernels().function("keepBusy")); }

} // namespace fagen::lab
