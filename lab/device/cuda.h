// fagen: the CUDA driver functions that measuring needs beyond those of the runtime: memory, streams, events, graphs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "device.h"
#include "runtime/src/driver.h"

namespace fagen::lab {

using CuDevicePtr = unsigned long long;
using CuEvent = struct CUevent_st *;
using CuGraph = struct CUgraph_st *;
using CuGraphExec = struct CUgraphExec_st *;

/// Found in the library that fagen::driver() loaded. Every call goes through checkCuda().
struct MeasuringDriver {
  CuResult (*cuDriverGetVersion)(int *version);
  CuResult (*cuMemAlloc)(CuDevicePtr *memory, size_t bytes);
  CuResult (*cuMemFree)(CuDevicePtr memory);
  CuResult (*cuMemGetInfo)(size_t *free, size_t *total);
  CuResult (*cuMemsetD32Async)(CuDevicePtr memory, unsigned value, size_t words, CuStream stream);
  CuResult (*cuMemcpyHtoD)(CuDevicePtr to, const void *from, size_t bytes);
  CuResult (*cuMemcpyDtoH)(void *to, CuDevicePtr from, size_t bytes);
  CuResult (*cuMemcpyDtoDAsync)(CuDevicePtr to, CuDevicePtr from, size_t bytes, CuStream stream);
  CuResult (*cuDeviceGetPCIBusId)(char *text, int size, CuDevice device);
  CuResult (*cuStreamCreate)(CuStream *stream, unsigned flags);
  CuResult (*cuStreamDestroy)(CuStream stream);
  CuResult (*cuStreamSynchronize)(CuStream stream);
  CuResult (*cuStreamBeginCapture)(CuStream stream, int mode);
  CuResult (*cuStreamEndCapture)(CuStream stream, CuGraph *graph);
  CuResult (*cuGraphInstantiate)(CuGraphExec *executable, CuGraph graph, unsigned long long flags);
  CuResult (*cuGraphLaunch)(CuGraphExec executable, CuStream stream);
  CuResult (*cuGraphExecDestroy)(CuGraphExec executable);
  CuResult (*cuGraphDestroy)(CuGraph graph);
  CuResult (*cuEventCreate)(CuEvent *event, unsigned flags);
  CuResult (*cuEventDestroy)(CuEvent event);
  CuResult (*cuEventRecord)(CuEvent event, CuStream stream);
  CuResult (*cuEventRecordWithFlags)(CuEvent event, CuStream stream, unsigned flags);
  CuResult (*cuEventQuery)(CuEvent event);
  CuResult (*cuEventSynchronize)(CuEvent event);
  CuResult (*cuEventElapsedTime)(float *milliseconds, CuEvent start, CuEvent end);
};

enum : CuResult { kCudaNotReady = 600 };

/// UserError when this machine has no usable driver.
const MeasuringDriver &measuringDriver();

/// DeviceError with the driver's words when `result` is not success.
void checkCuda(CuResult result, const char *action);
/// The same for the runtime's calls.
void checkStatus(fagen_status status, const char *action);

/// The first GPU, its primary context current on this thread, and a stream.
class Gpu {
public:
  Gpu();
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  fagen_device *device() const { return handle; }
  CuStream stream() const { return work; }
  const fagen_device_info &info() const { return description; }
  std::string driverVersion() const; ///< the CUDA version that the driver speaks, "13.0"
  std::string pciBusId() const;      ///< "0000:18:00.0"
  int64_t l2Bytes() const;
  int64_t freeBytes() const; ///< of memory, now

private:
  fagen_device *handle = nullptr;
  CuStream work = nullptr;
  fagen_device_info description = makeAbi<fagen_device_info>();
};

} // namespace fagen::lab
