// fagen: a driver whose GPU computes nothing, for tests of what is around a launch. Device memory is the host's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FAKE_CAPABILITY=80, FAKE_LAUNCH: the status of launches, FAKE_O: a file that is copied from the device in place of
// what lies there.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMajor = 75, kMinor = 76, kSms = 16, kSharedOptIn = 97 };

static int number(const char *name, int otherwise) {
  const char *value = getenv(name);
  return value ? atoi(value) : otherwise;
}

int cuInit(unsigned flags) { return flags != 0; }
// NVRTC opens the driver by itself, and asks for tables that are NVIDIA's own: there are none.
int cuGetExportTable(const void **table, const void *id) { return *table = NULL, id ? 500 : 1; }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, ordinal ? 101 : 0; }
int cuDeviceGetName(char *name, int size, int device) {
  return snprintf(name, (size_t)size, "Fake GPU %d", device) < 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  const int capability = number("FAKE_CAPABILITY", 80);
  *value = attribute == kMajor         ? capability / 10
           : attribute == kMinor       ? capability % 10
           : attribute == kSms         ? 108
           : attribute == kSharedOptIn ? 166912
                                       : 0;
  return device;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &cuInit, device; }
int cuDevicePrimaryCtxRelease_v2(int device) { return device; }
int cuCtxGetCurrent(void **context) { return *context = &cuInit, 0; }
int cuCtxSetCurrent(void *context) { return !context; }
int cuCtxGetDevice(int *device) { return *device = 0; }
int cuCtxPushCurrent_v2(void *context) { return !context; }
int cuCtxPopCurrent_v2(void **context) {
  if (context)
    *context = &cuInit;
  return 0;
}
int cuCtxSynchronize(void) { return 0; }
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  (void)count, (void)options, (void)values;
  return *module = &cuInit, !image;
}
int cuModuleUnload(void *module) { return !module; }
int cuModuleGetFunction(void **function, void *module, const char *name) { return *function = module, !name; }
int cuFuncGetAttribute(int *value, int attribute, void *function) { return *value = attribute, !function; }
int cuFuncSetAttribute(void *function, int attribute, int value) { return !function || attribute < 0 || value < 0; }
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c,
                   unsigned shared, void *stream, void **arguments, void **extra) {
  (void)x, (void)y, (void)z, (void)a, (void)b, (void)c, (void)shared, (void)stream, (void)extra;
  return !function || !arguments ? 1 : number("FAKE_LAUNCH", 0);
}
int cuMemAlloc_v2(uint64_t *memory, size_t bytes) {
  return *memory = (uint64_t)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256), !*memory;
}
int cuMemFree_v2(uint64_t memory) { return free((void *)(uintptr_t)memory), 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  return memcpy((void *)(uintptr_t)to, from, bytes), 0;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  FILE *file = getenv("FAKE_O") ? fopen(getenv("FAKE_O"), "rb") : NULL;
  if (!file)
    return memcpy(to, (void *)(uintptr_t)from, bytes), 0;
  const size_t read = fread(to, 1, bytes, file);
  fclose(file);
  return read != bytes;
}
int cuMemsetD8Async(uint64_t memory, unsigned char value, size_t bytes, void *stream) {
  (void)stream;
  return memset((void *)(uintptr_t)memory, value, bytes), 0;
}
int cuStreamCreate(void **stream, unsigned flags) { return *stream = &cuInit, flags > 1; }
int cuStreamDestroy_v2(void *stream) { return !stream; }
int cuStreamSynchronize(void *stream) { return (void)stream, 0; }
int cuStreamIsCapturing(void *stream, int *capture) { return (void)stream, *capture = 0; }
int cuThreadExchangeStreamCaptureMode(int *mode) { return !mode; }
int cuGetErrorName(int result, const char **name) {
  return *name = result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR", 0;
}
int cuGetErrorString(int result, const char **text) {
  return *text = result == 700 ? "an illegal memory access was encountered" : "an error", 0;
}
