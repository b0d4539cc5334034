// fagen: the tensor maps of a launch, described from its parameters and encoded by the driver.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A map holds a tensor's address, so it is made for each call, on the host, into the parameters that the launch copies:
// nothing to allocate, nothing that a graph capture could miss.
#pragma once

#include "driver.h"

#include <fagen/device/params.h>
#include <fagen/table.h>

#include <span>

namespace fagen {

/// A dimension of a map: how many elements, how far apart (in elements), and how many a box has.
struct MapDimension {
  uint64_t size;
  int64_t stride;
  uint32_t box;
};

/// The map of a tensor at `base` whose boxes one copy moves, with rows of `swizzle` bytes. Dimension 0 is dense. One of
/// size 1 is given a stride that the driver accepts.
device::TensorMapDescription describeBox(const void *base, device::MapElement element,
                                         std::span<const MapDimension> dimensions, uint32_t swizzle);

/// Of attention's tensors. Dimensions are columns, rows, heads and batch. A tensor without rows is described as one
/// row of Q, which nobody loads.
device::TensorMapDescription describeMap(const fagen_row &row, const fagen_map &map,
                                         const device::AttentionParams &params);

/// Why cuTensorMapEncodeTiled refuses a map like this; null when it takes it. All that the driver asks for (CUDA driver
/// API, Tensor Map Object Management) is asked for here, so that what fagen_query accepts can be encoded. A stride of
/// 0 is a multiple of 16 like others: all indices of its dimension are the same memory.
const char *refusalOf(const device::TensorMapDescription &description);

/// The first of a row's maps that cannot be had for a problem; no reason where there is none. `params` needs no
/// pointers: fagen_run checks those by the row's alignment.
struct RefusedMap {
  const char *tensor = nullptr, *reason = nullptr;
};
RefusedMap findRefusedMap(const fagen_row &row, const device::AttentionParams &params);

/// The driver's encoding; `name` is the tensor's, for messages.
fagen_status encodeMap(const Driver &driver, const device::TensorMapDescription &description, const char *name,
                       device::TensorMap &map);

/// The map of its tensor in the parameters.
device::TensorMap &mapOf(device::MappedAttentionParams &params, uint32_t tensor);

/// Fills the maps that the row's kernels take; the pointers of `params` are set. Nothing for a row without maps.
fagen_status encodeMaps(const Driver &driver, const fagen_row &row, device::MappedAttentionParams &params);

/// The same for the emulator: descriptions stand in the maps' places.
void describeMaps(const fagen_row &row, device::MappedAttentionParams &params);

} // namespace fagen
