// fagen: fagen_prepare: finds or makes a row's code, loads it, sets its attributes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compile/compile.h"
#include "device.h"
#include "dispatch.h"
#include "error.h"
#include "verbose.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

using namespace fagen;

namespace {

constexpr CuResult kUnsupportedPtxVersion = 222; // of CUDA_ERROR_...: PTX of a later CUDA than the driver's
constexpr int kSharedWithoutAsking = 48 * 1024;  // more needs the function attribute

/// Makes a context current for a scope.
class CurrentContext {
public:
  CurrentContext(const Driver &driver, CuContext context) : driver(driver), status(driver.cuCtxPushCurrent(context)) {}
  ~CurrentContext() {
    CuContext popped;
    if (status == kCudaSuccess)
      driver.cuCtxPopCurrent(&popped);
  }
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

private:
  const Driver &driver;

public:
  const CuResult status;
};

fagen_status loadModule(const Driver &d, const fagen_row &row, const void *image, CuModule &module) {
  char log[2048] = "";
  int options[] = {kJitErrorLogBuffer, kJitErrorLogBufferBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  CuResult status = d.cuModuleLoadDataEx(&module, image, 2, options, values);
  if (status == kCudaSuccess)
    return FAGEN_OK;
  if (status == kUnsupportedPtxVersion)
    return fail(
        FAGEN_CUDA,
        "cannot load %s: the driver is of CUDA %d.%d and the PTX was made by a later CUDA; update the driver, or "
        "make it with that CUDA",
        row.variant, driverCuda() / 1000, driverCuda() % 1000 / 10);
  char action[2560];
  snprintf(action, sizeof(action), "load %s%s%s", row.variant, *log ? ": " : "", log);
  return failCuda(status, action);
}

fagen_status loadFunction(const Driver &d, const fagen_launch &launch, PreparedRow &prepared, CuFunction &function) {
  int registers = 0, local = 0;
  CuResult status = d.cuModuleGetFunction(&function, prepared.module, launch.symbol);
  if (status == kCudaSuccess && launch.shared_bytes > kSharedWithoutAsking)
    status = d.cuFuncSetAttribute(function, kFunctionMaxDynamicShared, int(launch.shared_bytes));
  status = status ? status : d.cuFuncGetAttribute(&registers, kFunctionRegisters, function);
  status = status ? status : d.cuFuncGetAttribute(&local, kFunctionLocalBytes, function);
  if (status)
    return failCuda(status, launch.symbol);
  prepared.registers = std::max(prepared.registers, registers);
  prepared.localBytes = std::max(prepared.localBytes, local);
  return FAGEN_OK;
}

fagen_status load(const fagen_device &device, const fagen_row &row, const void *image, PreparedRow &prepared) {
  const Driver &d = *driver();
  CurrentContext current(d, device.context);
  if (current.status)
    return failCuda(current.status, "make the device's context current");
  fagen_status status = loadModule(d, row, image, prepared.module);
  for (uint32_t i = 0; i < row.launch_count && !status; ++i)
    status = loadFunction(d, row.launches[i], prepared, prepared.functions[i]);
  if (status && prepared.module)
    d.cuModuleUnload(prepared.module);
  return status;
}

/// On a device that is only described there is nothing to load.
fagen_status loadWhereThereIsAGpu(const fagen_device &device, const fagen_row &row, const void *image,
                                  PreparedRow &prepared) {
  return device.context ? load(device, row, image, prepared) : FAGEN_OK;
}

fagen_status prepareBinary(const fagen_device &device, const fagen_row &row, const fagen_binary &binary,
                           PreparedRow &prepared) {
  prepared.origin = binary.kind == FAGEN_BINARY_CUBIN ? "cubin" : "ptx";
  verbose("%s: %s for sm_%u, made ahead of time", row.variant, prepared.origin, binary.sm);
  return loadWhereThereIsAGpu(device, row, binary.data, prepared);
}

fagen_status prepareSource(const fagen_device &device, const fagen_row &row, PreparedRow &prepared) {
  if (!row.code->source)
    return fail(FAGEN_UNSUPPORTED, "%s was linked without source and without a binary for sm_%u", row.variant,
                device.sm);
  Compiled compiled;
  if (fagen_status status = compileRow(row, device.sm, compiled))
    return status;
  prepared.origin = compiled.fromCache ? "cache" : "nvrtc";
  return loadWhereThereIsAGpu(device, row, compiled.binary.data(), prepared);
}

/// By a binary; by the source where there is none, or where the driver refuses it, as it does code of a later CUDA.
fagen_status prepareCode(const fagen_device &device, const fagen_row &row, PreparedRow &prepared) {
  const fagen_binary *binary = binaryFor(*row.code, device.sm);
  if (!binary)
    return prepareSource(device, row, prepared);
  const fagen_status status = prepareBinary(device, row, *binary, prepared);
  if (status != FAGEN_CUDA || !row.code->source)
    return status;
  verbose("%s: its source is compiled: %s", row.variant, fagen_last_error());
  prepared = {.row = &row};
  return prepareSource(device, row, prepared);
}

fagen_status prepare(const fagen_row &row, fagen_device &device) {
  std::lock_guard lock(device.prepareLock);
  if (device.prepared.find(&row))
    return FAGEN_OK;
  auto prepared = std::make_unique<PreparedRow>();
  prepared->row = &row;
  if (fagen_status status = prepareCode(device, row, *prepared))
    return status;
  device.prepared.insert(std::move(prepared));
  return FAGEN_OK;
}

} // namespace

fagen_status fagen_prepare(const fagen_choice *choice, fagen_device *device) {
  if (fagen_status status = checkStruct(choice, "fagen_choice"))
    return status;
  if (!choice->row)
    return fail(FAGEN_INVALID, "the choice was not filled by fagen_query");
  if (choice->device != device)
    return fail(FAGEN_INVALID, "the choice was made for another device");
  if (device->prepared.find(choice->row))
    return FAGEN_OK;
  try {
    return prepare(*choice->row, *device);
  } catch (const std::bad_alloc &) {
    return fail(FAGEN_OUT_OF_MEMORY, "no host memory to prepare %s", choice->row->variant);
  } catch (const std::exception &error) {
    return fail(FAGEN_COMPILE, "cannot prepare %s: %s", choice->row->variant, error.what());
  }
}
