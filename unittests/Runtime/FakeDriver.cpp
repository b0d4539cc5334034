// fagen: a libcuda.so.1 for tests: one GPU of compute capability 8.9.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeDriver.h"

#include "driver.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <fmt/format.h>

using namespace fagen;
using fagen::test::FakeDriver;

namespace {
FakeDriver state;
std::deque<std::string> functions; // by handle: their symbols
char primary;                      // its address is the primary context
} // namespace

extern "C" {

FakeDriver *fakeDriver() { return &state; }

CuResult cuInit(unsigned) { return 0; }
/// NVRTC opens the driver by itself, and asks for tables that are NVIDIA's own: there are none.
CuResult cuGetExportTable(const void **table, const void *) {
  *table = nullptr;
  return 801;
}
CuResult cuDriverGetVersion(int *version) {
  *version = 12040;
  return 0;
}
CuResult cuDeviceGet(CuDevice *device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? 0 : 101;
}
CuResult cuDeviceGetAttribute(int *value, int attribute, CuDevice) {
  *value = attribute == kDeviceMultiprocessors   ? 58
           : attribute == kDeviceCapabilityMajor ? 8
           : attribute == kDeviceCapabilityMinor ? 9
                                                 : 101376;
  return 0;
}
CuResult cuDeviceGetName(char *name, int size, CuDevice) {
  strncpy(name, "fake", size_t(size));
  return 0;
}
CuResult cuDevicePrimaryCtxRetain(CuContext *context, CuDevice) {
  ++state.retained;
  *context = reinterpret_cast<CuContext>(&primary);
  return 0;
}
CuResult cuDevicePrimaryCtxRelease_v2(CuDevice) {
  --state.retained;
  return 0;
}
CuResult cuCtxGetCurrent(CuContext *context) {
  *context = static_cast<CuContext>(state.current);
  return 0;
}
CuResult cuCtxSetCurrent(CuContext context) {
  state.current = context;
  return 0;
}
CuResult cuCtxGetDevice(CuDevice *device) {
  *device = 0;
  return 0;
}
CuResult cuCtxPushCurrent_v2(CuContext context) {
  state.current = context;
  return 0;
}
CuResult cuCtxPopCurrent_v2(CuContext *context) {
  *context = static_cast<CuContext>(state.current);
  state.current = nullptr;
  return 0;
}
CuResult cuModuleLoadDataEx(CuModule *module, const void *image, unsigned, int *, void **values) {
  if (state.failLoad && state.loadsToFail) {
    state.loadsToFail -= state.loadsToFail > 0;
    strcpy(static_cast<char *>(values[0]), "ptxas: no good");
    return state.failLoad;
  }
  state.images.push_back(image);
  ++state.modules;
  *module = reinterpret_cast<CuModule>(&state.images);
  return 0;
}
CuResult cuModuleUnload(CuModule) {
  --state.modules;
  return 0;
}
CuResult cuModuleGetFunction(CuFunction *function, CuModule, const char *name) {
  functions.push_back(name);
  *function = reinterpret_cast<CuFunction>(&functions.back());
  return strcmp(name, "missing") == 0 ? 500 : 0;
}
CuResult cuFuncGetAttribute(int *value, int attribute, CuFunction) {
  *value = attribute == kFunctionRegisters ? 96 : 8;
  return 0;
}
CuResult cuFuncSetAttribute(CuFunction function, int attribute, int value) {
  state.attributes.push_back(fmt::format("{}: {} = {}", *reinterpret_cast<std::string *>(function),
                                         attribute == kFunctionMaxDynamicShared ? "max dynamic shared" : "?", value));
  return 0;
}
CuResult cuLaunchKernel(CuFunction function, unsigned gridX, unsigned, unsigned, unsigned blockX, unsigned, unsigned,
                        unsigned sharedBytes, CuStream stream, void **arguments, void **) {
  if (state.failLaunch)
    return state.failLaunch;
  const auto *params = static_cast<const device::MappedAttentionParams *>(arguments[0]);
  state.launches.push_back(
      {*reinterpret_cast<std::string *>(function), gridX, blockX, sharedBytes, stream, *params, {}});
  memcpy(state.launches.back().form.data(), params + 1, sizeof(state.launches.back().form));
  return 0;
}
CuResult cuLaunchKernelEx(const CuLaunchConfig *config, CuFunction function, void **arguments, void **extra) {
  const CuResult status =
      cuLaunchKernel(function, config->gridX, config->gridY, config->gridZ, config->blockX, config->blockY,
                     config->blockZ, config->sharedBytes, config->stream, arguments, extra);
  for (unsigned i = 0; i < config->attributeCount && status == 0; ++i)
    if (config->attributes[i].id == kLaunchProgrammaticStreamSerialization)
      state.launches.back().beginsEarly = config->attributes[i].value != 0;
  return status;
}
CuResult cuMemAlloc_v2(CuPointer *memory, size_t bytes) {
  if (state.failAllocation)
    return state.failAllocation;
  if (!state.capturing.empty() && state.captureMode != kCaptureRelaxed)
    return 900; // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  auto *begin = static_cast<unsigned char *>(aligned_alloc(256, (bytes + 255) / 256 * 256));
  memset(begin, 0xAB, bytes);
  state.memory.push_back({begin, bytes});
  *memory = reinterpret_cast<CuPointer>(begin);
  return 0;
}
CuResult cuMemFree_v2(CuPointer memory) {
  const auto *begin = reinterpret_cast<unsigned char *>(memory);
  if (std::erase_if(state.memory, [&](const auto &one) { return one.begin == begin; }) != 1)
    return 1;
  free(reinterpret_cast<void *>(memory));
  return 0;
}
CuResult cuMemsetD8Async(CuPointer memory, unsigned char value, size_t bytes, CuStream stream) {
  memset(reinterpret_cast<void *>(memory), value, bytes);
  state.zeroedOn.push_back(stream);
  return 0;
}
CuResult cuStreamCreate(CuStream *stream, unsigned flags) {
  ++state.streams;
  *stream = reinterpret_cast<CuStream>(&state.streams);
  return flags == kStreamNonBlocking ? 0 : 1;
}
CuResult cuStreamDestroy_v2(CuStream) {
  --state.streams;
  return 0;
}
CuResult cuStreamSynchronize(CuStream stream) { return state.capturing.count(stream) ? 900 : 0; }
CuResult cuStreamIsCapturing(CuStream stream, int *capture) {
  *capture = int(state.capturing.count(stream));
  return 0;
}
CuResult cuThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(state.captureMode, *mode);
  return 0;
}
CuResult cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *base, const uint64_t *sizes,
                                const uint64_t *strides, const uint32_t *box, const uint32_t *, int, int swizzle,
                                int promotion, int fill) {
  if (state.failMap)
    return state.failMap;
  // The rules of the driver's documentation.
  bool isLegal = reinterpret_cast<uintptr_t>(base) % 16 == 0 && 2 * box[0] % 16 == 0;
  for (uint32_t n = 0; n < rank; ++n)
    isLegal &= sizes[n] >= 1 && sizes[n] <= uint64_t(1) << 32 && box[n] >= 1 && box[n] <= 256;
  for (uint32_t n = 0; n + 1 < rank; ++n)
    isLegal &= strides[n] % 16 == 0 && strides[n] < uint64_t(1) << 40;
  if (!isLegal)
    return 1;
  memset(map, int('A' + state.maps.size()), sizeof(device::TensorMap));
  state.maps.push_back({map,
                        type,
                        swizzle,
                        promotion,
                        fill,
                        base,
                        {sizes, sizes + rank},
                        {strides, strides + rank - 1},
                        {box, box + rank}});
  return 0;
}
CuResult cuGetErrorName(CuResult result, const char **name) {
  *name = result == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return 0;
}
CuResult cuGetErrorString(CuResult, const char **text) {
  *text = "as the test asked";
  return 0;
}
}
