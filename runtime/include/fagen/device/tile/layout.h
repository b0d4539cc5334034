// fagen: where (row, column) of a shared tile lies. The one truth for kernels, compiler and runtime.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Freestanding constexpr C++17 without CUDA keywords: kernels are compiled so that constexpr functions serve device
// code too (nvcc --expt-relaxed-constexpr, NVRTC -default-device).
#pragma once

namespace fagen::device {

/// kNone: rows one behind the other. kXor: panels of 64, 32 or 16 columns of 2-byte elements (the widest that divides
/// the columns), one behind the other; inside a panel the 16-byte chunks of a row are permuted by the row number so
/// that eight consecutive rows of one chunk column lie in eight different groups of four banks: ldmatrix is free of
/// bank conflicts, and 16-byte copies are where a row is one panel or panels are 128 bytes wide (the 128B, 64B and 32B
/// patterns of the bulk copy engine).
enum class Swizzle { kNone, kXor };

/// Bytes of one row of a panel.
constexpr unsigned panel_row_bytes(Swizzle swizzle, unsigned columns, unsigned element_bytes) {
  const unsigned row_bytes = columns * element_bytes;
  if (swizzle == Swizzle::kNone)
    return row_bytes;
  return row_bytes % 128 == 0 ? 128 : row_bytes % 64 == 0 ? 64 : 32;
}

/// The bits by which the chunk number of `row` is permuted: 3, 2 or 1 of them.
constexpr unsigned chunk_permutation(unsigned panel_bytes, unsigned row) {
  return panel_bytes == 128 ? row & 7 : panel_bytes == 64 ? (row >> 1) & 3 : (row >> 2) & 1;
}

/// Byte offset of element (row, column) in a tile of rows x columns elements.
constexpr unsigned tile_offset(Swizzle swizzle, unsigned rows, unsigned columns, unsigned element_bytes, unsigned row,
                               unsigned column) {
  const unsigned panel_bytes = panel_row_bytes(swizzle, columns, element_bytes);
  const unsigned byte = column * element_bytes;
  if (swizzle == Swizzle::kNone)
    return row * panel_bytes + byte;
  const unsigned panel = byte / panel_bytes;
  const unsigned in_row = byte % panel_bytes;
  const unsigned chunk = (in_row >> 4) ^ chunk_permutation(panel_bytes, row);
  return panel * rows * panel_bytes + row * panel_bytes + (chunk << 4) + (in_row & 15);
}

} // namespace fagen::device
