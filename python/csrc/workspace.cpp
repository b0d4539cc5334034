// fagen: workspaces: one for each device and stream, kept; and of a graph's pool while it captures.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is kept comes from the driver, not from PyTorch's allocator: in a pool of a graph it would count as a leak.
#include "workspace.h"

#include <dlfcn.h>
#include <map>
#include <mutex>
#include <utility>

namespace fagen::torch {
namespace {

constexpr int kRelaxed = 2; ///< CU_STREAM_CAPTURE_MODE_RELAXED

/// The driver's functions, found when the first workspace is asked for: the runtime has loaded the driver by then.
struct Driver {
  int (*isCapturing)(CUstream_st *stream, int *status) = nullptr;
  int (*setBytes)(unsigned long long memory, unsigned char value, size_t count, CUstream_st *stream) = nullptr;
  int (*allocate)(unsigned long long *memory, size_t bytes) = nullptr;
  int (*exchangeCaptureMode)(int *mode) = nullptr;

  template <typename F> static void find(void *library, const char *name, F &function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (!function)
      fail("fagen.CudaError: libcuda.so.1 has no %s; the driver is too old", name);
  }
  Driver() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
      fail("fagen.CudaError: libcuda.so.1 cannot be loaded");
    find(library, "cuStreamIsCapturing", isCapturing);
    find(library, "cuMemsetD8Async", setBytes);
    find(library, "cuMemAlloc_v2", allocate);
    find(library, "cuThreadExchangeStreamCaptureMode", exchangeCaptureMode);
  }
};

void expect(int result, const char *what) {
  if (result)
    fail("fagen.CudaError: %s failed with CUDA error %d", what, result);
}

/// While it lives this thread may allocate although another one captures a graph.
class AllocationAllowed {
public:
  explicit AllocationAllowed(const Driver &driver) : driver(driver) { driver.exchangeCaptureMode(&mode); }
  ~AllocationAllowed() { driver.exchangeCaptureMode(&mode); }

private:
  const Driver &driver;
  int mode = kRelaxed;
};

struct Kept {
  unsigned long long memory = 0;
  size_t bytes = 0;
};

/// Makes the memory of a stream at least so large, and zero. What it had stays: another thread may be about to launch
/// with it. As each is at least twice as large as the one before, all together are at most twice the last.
void grow(const Driver &driver, Kept &kept, size_t bytes, CUstream_st *stream) {
  AllocationAllowed allowed(driver);
  kept = {};
  expect(driver.allocate(&kept.memory, bytes), "cuMemAlloc");
  kept.bytes = bytes;
  expect(driver.setBytes(kept.memory, 0, bytes, stream), "cuMemsetD8Async");
}

} // namespace

Workspace::Workspace(const fagen_choice &choice, int device, CUstream_st *stream) : size(choice.workspace_bytes) {
  if (!size)
    return;
  static const Driver driver;
  int capturing = 0;
  expect(driver.isCapturing(stream, &capturing), "cuStreamIsCapturing");
  if (capturing) {
    const int64_t bytes = static_cast<int64_t>(size);
    ofGraph = emptyTensor(&bytes, 1, shim().aoti_torch_dtype_uint8(), shim().aoti_torch_device_type_cuda(), device);
    memory = ofGraph.data();
    if (size_t zeros = fagen_choice_zero_bytes(&choice))
      expect(driver.setBytes(reinterpret_cast<uintptr_t>(memory), 0, zeros, stream), "cuMemsetD8Async");
    return;
  }
  static std::mutex mutex;
  static std::map<std::pair<int, CUstream_st *>, Kept> all;
  std::lock_guard lock(mutex);
  Kept &kept = all[{device, stream}];
  if (kept.bytes < size)
    grow(driver, kept, size > 2 * kept.bytes ? size : 2 * kept.bytes, stream);
  memory = reinterpret_cast<void *>(kept.memory);
}

} // namespace fagen::torch
