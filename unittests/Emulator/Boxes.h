// fagen: the tensor whose boxes the bulk copies of these tests move.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstring>
#include <fagen/device/tensor_map.h>

namespace fagen::emulator {

/// Rows of 16-bit elements, this many elements apart; a box has whole rows, whose chunks are swizzled.
inline constexpr unsigned kRowElements = 64;

/// Of `rows` rows whose first `columns` elements belong to the tensor, as the emulator reads it.
inline device::TensorMap mapOf(const void *base, unsigned rows, unsigned columns, unsigned boxRows) {
  device::TensorMapDescription d = {};
  d.base = base;
  d.strides[1] = kRowElements * 2;
  d.sizes[0] = columns;
  d.sizes[1] = rows;
  d.box[0] = kRowElements;
  d.box[1] = static_cast<unsigned short>(boxRows);
  d.rank = 2;
  d.element_bytes = 2;
  d.swizzle = device::BoxSwizzle::k128B;
  d.mark = device::kMapMark;
  device::TensorMap map = {};
  std::memcpy(&map, &d, sizeof(d));
  return map;
}

} // namespace fagen::emulator
