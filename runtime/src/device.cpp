// fagen: opens, describes and closes devices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device.h"

#include "error.h"

#include <cstdio>
#include <new>

namespace fagen {
namespace {

size_t hashOf(const fagen_row *row) { return (reinterpret_cast<uintptr_t>(row) >> 4) * 0x9E3779B97F4A7C15u >> 20; }

/// What a CTA may have, from NVIDIA's table of compute capabilities; the least of any known one for an unknown GPU.
uint32_t sharedPerBlockOf(uint32_t sm) {
  switch (sm) {
  case 80:
  case 87:
    return 166912;
  case 90:
  case 100:
  case 103:
    return 232448;
  default:
    return 101376;
  }
}

fagen_status describeGpu(const Driver &d, CuDevice device, fagen_device &result) {
  int major = 0, minor = 0, count = 0, shared = 0;
  CuResult status = d.cuDeviceGetAttribute(&major, kDeviceCapabilityMajor, device);
  status = status ? status : d.cuDeviceGetAttribute(&minor, kDeviceCapabilityMinor, device);
  status = status ? status : d.cuDeviceGetAttribute(&count, kDeviceMultiprocessors, device);
  status = status ? status : d.cuDeviceGetAttribute(&shared, kDeviceSharedPerBlockOptin, device);
  status = status ? status : d.cuDeviceGetName(result.name, sizeof(result.name), device);
  if (status)
    return failCuda(status, "read the device's attributes");
  result.ordinal = device;
  result.sm = uint32_t(major * 10 + minor);
  result.smCount = uint32_t(count);
  result.sharedPerBlock = uint32_t(shared);
  return FAGEN_OK;
}

fagen_status openCurrentContext(const Driver &d, fagen_device &result) {
  CuDevice device = 0;
  if (CuResult status = d.cuCtxGetCurrent(&result.context))
    return failCuda(status, "read the current context");
  if (!result.context)
    return fail(FAGEN_CUDA, "this thread has no current CUDA context");
  if (CuResult status = d.cuCtxGetDevice(&device))
    return failCuda(status, "read the current context's device");
  return describeGpu(d, device, result);
}

fagen_status openPrimaryContext(const Driver &d, int ordinal, fagen_device &result) {
  CuDevice device = 0;
  if (CuResult status = d.cuDeviceGet(&device, ordinal))
    return failCuda(status, "open the device of that ordinal");
  if (fagen_status status = describeGpu(d, device, result))
    return status;
  if (CuResult status = d.cuDevicePrimaryCtxRetain(&result.context, device))
    return failCuda(status, "retain the device's primary context");
  result.primary = true;
  return FAGEN_OK;
}

} // namespace

fagen_status checkCurrent(const Driver &d, const fagen_device &device) {
  CuContext current = nullptr;
  if (CuResult status = d.cuCtxGetCurrent(&current))
    return failCuda(status, "read the current context");
  if (current != device.context)
    return fail(FAGEN_INVALID, "the current context is not the device's; fagen_device_make_current makes it so");
  return FAGEN_OK;
}

PreparedRows::PreparedRows() {
  generations.push_back(std::make_unique<Slots>(64));
  current.store(generations.back().get(), std::memory_order_relaxed);
}

const PreparedRow *PreparedRows::find(const fagen_row *row) const {
  const Slots &slots = *current.load(std::memory_order_acquire);
  for (size_t i = hashOf(row);; ++i) {
    const PreparedRow *entry = slots.entries[i & slots.mask].load(std::memory_order_acquire);
    if (!entry || entry->row == row)
      return entry;
  }
}

void PreparedRows::place(Slots &slots, const PreparedRow *prepared) {
  size_t i = hashOf(prepared->row);
  while (slots.entries[i & slots.mask].load(std::memory_order_relaxed))
    ++i;
  slots.entries[i & slots.mask].store(prepared, std::memory_order_release);
}

void PreparedRows::insert(std::unique_ptr<PreparedRow> prepared) {
  // At most half full, so that a lookup always meets an empty slot.
  size_t size = generations.back()->mask + 1;
  if ((owned.size() + 1) * 2 > size) {
    auto larger = std::make_unique<Slots>(size * 2);
    for (const auto &entry : owned)
      place(*larger, entry.get());
    generations.push_back(std::move(larger));
    current.store(generations.back().get(), std::memory_order_release);
  }
  owned.push_back(std::move(prepared));
  place(*generations.back(), owned.back().get());
}

} // namespace fagen

using namespace fagen;

fagen_status fagen_device_create(int ordinal, fagen_device **device) {
  if (!device)
    return fail(FAGEN_INVALID, "device is NULL");
  *device = nullptr;
  if (ordinal < FAGEN_CURRENT_CONTEXT)
    return fail(FAGEN_INVALID, "ordinal is %d; it is 0 or more, or FAGEN_CURRENT_CONTEXT (-1)", ordinal);
  const Driver *d = driver();
  if (!d)
    return FAGEN_CUDA;
  std::unique_ptr<fagen_device> result(new (std::nothrow) fagen_device);
  if (!result)
    return fail(FAGEN_OUT_OF_MEMORY, "no host memory for a device");
  fagen_status status =
      ordinal == FAGEN_CURRENT_CONTEXT ? openCurrentContext(*d, *result) : openPrimaryContext(*d, ordinal, *result);
  if (status == FAGEN_OK)
    *device = result.release();
  return status;
}

fagen_status fagen_device_describe(uint32_t compute_capability, uint32_t sm_count, fagen_device **device) {
  if (!device)
    return fail(FAGEN_INVALID, "device is NULL");
  *device = nullptr;
  if (compute_capability < 50 || compute_capability > 999)
    return fail(FAGEN_INVALID, "compute capability is %u; it is major * 10 + minor, 50 or more", compute_capability);
  if (sm_count == 0)
    return fail(FAGEN_INVALID, "sm_count is 0; a GPU has at least one");
  std::unique_ptr<fagen_device> result(new (std::nothrow) fagen_device);
  if (!result)
    return fail(FAGEN_OUT_OF_MEMORY, "no host memory for a device");
  result->sm = compute_capability;
  result->smCount = sm_count;
  result->sharedPerBlock = sharedPerBlockOf(compute_capability);
  snprintf(result->name, sizeof(result->name), "described sm_%u, %u SMs", compute_capability, sm_count);
  *device = result.release();
  return FAGEN_OK;
}

void fagen_device_destroy(fagen_device *device) {
  if (!device)
    return;
  if (device->context) {
    // Failures are the context's end having come first: then its modules are gone already.
    const Driver &d = *driver();
    if (d.cuCtxPushCurrent(device->context) == kCudaSuccess) {
      for (const auto &prepared : device->prepared.all())
        d.cuModuleUnload(prepared->module);
      device->workspaces.release(d);
      CuContext popped;
      d.cuCtxPopCurrent(&popped);
    }
    if (device->primary)
      d.cuDevicePrimaryCtxRelease(device->ordinal);
  }
  delete device;
}

fagen_status fagen_device_make_current(const fagen_device *device) {
  if (!device)
    return fail(FAGEN_INVALID, "device is NULL");
  if (!device->context)
    return fail(FAGEN_CUDA, "the device is a description (%s), not a GPU", device->name);
  if (CuResult status = driver()->cuCtxSetCurrent(device->context))
    return failCuda(status, "make the device's context current");
  return FAGEN_OK;
}

fagen_status fagen_device_get_info(const fagen_device *device, fagen_device_info *info) {
  if (!device)
    return fail(FAGEN_INVALID, "device is NULL");
  if (fagen_status status = checkStruct(info, "fagen_device_info"))
    return status;
  info->ordinal = device->ordinal;
  info->compute_capability = device->sm;
  info->sm_count = device->smCount;
  info->shared_bytes_per_block = device->sharedPerBlock;
  snprintf(info->name, sizeof(info->name), "%s", device->name);
  return FAGEN_OK;
}
