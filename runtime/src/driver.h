// fagen: the few functions of the CUDA driver that the runtime calls, found at run time in libcuda.so.1.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Own declarations, so that no CUDA toolkit is needed to build; names and numbers are those of cuda.h, which has kept
// them since CUDA 4. A symbol's versioned name (cuCtxPushCurrent_v2) is what cuda.h's macros expand to.
#pragma once

#include <fagen/fagen.h>

#include <cstddef>

namespace fagen {

using CuResult = int;
using CuDevice = int;
using CuContext = struct CUctx_st *;
using CuModule = struct CUmod_st *;
using CuFunction = struct CUfunc_st *;
using CuStream = ::CUstream_st *;
using CuPointer = unsigned long long; ///< of the GPU's memory

enum : CuResult { kCudaSuccess = 0, kCudaOutOfMemory = 2 };

/// The CUDA that a driver must be of to serve the runtime: 11.0, as cuDriverGetVersion writes it.
constexpr int kOldestCuda = 11000;

enum CuDeviceAttribute {
  kDeviceMultiprocessors = 16,
  kDeviceCapabilityMajor = 75,
  kDeviceCapabilityMinor = 76,
  kDeviceSharedPerBlockOptin = 97,
};

enum CuFunctionAttribute { kFunctionLocalBytes = 3, kFunctionRegisters = 4, kFunctionMaxDynamicShared = 8 };

enum CuStreamFlag : unsigned { kStreamNonBlocking = 1 };

enum CuStreamCaptureMode { kCaptureRelaxed = 2 };

enum CuJitOption { kJitErrorLogBuffer = 5, kJitErrorLogBufferBytes = 6 };

/// CUlaunchAttribute: an int is the only value that is set here.
struct CuLaunchAttribute {
  int id;
  char unused[4];
  union {
    int value;
    char bytes[64];
  };
};
enum { kLaunchProgrammaticStreamSerialization = 6 };

/// CUlaunchConfig.
struct CuLaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  CuStream stream;
  CuLaunchAttribute *attributes;
  unsigned attributeCount;
};

struct Driver {
  CuResult (*cuInit)(unsigned flags);
  CuResult (*cuDriverGetVersion)(int *version);
  CuResult (*cuDeviceGet)(CuDevice *device, int ordinal);
  CuResult (*cuDeviceGetAttribute)(int *value, int attribute, CuDevice device);
  CuResult (*cuDeviceGetName)(char *name, int size, CuDevice device);
  CuResult (*cuDevicePrimaryCtxRetain)(CuContext *context, CuDevice device);
  CuResult (*cuDevicePrimaryCtxRelease)(CuDevice device);
  CuResult (*cuCtxGetCurrent)(CuContext *context);
  CuResult (*cuCtxSetCurrent)(CuContext context);
  CuResult (*cuCtxGetDevice)(CuDevice *device);
  CuResult (*cuCtxPushCurrent)(CuContext context);
  CuResult (*cuCtxPopCurrent)(CuContext *context);
  CuResult (*cuModuleLoadDataEx)(CuModule *module, const void *image, unsigned count, int *options, void **values);
  CuResult (*cuModuleUnload)(CuModule module);
  CuResult (*cuModuleGetFunction)(CuFunction *function, CuModule module, const char *name);
  CuResult (*cuFuncGetAttribute)(int *value, int attribute, CuFunction function);
  CuResult (*cuFuncSetAttribute)(CuFunction function, int attribute, int value);
  CuResult (*cuLaunchKernel)(CuFunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                             unsigned blockY, unsigned blockZ, unsigned sharedBytes, CuStream stream, void **arguments,
                             void **extra);
  /// Since CUDA 11.8; null in an older driver.
  CuResult (*cuLaunchKernelEx)(const CuLaunchConfig *config, CuFunction function, void **arguments, void **extra);
  CuResult (*cuMemAlloc)(CuPointer *memory, size_t bytes);
  CuResult (*cuMemFree)(CuPointer memory);
  CuResult (*cuMemsetD8Async)(CuPointer memory, unsigned char value, size_t bytes, CuStream stream);
  CuResult (*cuStreamCreate)(CuStream *stream, unsigned flags);
  CuResult (*cuStreamDestroy)(CuStream stream);
  CuResult (*cuStreamSynchronize)(CuStream stream);
  CuResult (*cuStreamIsCapturing)(CuStream stream, int *capture); ///< 0: it is not
  CuResult (*cuThreadExchangeStreamCaptureMode)(int *mode);
  /// Since CUDA 12.0; null in an older driver.
  CuResult (*cuTensorMapEncodeTiled)(void *map, int type, uint32_t rank, void *base, const uint64_t *sizes,
                                     const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                                     int interleave, int swizzle, int promotion, int fill);
  CuResult (*cuGetErrorName)(CuResult result, const char **name);
  CuResult (*cuGetErrorString)(CuResult result, const char **text);
};

/// The driver, loaded and initialised by the first call; null with a reason for fagen_last_error when it cannot be.
const Driver *driver();

/// The driver's CUDA as it says it: 13000 is 13.0; 0 without a driver.
int driverCuda();

/// Fails with the driver's words for `result`; what was attempted stands in `action`: "load kernel x".
[[gnu::cold]] fagen_status failCuda(CuResult result, const char *action);

} // namespace fagen
