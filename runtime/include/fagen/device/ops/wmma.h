// fagen: matrix products by wmma: scores, probabilities and P V cross shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which lane holds which element of a fragment is not specified, so what must be known by row or column is stored to a
// tile and read again; the softmax between is that of lane_softmax.h. A warp's rows of those tiles are its own. Tiles
// are row-major or padded, since the rows of a matrix must lie a constant stride apart. `row` is the warp's first row.
#pragma once

#include <fagen/device/ops/lane_softmax.h>
#include <fagen/device/ptx/registers.h>
#include <fagen/device/ptx/wmma.h>

namespace fagen::device {

/// The instructions for operands of T: how many words a lane holds of one, loads, and products by the accumulator.
template <class T> struct Wmma;

template <> struct Wmma<f16> {
  static constexpr int kWords = 8;
  static __device__ __forceinline__ void load_a(unsigned (&a)[8], unsigned address, unsigned stride, ptx::Site site) {
    ptx::wmma_load_a_f16(a, address, stride, site);
  }
  template <bool kByColumns>
  static __device__ __forceinline__ void load_b(unsigned (&b)[8], unsigned address, unsigned stride, ptx::Site site) {
    if constexpr (kByColumns)
      ptx::wmma_load_b_f16_col(b, address, stride, site);
    else
      ptx::wmma_load_b_f16_row(b, address, stride, site);
  }
  template <bool kByColumns>
  static __device__ __forceinline__ void multiply(float (&d)[8], const unsigned (&a)[8], const unsigned (&b)[8],
                                                  ptx::Site site) {
    if constexpr (kByColumns)
      ptx::wmma_mma_f32_f16_col(d, a, b, site);
    else
      ptx::wmma_mma_f32_f16_row(d, a, b, site);
  }
  template <bool kByColumns>
  static __device__ __forceinline__ void multiply(unsigned (&d)[4], const unsigned (&a)[8], const unsigned (&b)[8],
                                                  ptx::Site site) {
    if constexpr (kByColumns)
      ptx::wmma_mma_f16_f16_col(d, a, b, site);
    else
      ptx::wmma_mma_f16_f16_row(d, a, b, site);
  }
};

template <> struct Wmma<bf16> {
  static constexpr int kWords = 4;
  static __device__ __forceinline__ void load_a(unsigned (&a)[4], unsigned address, unsigned stride, ptx::Site site) {
    ptx::wmma_load_a_bf16(a, address, stride, site);
  }
  template <bool kByColumns>
  static __device__ __forceinline__ void load_b(unsigned (&b)[4], unsigned address, unsigned stride, ptx::Site site) {
    if constexpr (kByColumns)
      ptx::wmma_load_b_bf16_col(b, address, stride, site);
    else
      ptx::wmma_load_b_bf16_row(b, address, stride, site);
  }
  template <bool kByColumns>
  static __device__ __forceinline__ void multiply(float (&d)[8], const unsigned (&a)[4], const unsigned (&b)[4],
                                                  ptx::Site site) {
    if constexpr (kByColumns)
      ptx::wmma_mma_f32_bf16_col(d, a, b, site);
    else
      ptx::wmma_mma_f32_bf16_row(d, a, b, site);
  }
};

/// What a lane holds of a 16 x 16 block of results that are stored as T.
template <class T> struct WmmaBlock;
template <> struct WmmaBlock<float> {
  float value[8] = {};
  __device__ __forceinline__ void store(unsigned address, unsigned stride, ptx::Site site) const {
    ptx::wmma_store_d_f32(address, value, stride, site);
  }
};
template <> struct WmmaBlock<f16> {
  unsigned value[4] = {};
  __device__ __forceinline__ void store(unsigned address, unsigned stride, ptx::Site site) const {
    ptx::wmma_store_d_f16(address, value, stride, site);
  }
};

/// kRows x kColumns elements of T as left operands.
template <class T, int kFragmentRows, int kFragmentColumns>
struct WmmaOperand : ptx::Registers<unsigned[kFragmentRows / 16][kFragmentColumns / 16][Wmma<T>::kWords]> {
  static constexpr int kRows = kFragmentRows;
  static constexpr int kSlabs = kFragmentRows / 16;
  static constexpr int kSlices = kFragmentColumns / 16;
};

/// Elements from one row of a tile to the next.
template <class Tile> __device__ __forceinline__ constexpr unsigned wmma_stride() {
  static_assert(Tile::kSwizzle != Swizzle::kXor, "wmma asks for rows a constant stride apart");
  return Tile::kPanelBytes / sizeof(typename Tile::Element);
}

/// Loads rows [row, row + kRows) of the tile as left operands.
template <class T, int kRows, int kColumns, class Tile>
__device__ __forceinline__ void load_operand(WmmaOperand<T, kRows, kColumns> &operand, const Tile &tile, int row,
                                             ptx::Site site = ptx::Site::here()) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int slice = 0; slice < kColumns / 16; ++slice)
      Wmma<T>::load_a(operand.value[slab][slice], tile.address(row + 16 * slab, 16 * slice), wmma_stride<Tile>(), site);
}

/// Rows [row, row + kRows) of result = a * b, or a * b^T; load_a(words, slab, slice) gives a 16 x 16 block of a.
template <bool kTransposed, int kRows, class Result, class B, class LoadA>
__device__ __forceinline__ void wmma_product(const Result &result, int row, LoadA load_a, const B &b, ptx::Site site) {
  using Instr = Wmma<typename B::Element>;
  using Block = WmmaBlock<typename Result::Element>;
  constexpr int kSlabs = kRows / 16;
  constexpr int kSlices = (kTransposed ? B::kColumns : B::kRows) / 16;
  constexpr int kBlocks = Result::kColumns / 16;
  constexpr int kTogether = kSlabs >= 4 ? 1 : 4 / kSlabs; // blocks of columns at once: 32 registers of results
#pragma unroll
  for (int first = 0; first < kBlocks; first += kTogether) {
    Block d[kTogether][kSlabs];
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
      unsigned a[kSlabs][Instr::kWords];
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab)
        load_a(a[slab], slab, slice);
#pragma unroll
      for (int block = 0; block < kTogether; ++block) {
        if (first + block >= kBlocks)
          continue;
        const int column = 16 * (first + block);
        unsigned words[Instr::kWords];
        Instr::template load_b<kTransposed>(
            words, kTransposed ? b.address(column, 16 * slice) : b.address(16 * slice, column), wmma_stride<B>(), site);
#pragma unroll
        for (int slab = 0; slab < kSlabs; ++slab)
          Instr::template multiply<kTransposed>(d[block][slab].value, a[slab], words, site);
      }
    }
#pragma unroll
    for (int block = 0; block < kTogether; ++block)
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab)
        if (first + block < kBlocks)
          d[block][slab].store(result.address(row + 16 * slab, 16 * (first + block)), wmma_stride<Result>(), site);
  }
}

/// Rows [row, row + kRows) of s = rows of a * b^T, a in shared memory.
template <int kRows, class Scores, class A, class B>
__device__ __forceinline__ void wmma_abt(const Scores &s, const A &a, const B &b, int row,
                                         ptx::Site site = ptx::Site::here()) {
  using T = typename B::Element;
  wmma_product<true, kRows>(
      s, row,
      [&](unsigned(&words)[Wmma<T>::kWords], int slab, int slice) {
        Wmma<T>::load_a(words, a.address(row + 16 * slab, 16 * slice), wmma_stride<A>(), site);
      },
      b, site);
}

/// The same with a in registers.
template <int kRows, class Scores, class T, int kColumns, class B>
__device__ __forceinline__ void wmma_abt(const Scores &s, const WmmaOperand<T, kRows, kColumns> &a, const B &b, int row,
                                         ptx::Site site = ptx::Site::here()) {
  wmma_product<true, kRows>(
      s, row,
      [&](unsigned(&words)[Wmma<T>::kWords], int slab, int slice) {
#pragma unroll
        for (int i = 0; i < Wmma<T>::kWords; ++i)
          words[i] = a.value[slab][slice][i];
      },
      b, site);
}

/// Rows [row, row + kRows) of pv = rows of p * v.
template <int kRows, class Result, class P, class V>
__device__ __forceinline__ void wmma_ab(const Result &pv, const P &p, const V &v, int row,
                                        ptx::Site site = ptx::Site::here()) {
  using T = typename V::Element;
  wmma_product<false, kRows>(
      pv, row,
      [&](unsigned(&words)[Wmma<T>::kWords], int slab, int slice) {
        Wmma<T>::load_a(words, p.address(row + 16 * slab, 16 * slice), wmma_stride<P>(), site);
      },
      v, site);
}

/// p = s, rounded once, the lane's own scores.
template <int kRows, class P, class Scores>
__device__ __forceinline__ void convert(const P &p, const Scores &s, int row, ptx::Site site = ptx::Site::here()) {
  for_own_scores<kRows, Scores>([&](int r, int key) {
    const float value = load_as_float<typename Scores::Element>(s.address(row + r, key), site);
    store_rounded<typename P::Element>(p.address(row + r, key), value, site);
  });
}

/// Two neighbouring elements of a tile of T as f32.
template <class T> __device__ __forceinline__ void load_pair(float (&values)[2], unsigned address, ptx::Site site) {
  if constexpr (sizeof(T) == sizeof(float)) {
    ptx::ld_shared_f32x2(values, address, site);
  } else {
    unsigned word[1];
    ptx::ld_shared(word, address, site);
    values[0] = low_half<T>(word[0]);
    values[1] = high_half<T>(word[0]);
  }
}

/// o += rows [row, row + kRows) of pv, the lane's own columns.
template <int kRows, int kColumns, class Result>
__device__ __forceinline__ void accumulate(LaneColumns<kRows, kColumns> &o, const Result &pv, int row,
                                           ptx::Site site = ptx::Site::here()) {
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int pair = 0; pair < LaneColumns<kRows, kColumns>::kPairs; ++pair) {
      const int column = 64 * pair + 2 * ptx::lane_index();
      if (column >= kColumns)
        continue;
      float values[2];
      load_pair<typename Result::Element>(values, pv.address(row + r, column), site);
      o.value[r][pair][0] = ptx::add(o.value[r][pair][0], values[0]);
      o.value[r][pair][1] = ptx::add(o.value[r][pair][1], values[1]);
    }
}

} // namespace fagen::device
