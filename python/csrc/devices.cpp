// fagen: devices by ordinal.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "devices.h"

#include <array>
#include <atomic>
#include <mutex>

namespace fagen::python {

fagen_device *deviceOf(int ordinal, const char *&error) {
  constexpr int kMostDevices = 64;
  static std::array<std::atomic<fagen_device *>, kMostDevices> devices;
  static std::mutex mutex;
  if (ordinal < 0 || ordinal >= kMostDevices) {
    error = "CUDA ordinals are 0 to 63";
    return nullptr;
  }
  if (fagen_device *device = devices[ordinal].load(std::memory_order_acquire))
    return device;
  std::lock_guard lock(mutex);
  fagen_device *device = devices[ordinal].load(std::memory_order_relaxed);
  if (!device) {
    if (fagen_device_create(ordinal, &device) != FAGEN_OK) {
      error = fagen_last_error();
      return nullptr;
    }
    devices[ordinal].store(device, std::memory_order_release);
  }
  return device;
}

} // namespace fagen::python
