// fagen: devices by ordinal, and memory by device and stream.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stream_memory.h"

#include <array>
#include <atomic>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <utility>

namespace fagen::python {
namespace {

constexpr int kMostDevices = 64;
constexpr int kRelaxed = 2; ///< CU_STREAM_CAPTURE_MODE_RELAXED

/// The driver's functions; `missing` names the first that is not there.
struct Driver {
  int (*isCapturing)(CUstream_st *stream, int *status) = nullptr;
  int (*setBytes)(unsigned long long memory, unsigned char value, size_t count, CUstream_st *stream) = nullptr;
  int (*allocate)(unsigned long long *memory, size_t bytes) = nullptr;
  int (*exchangeCaptureMode)(int *mode) = nullptr;
  const char *missing = nullptr;

  template <typename F> void find(void *library, const char *name, F &function) {
    function = library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
    if (!function && !missing)
      missing = library ? "libcuda.so.1 is too old" : "libcuda.so.1 cannot be loaded";
  }
  Driver() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    find(library, "cuStreamIsCapturing", isCapturing);
    find(library, "cuMemsetD8Async", setBytes);
    find(library, "cuMemAlloc_v2", allocate);
    find(library, "cuThreadExchangeStreamCaptureMode", exchangeCaptureMode);
  }
};

const Driver *driver(const char *&error) {
  static const Driver driver;
  error = driver.missing;
  return error ? nullptr : &driver;
}

/// While it lives this thread may allocate although another one captures a graph.
class AllocationAllowed {
public:
  explicit AllocationAllowed(const Driver &driver) : driver(driver) { driver.exchangeCaptureMode(&mode); }
  ~AllocationAllowed() { driver.exchangeCaptureMode(&mode); }
  AllocationAllowed(const AllocationAllowed &) = delete;
  AllocationAllowed &operator=(const AllocationAllowed &) = delete;

private:
  const Driver &driver;
  int mode = kRelaxed;
};

struct Kept {
  unsigned long long memory = 0;
  size_t bytes = 0;
};

/// What a stream had stays: another thread may be about to launch with it. As each is at least twice as large as the
/// one before, all together are at most twice the last.
bool grow(const Driver &driver, Kept &kept, size_t bytes, CUstream_st *stream, const char *&error) {
  AllocationAllowed allowed(driver);
  Kept larger{0, bytes > 2 * kept.bytes ? bytes : 2 * kept.bytes};
  if (driver.allocate(&larger.memory, larger.bytes)) {
    error = "cuMemAlloc: no memory for a workspace";
    return false;
  }
  if (driver.setBytes(larger.memory, 0, larger.bytes, stream)) {
    error = "cuMemsetD8Async failed";
    return false;
  }
  kept = larger;
  return true;
}

} // namespace

fagen_device *deviceOf(int ordinal, const char *&error) {
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

void *streamMemory(int ordinal, CUstream_st *stream, size_t bytes, const char *&error) {
  const Driver *found = driver(error);
  if (!found)
    return nullptr;
  static std::mutex mutex;
  static std::map<std::pair<int, CUstream_st *>, Kept> all;
  std::lock_guard lock(mutex);
  Kept &kept = all[{ordinal, stream}];
  if (kept.bytes < bytes && !grow(*found, kept, bytes, stream, error))
    return nullptr;
  return reinterpret_cast<void *>(kept.memory);
}

int isCapturing(CUstream_st *stream, const char *&error) {
  const Driver *found = driver(error);
  int status = 0;
  if (!found)
    return -1;
  if (found->isCapturing(stream, &status)) {
    error = "cuStreamIsCapturing failed";
    return -1;
  }
  return status != 0;
}

bool zero(void *memory, size_t bytes, CUstream_st *stream, const char *&error) {
  const Driver *found = driver(error);
  if (found && found->setBytes(reinterpret_cast<uintptr_t>(memory), 0, bytes, stream))
    error = "cuMemsetD8Async failed";
  return !error;
}

} // namespace fagen::python
