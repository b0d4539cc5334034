// fagen: the tensor maps of a launch, described from its parameters and encoded by the driver.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "maps.h"

#include "error.h"

#include <cstdio>
#include <cstring>

namespace fagen {

namespace {

constexpr uint64_t kUnit = 16; // bytes; addresses, strides and rows of boxes are multiples of it

const char *const kTensorNames[] = {"q", "k", "v", "o"};

/// cuda.h's numbers.
enum : int { kMapU8 = 0, kMapU32 = 2, kMapF16 = 6, kMapBf16 = 9 };
enum : int { kMapNoInterleave = 0, kMapPromote256B = 3, kMapZeroFill = 0 };

int typeOf(device::MapElement element) {
  switch (element) {
  case device::MapElement::kByte:
    return kMapU8;
  case device::MapElement::kF16:
    return kMapF16;
  case device::MapElement::kBf16:
    return kMapBf16;
  case device::MapElement::kWord:
    return kMapU32;
  }
  return kMapU8;
}

/// Of attention's tensors.
device::MapElement elementOf(const fagen_row &row) {
  switch (row.dtype) {
  case FAGEN_DTYPE_BF16:
    return device::MapElement::kBf16;
  case FAGEN_DTYPE_E4M3:
    return device::MapElement::kByte;
  }
  return device::MapElement::kF16;
}

int swizzleNumber(device::BoxSwizzle swizzle) {
  switch (swizzle) {
  case device::BoxSwizzle::k32B:
    return 1;
  case device::BoxSwizzle::k64B:
    return 2;
  case device::BoxSwizzle::k128B:
    return 3;
  case device::BoxSwizzle::kNone:
    break;
  }
  return 0;
}

} // namespace

device::TensorMapDescription describeBox(const void *base, device::MapElement element,
                                         std::span<const MapDimension> dimensions, uint32_t swizzle) {
  device::TensorMapDescription d = {};
  d.base = base;
  d.element = element;
  d.element_bytes = static_cast<unsigned char>(device::bytes_of(element));
  d.swizzle = static_cast<device::BoxSwizzle>(swizzle);
  d.mark = device::kMapMark;
  for (const MapDimension &dimension : dimensions) {
    d.sizes[d.rank] = static_cast<unsigned>(dimension.size);
    d.strides[d.rank] = dimension.size == 1 ? kUnit : static_cast<uint64_t>(dimension.stride) * d.element_bytes;
    d.box[d.rank++] = static_cast<unsigned short>(dimension.box);
  }
  return d;
}

device::TensorMapDescription describeMap(const fagen_row &row, const fagen_map &map, const device::AttentionParams &p) {
  const bool isKeys = map.tensor == FAGEN_MAP_K || map.tensor == FAGEN_MAP_V;
  const void *const pointers[] = {p.q, p.k, p.v, p.o};
  const long long *const strides[] = {p.q_stride, p.k_stride, p.v_stride, p.o_stride};
  const int rows = isKeys ? p.seq_kv : p.seq_q;
  const uint32_t columns = map.tensor == FAGEN_MAP_Q || map.tensor == FAGEN_MAP_K ? row.head_dim_qk : row.head_dim_v;
  const long long *const stride = strides[map.tensor]; // batch, head, row
  MapDimension dimensions[device::kMapRank];
  unsigned rank = 0;
  auto add = [&](uint64_t size, int64_t apart, uint32_t box) { dimensions[rank++] = {size, apart, box}; };
  add(map.box_panels ? map.box_columns : columns, 1, map.box_columns);
  add(rows > 0 ? uint64_t(rows) : 1, stride[2], map.box_rows);
  if (map.box_panels)
    add(columns / map.box_columns, map.box_columns, map.box_panels);
  add(uint64_t(isKeys ? p.kv_heads : p.heads), stride[1], 1);
  add(uint64_t(p.batch), stride[0], 1);
  return describeBox(rows > 0 ? pointers[map.tensor] : p.q, elementOf(row), {dimensions, rank}, map.swizzle);
}

const char *refusalOf(const device::TensorMapDescription &d) {
  constexpr uint64_t kStrideEnd = uint64_t(1) << 40, kMaxBox = 256;
  const uint64_t rowBytes = uint64_t(d.box[0]) * d.element_bytes;
  if (reinterpret_cast<uintptr_t>(d.base) % kUnit)
    return "its address is not a multiple of 16 bytes";
  if (d.rank < 1 || d.rank > device::kMapRank)
    return "it has not 1 to 5 dimensions";
  if (d.element_bytes != 1 && d.element_bytes != 2 && d.element_bytes != 4)
    return "its elements have not 1, 2 or 4 bytes";
  if (rowBytes % kUnit || (d.swizzle != device::BoxSwizzle::kNone && rowBytes > uint64_t(d.swizzle)))
    return "rows of its box are not multiples of 16 bytes, or longer than the swizzle";
  for (unsigned n = 0; n < d.rank; ++n) {
    if (d.sizes[n] == 0) // 2^32, the largest one, does not fit the description either
      return "a dimension has no elements";
    if (d.box[n] == 0 || d.box[n] > kMaxBox)
      return "a side of its box is not 1 to 256 elements";
    if (n > 0 && d.strides[n] % kUnit)
      return "a stride is not a multiple of 16 bytes";
    if (n > 0 && d.strides[n] >= kStrideEnd)
      return "a stride is 2^40 bytes or more";
  }
  return nullptr;
}

RefusedMap findRefusedMap(const fagen_row &row, const device::AttentionParams &params) {
  if (params.batch == 0 || params.heads == 0 || params.seq_q == 0)
    return {}; // nothing is launched
  for (uint32_t i = 0; i < row.map_count; ++i)
    if (const char *reason = refusalOf(describeMap(row, row.maps[i], params)))
      return {kTensorNames[row.maps[i].tensor], reason};
  return {};
}

device::TensorMap &mapOf(device::MappedAttentionParams &params, uint32_t tensor) {
  device::TensorMap *const maps[] = {&params.q_map, &params.k_map, &params.v_map, &params.o_map};
  return *maps[tensor];
}

fagen_status encodeMap(const Driver &driver, const device::TensorMapDescription &d, const char *name,
                       device::TensorMap &map) {
  if (!driver.cuTensorMapEncodeTiled)
    return fail(FAGEN_UNSUPPORTED, "this CUDA driver has no tensor maps; 12.0 or newer does");
  uint64_t sizes[device::kMapRank], strides[device::kMapRank];
  uint32_t box[device::kMapRank], steps[device::kMapRank];
  for (unsigned n = 0; n < d.rank; ++n) {
    sizes[n] = d.sizes[n];
    strides[n] = d.strides[n];
    box[n] = d.box[n];
    steps[n] = 1;
  }
  const CuResult status = driver.cuTensorMapEncodeTiled(&map, typeOf(d.element), d.rank, const_cast<void *>(d.base),
                                                        sizes, strides + 1, box, steps, kMapNoInterleave,
                                                        swizzleNumber(d.swizzle), kMapPromote256B, kMapZeroFill);
  if (status == kCudaSuccess)
    return FAGEN_OK;
  char action[64];
  snprintf(action, sizeof(action), "encode the tensor map of %s", name);
  return failCuda(status, action);
}

fagen_status encodeMaps(const Driver &driver, const fagen_row &row, device::MappedAttentionParams &params) {
  fagen_status status = FAGEN_OK;
  for (uint32_t i = 0; i < row.map_count && !status; ++i) {
    const uint32_t tensor = row.maps[i].tensor;
    status = encodeMap(driver, describeMap(row, row.maps[i], params), kTensorNames[tensor], mapOf(params, tensor));
  }
  return status;
}

void describeMaps(const fagen_row &row, device::MappedAttentionParams &params) {
  for (uint32_t i = 0; i < row.map_count; ++i) {
    const device::TensorMapDescription d = describeMap(row, row.maps[i], params);
    memcpy(&mapOf(params, row.maps[i].tensor), &d, sizeof(d));
  }
}

} // namespace fagen
