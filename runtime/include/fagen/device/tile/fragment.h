// fagen: what a warp's threads hold in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layouts are those of mma.sync m16n8k16 (PTX ISA, Warp Level Matrix): a slab is 16 rows; with g = lane / 4 and
// t = lane % 4, a thread holds of each 8-column tile of an accumulator the elements (g, 2t), (g, 2t+1), (g+8, 2t) and
// (g+8, 2t+1). The lane fragments of the scalar kernels stand below.
#pragma once

#include <fagen/device/ptx/registers.h>

namespace fagen::device {

/// kRows x kColumns f32 results of matrix products.
template <int kFragmentRows, int kFragmentColumns>
struct Accumulator : ptx::Registers<float[kFragmentRows / 16][kFragmentColumns / 8][4]> {
  static constexpr int kRows = kFragmentRows;
  static constexpr int kColumns = kFragmentColumns;
  static constexpr int kSlabs = kRows / 16;
  static constexpr int kTiles = kColumns / 8;
  static_assert(kRows % 16 == 0 && kColumns % 16 == 0, "an accumulator is whole 16 x 16 blocks");
};

/// kRows x kColumns elements of T as the left operand of matrix products, in slices of 32 bytes of a row: register i of
/// one has row g (g + 8 where i is odd) at bytes 16 (i / 2) + 4t to 16 (i / 2) + 4t + 3.
template <class T, int kFragmentRows, int kFragmentColumns>
struct LeftOperand
    : ptx::Registers<unsigned[kFragmentRows / 16][kFragmentColumns * static_cast<int>(sizeof(T)) / 32][4]> {
  using Element = T;
  static constexpr int kRows = kFragmentRows;
  static constexpr int kColumns = kFragmentColumns;
  static constexpr int kSlabs = kRows / 16;
  static constexpr int kSlices = kColumns * static_cast<int>(sizeof(T)) / 32;
};

/// One f32 for each row of an accumulator: rows g and g + 8 of each slab, the same in the four lanes of a quad.
template <int kFragmentRows> struct RowValues : ptx::Registers<float[kFragmentRows / 16][2]> {
  static constexpr int kRows = kFragmentRows;
  static constexpr int kSlabs = kRows / 16;
};

/// Scalar kernels: one f32 for each of the warp's rows; maxima are the same in all lanes, sums are each lane's part.
template <int kFragmentRows> struct LaneRows : ptx::Registers<float[kFragmentRows]> {
  static constexpr int kRows = kFragmentRows;
};

/// Scalar kernels: kRows x kColumns f32 of which a lane holds columns 64i + 2 lane and 64i + 2 lane + 1.
template <int kFragmentRows, int kFragmentColumns>
struct LaneColumns : ptx::Registers<float[kFragmentRows][(kFragmentColumns + 63) / 64][2]> {
  static constexpr int kRows = kFragmentRows;
  static constexpr int kColumns = kFragmentColumns;
  static constexpr int kPairs = (kColumns + 63) / 64;
};

} // namespace fagen::device
