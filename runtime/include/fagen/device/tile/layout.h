// fagen: where (row, column) of a shared tile lies. The one truth for kernels, compiler and runtime.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Freestanding constexpr C++17 without CUDA keywords: kernels are compiled so that constexpr functions serve device
// code too (nvcc --expt-relaxed-constexpr, NVRTC -default-device).
#pragma once

namespace fagen::device {

/// kNone: rows one after the other. kXor: panels of 64, 32 or 16 columns of 2-byte elements (the widest that divides
/// the columns), one after the other; inside a panel the 16-byte chunks of a row are permuted by the row number so
/// that eight consecutive rows of one chunk column lie in eight different groups of four banks: ldmatrix is free of
/// bank conflicts, and 16-byte copies are where a row is one panel or panels are 128 bytes wide (the 128B, 64B and 32B
/// patterns of the bulk copy engine). kPad: as kNone with a gap of 8 elements after each row, so that for rows of
/// whole 16-element blocks eight rows of 16 bytes, and the 8-byte pieces of an f32 matrix of wmma, meet no bank twice;
/// the stride is constant, which wmma asks for.
enum class Swizzle { kNone, kXor, kPad };

/// Elements of the gap of kPad.
constexpr unsigned kPadElements = 8;

/// Bytes from one row of a panel to the next.
constexpr unsigned panel_row_bytes(Swizzle swizzle, unsigned columns, unsigned element_bytes) {
  const unsigned row_bytes = columns * element_bytes;
  if (swizzle == Swizzle::kNone)
    return row_bytes;
  if (swizzle == Swizzle::kPad)
    return row_bytes + kPadElements * element_bytes;
  return row_bytes % 128 == 0 ? 128 : row_bytes % 64 == 0 ? 64 : 32;
}

/// The bits by which the chunk number of `row` is permuted: 3, 2 or 1 of them.
constexpr unsigned chunk_permutation(unsigned panel_bytes, unsigned row) {
  return panel_bytes == 128 ? row & 7 : panel_bytes == 64 ? (row >> 1) & 3 : (row >> 2) & 1;
}

/// Bytes of a tile of rows x columns elements.
constexpr unsigned long long tile_bytes(Swizzle swizzle, unsigned rows, unsigned columns, unsigned element_bytes) {
  const unsigned row_bytes =
      swizzle == Swizzle::kXor ? columns * element_bytes : panel_row_bytes(swizzle, columns, element_bytes);
  return static_cast<unsigned long long>(rows) * row_bytes;
}

/// Byte offset of element (row, column) in a tile of rows x columns elements.
constexpr unsigned tile_offset(Swizzle swizzle, unsigned rows, unsigned columns, unsigned element_bytes, unsigned row,
                               unsigned column) {
  const unsigned panel_bytes = panel_row_bytes(swizzle, columns, element_bytes);
  const unsigned byte = column * element_bytes;
  if (swizzle != Swizzle::kXor)
    return row * panel_bytes + byte;
  const unsigned panel = byte / panel_bytes;
  const unsigned in_row = byte % panel_bytes;
  const unsigned chunk = (in_row >> 4) ^ chunk_permutation(panel_bytes, row);
  return panel * rows * panel_bytes + row * panel_bytes + (chunk << 4) + (in_row & 15);
}

/// Threads of a warp side by side over a row's vectors when a tile is copied: the largest power of two that divides
/// their number, at most the warp. Eight vectors of 16 bytes that are written at once then fill whole panels.
constexpr int threads_across(int vector_bytes, int columns, int element_bytes) {
  const int vectors = columns * element_bytes / vector_bytes;
  int across = 1;
  while (across < 32 && vectors % (2 * across) == 0)
    across *= 2;
  return across;
}

/// Columns of a row of partial results after those of O: m and l, a copy for each lane of a quad. With them the rows
/// of f32 lie so that the pairs of a warp's accumulator meet no bank twice.
constexpr unsigned kPartialExtra = 8;

/// f32 after the columns of O in a row that one split leaves for the others: m, l, and a gap to whole 16 bytes.
constexpr unsigned kSplitExtra = 4;

/// Warps of a CTA that merges splits; each has a query row.
constexpr unsigned kCombineWarps = 4;

/// Where a map of key tiles lies in the workspace, in bytes from its begin, if the counter of tiles stands there.
constexpr long long kBehindCounter = 16;

/// Warps of a CTA that classifies key tiles; each takes them in turn.
constexpr unsigned kClassifyWarps = 4;
/// Such CTAs an SM, at least: registers for loads that go on together.
constexpr unsigned kClassifyCtas = 8;

} // namespace fagen::device
