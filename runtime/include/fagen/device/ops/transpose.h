// fagen: a matrix of bytes, transposed from memory to memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In registers: a lane reads 16 neighbouring bytes of each of 16 rows, and writes 16 neighbouring bytes of each of 16
// columns. So a warp has 8 KB on their way at once, and nobody waits for anybody.
#pragma once

#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/types.h>

namespace fagen::device {

/// Bytes i, i + 2 of a and of b in turn: with i = 0 the even ones, with i = 1 the odd ones.
__device__ __forceinline__ unsigned every_other_byte(unsigned a, unsigned b, int i) {
  const unsigned kept = i == 0 ? 0x00ff00ffu : 0xff00ff00u;
  return i == 0 ? (a & kept) | (b & kept) << 8 : (a & kept) >> 8 | (b & kept);
}

/// Word i of four becomes byte i of each of them, from the lowest on.
__device__ __forceinline__ void transpose_four(unsigned (&words)[4]) {
  unsigned of_pair[2][2]; // columns i and i + 2 of the first two words, and of the others
#pragma unroll
  for (int pair = 0; pair < 2; ++pair)
#pragma unroll
    for (int i = 0; i < 2; ++i)
      of_pair[pair][i] = every_other_byte(words[2 * pair], words[2 * pair + 1], i);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    words[i] = (of_pair[0][i] & 0xffffu) | of_pair[1][i] << 16;
    words[i + 2] = of_pair[0][i] >> 16 | (of_pair[1][i] & 0xffff0000u);
  }
}

/// 16 rows of a lane, from `row` on, columns [column, column + 16), to columns of the result: row maps say where each
/// row lies. Of its 16 columns word t has 4t to 4t + 3, with kPaired 2t, 2t + 1, 8 + 2t and 9 + 2t.
template <bool kPaired, class Target, class Source>
__device__ __forceinline__ void transpose_sixteen(const Target &target, const Source &source, int row, int column,
                                                  int limit, ptx::Site site) {
  unsigned words[16][4] = {};
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (row + i < limit)
      ptx::ld_global(words[i], source(row + i) + column, site);
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    unsigned columns[4][4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        columns[t][i] = words[kPaired ? 2 * t + i % 2 + i / 2 * 8 : 4 * t + i][part];
      transpose_four(columns[t]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned vector[4] = {columns[0][i], columns[1][i], columns[2][i], columns[3][i]};
      ptx::st_global(target(column + 4 * part + i) + row, vector, site);
    }
  }
}

/// Rows [first, first + kTile) of the source, as many as it has before `limit`, to columns of the target, up to
/// `columns`; those that the source has not become 0. It has kRows columns.
template <int kRows, int kTile, int kWarps, bool kPaired = false, class Target, class Source>
__device__ __forceinline__ void transpose_bytes(const Target &target, const Source &source, int first, int columns,
                                                int limit, int warp, ptx::Site site = ptx::Site::here()) {
  constexpr int kAcross = 4; // lanes side by side: pieces of 64 bytes are read, and lines of 128 written
  constexpr int kTall = 16 * 32 / kAcross, kUnits = kTile / kTall * (kRows / 16 / kAcross);
  static_assert(kRows % 64 == 0 && kTile % 128 == 0, "warps have whole parts of the tile");
  const int lane = ptx::lane_index();
#pragma unroll 1
  for (int unit = warp; unit < kUnits; unit += kWarps) {
    const int row = first + unit % (kTile / kTall) * kTall + lane / kAcross * 16;
    const int column = (unit / (kTile / kTall) * kAcross + lane % kAcross) * 16;
    if (row < columns)
      transpose_sixteen<kPaired>(target, source, row, column, limit, site);
  }
}
/// Columns of each 16 in the order of convert_paired (ops/bytes.h).
template <int kRows, int kTile, int kWarps, class Target, class Source>
__device__ __forceinline__ void transpose_paired(const Target &target, const Source &source, int first, int columns,
                                                 int limit, int warp, ptx::Site site = ptx::Site::here()) {
  transpose_bytes<kRows, kTile, kWarps, true>(target, source, first, columns, limit, warp, site);
}

} // namespace fagen::device
