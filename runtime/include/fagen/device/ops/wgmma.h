// fagen: matrix products of warp groups: asked for, not waited for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The four warps of a group call these together; warp w of the group has rows 16w to 16w + 15 of the 64 in its
// accumulator of 16 rows. ptx/warpgroup.h says what stands around products.
#pragma once

#include <fagen/device/ptx/warpgroup.h>
#include <fagen/device/ptx/wgmma.h>
#include <fagen/device/tile/fragment.h>
#include <fagen/device/tile/operand.h>
#include <fagen/device/types.h>

namespace fagen::device {

/// One instruction for the element type, A in shared memory or in registers.
template <ptx::Major kA, ptx::Major kB, class D>
__device__ __forceinline__ void wgmma_slice(f16, D &d, ptx::MatrixDescriptor a, ptx::MatrixDescriptor b,
                                            bool accumulate, ptx::Site site) {
  ptx::wgmma_f32_f16<kA, kB>(d, a, b, accumulate, site);
}
template <ptx::Major kA, ptx::Major kB, class D>
__device__ __forceinline__ void wgmma_slice(bf16, D &d, ptx::MatrixDescriptor a, ptx::MatrixDescriptor b,
                                            bool accumulate, ptx::Site site) {
  ptx::wgmma_f32_bf16<kA, kB>(d, a, b, accumulate, site);
}
template <ptx::Major kB, class D>
__device__ __forceinline__ void wgmma_slice(f16, D &d, const unsigned (&a)[4], ptx::MatrixDescriptor b, bool accumulate,
                                            ptx::Site site) {
  ptx::wgmma_f32_f16<kB>(d, a, b, accumulate, site);
}
template <ptx::Major kB, class D>
__device__ __forceinline__ void wgmma_slice(bf16, D &d, const unsigned (&a)[4], ptx::MatrixDescriptor b,
                                            bool accumulate, ptx::Site site) {
  ptx::wgmma_f32_bf16<kB>(d, a, b, accumulate, site);
}

/// The thread's elements in the instruction's order, which is theirs.
template <class Acc> __device__ __forceinline__ float (&elements(Acc &accumulator))[Acc::kColumns / 2] {
  static_assert(Acc::kRows == 16, "a warp has 16 of the group's 64 rows");
  return reinterpret_cast<float(&)[Acc::kColumns / 2]>(accumulator.value);
}

/// Accumulator = (rows [a_row, a_row + 64) of a) b^T, both in shared memory: slices [kFirst, ...) of the sum, to which
/// those before them were added already. With kAdds the sum is added to what the accumulator holds. One of fewer
/// columns than b has rows is that of the first rows.
template <int kFirst, bool kAdds = false, class Acc, class ATile, class BTile>
__device__ __forceinline__ void issue_abt_slices(Acc &accumulator, const ATile &a, int a_row, const BTile &b,
                                                 ptx::Site site) {
  static_assert(Acc::kColumns <= BTile::kRows && ATile::kColumns == BTile::kColumns, "shapes of a product");
  static_assert(ATile::kRows % kGroupRows == 0 && k_major_reach<ATile>(ATile::kRows) <= operand_bytes<ATile>(),
                "a product reads nothing beyond the left tile");
  static_assert(k_major_reach<BTile>(Acc::kColumns) <= operand_bytes<BTile>(),
                "a product reads nothing beyond the right tile");
  const ptx::MatrixDescriptor a_operand = k_major_operand(a, a_row), b_operand = k_major_operand(b);
#pragma unroll
  for (int slice = kFirst; slice < ATile::kColumns / slice_columns<ATile>(); ++slice)
    wgmma_slice<ptx::Major::kK, ptx::Major::kK>(
        typename ATile::Element{}, elements(accumulator), ptx::advance(a_operand, k_major_step<ATile>(slice)),
        ptx::advance(b_operand, k_major_step<BTile>(slice)), kAdds || slice != 0, site);
}

/// The whole of it.
template <class Acc, class ATile, class BTile>
__device__ __forceinline__ void issue_abt(Acc &accumulator, const ATile &a, int a_row, const BTile &b,
                                          ptx::Site site = ptx::Site::here()) {
  issue_abt_slices<0>(accumulator, a, a_row, b, site);
}

/// Accumulator += the same.
template <class Acc, class ATile, class BTile>
__device__ __forceinline__ void issue_add_abt(Acc &accumulator, const ATile &a, int a_row, const BTile &b,
                                              ptx::Site site = ptx::Site::here()) {
  issue_abt_slices<0, true>(accumulator, a, a_row, b, site);
}

/// Accumulator = the product, the first columns of those rows of a in registers, too.
template <class T, int kRows, int kHeld, class Acc, class ATile, class BTile>
__device__ __forceinline__ void issue_abt(Acc &accumulator, const LeftOperand<T, kRows, kHeld> &held, const ATile &a,
                                          int a_row, const BTile &b, ptx::Site site = ptx::Site::here()) {
  constexpr int kSlices = LeftOperand<T, kRows, kHeld>::kSlices;
  static_assert(k_major_reach<BTile>(Acc::kColumns) <= operand_bytes<BTile>(),
                "a product reads nothing beyond the right tile");
  const ptx::MatrixDescriptor b_operand = k_major_operand(b);
#pragma unroll
  for (int slice = 0; slice < kSlices; ++slice)
    wgmma_slice<ptx::Major::kK>(T{}, elements(accumulator), held.value[0][slice],
                                ptx::advance(b_operand, k_major_step<BTile>(slice)), slice != 0, site);
  issue_abt_slices<kSlices>(accumulator, a, a_row, b, site);
}

/// Accumulator = the product, all of a in registers; or added.
template <bool kAdds, class T, int kRows, int kColumns, class Acc, class BTile>
__device__ __forceinline__ void issue_abt_of_registers(Acc &accumulator, const LeftOperand<T, kRows, kColumns> &a,
                                                       const BTile &b, ptx::Site site) {
  static_assert(kRows == 16 && kColumns == BTile::kColumns && Acc::kColumns <= BTile::kRows, "shapes of a product");
  static_assert(k_major_reach<BTile>(Acc::kColumns) <= operand_bytes<BTile>(),
                "a product reads nothing beyond the right tile");
  const ptx::MatrixDescriptor b_operand = k_major_operand(b);
#pragma unroll
  for (int slice = 0; slice < LeftOperand<T, kRows, kColumns>::kSlices; ++slice)
    wgmma_slice<ptx::Major::kK>(T{}, elements(accumulator), a.value[0][slice],
                                ptx::advance(b_operand, k_major_step<BTile>(slice)), kAdds || slice != 0, site);
}
template <class T, int kRows, int kColumns, class Acc, class BTile>
__device__ __forceinline__ void issue_abt(Acc &accumulator, const LeftOperand<T, kRows, kColumns> &a, const BTile &b,
                                          ptx::Site site = ptx::Site::here()) {
  issue_abt_of_registers<false>(accumulator, a, b, site);
}
template <class T, int kRows, int kColumns, class Acc, class BTile>
__device__ __forceinline__ void issue_add_abt(Acc &accumulator, const LeftOperand<T, kRows, kColumns> &a,
                                              const BTile &b, ptx::Site site = ptx::Site::here()) {
  issue_abt_of_registers<true>(accumulator, a, b, site);
}

/// Accumulator = a b, a in registers, or added; of fewer columns than b the product of the first ones.
template <bool kAdds, class T, int kRows, int kColumns, class Acc, class BTile>
__device__ __forceinline__ void issue_ab_of_registers(Acc &accumulator, const LeftOperand<T, kRows, kColumns> &a,
                                                      const BTile &b, ptx::Site site) {
  static_assert(kRows == 16 && kColumns == BTile::kRows && Acc::kColumns <= BTile::kColumns, "shapes of a product");
  static_assert(mn_major_reach<BTile>() == operand_bytes<BTile>(), "products read nothing beyond the right tile");
  const ptx::MatrixDescriptor b_operand = mn_major_operand(b);
#pragma unroll
  for (int slice = 0; slice < kColumns / 16; ++slice)
    wgmma_slice<ptx::Major::kMn>(T{}, elements(accumulator), a.value[0][slice],
                                 ptx::advance(b_operand, mn_major_step<BTile>(slice)), kAdds || slice != 0, site);
}
template <class T, int kRows, int kColumns, class Acc, class BTile>
__device__ __forceinline__ void issue_ab(Acc &accumulator, const LeftOperand<T, kRows, kColumns> &a, const BTile &b,
                                         ptx::Site site = ptx::Site::here()) {
  issue_ab_of_registers<true>(accumulator, a, b, site);
}
template <class T, int kRows, int kColumns, class Acc, class BTile>
__device__ __forceinline__ void issue_first_ab(Acc &accumulator, const LeftOperand<T, kRows, kColumns> &a,
                                               const BTile &b, ptx::Site site = ptx::Site::here()) {
  issue_ab_of_registers<false>(accumulator, a, b, site);
}

/// Accumulator = (rows [a_row, a_row + 64) of a) b, both in shared memory, or added; of b the columns from kFirst on.
template <bool kAdds, int kFirst, class Acc, class ATile, class BTile>
__device__ __forceinline__ void issue_ab_of_shared(Acc &accumulator, const ATile &a, int a_row, const BTile &b,
                                                   ptx::Site site) {
  static_assert(ATile::kColumns == BTile::kRows && kFirst + Acc::kColumns <= BTile::kColumns &&
                    kFirst % panel_columns<BTile>() == 0,
                "shapes of a product");
  static_assert(ATile::kRows % kGroupRows == 0 && k_major_reach<ATile>(ATile::kRows) <= operand_bytes<ATile>() &&
                    mn_major_reach<BTile>() == operand_bytes<BTile>(),
                "products read nothing beyond the tiles");
  const ptx::MatrixDescriptor a_operand = k_major_operand(a, a_row),
                              b_operand = kFirst == 0 ? mn_major_operand(b) : mn_major_columns(b, kFirst);
#pragma unroll
  for (int slice = 0; slice < BTile::kRows / 16; ++slice)
    wgmma_slice<ptx::Major::kK, ptx::Major::kMn>(
        typename ATile::Element{}, elements(accumulator), ptx::advance(a_operand, k_major_step<ATile>(slice)),
        ptx::advance(b_operand, mn_major_step<BTile>(slice)), kAdds || slice != 0, site);
}
template <int kFirst = 0, class Acc, class ATile, class BTile>
__device__ __forceinline__ void issue_first_ab(Acc &accumulator, const ATile &a, int a_row, const BTile &b,
                                               ptx::Site site = ptx::Site::here()) {
  issue_ab_of_shared<false, kFirst>(accumulator, a, a_row, b, site);
}
template <int kFirst = 0, class Acc, class ATile, class BTile>
__device__ __forceinline__ void issue_ab(Acc &accumulator, const ATile &a, int a_row, const BTile &b,
                                         ptx::Site site = ptx::Site::here()) {
  issue_ab_of_shared<true, kFirst>(accumulator, a, a_row, b, site);
}

/// Accumulator = (columns [a_column, a_column + 64) of a)^T b, both in shared memory, or added: rows of both are summed
/// over.
template <bool kAdds, class Acc, class ATile, class BTile>
__device__ __forceinline__ void issue_atb_of_shared(Acc &accumulator, const ATile &a, int a_column, const BTile &b,
                                                    ptx::Site site) {
  static_assert(ATile::kRows == BTile::kRows && Acc::kColumns <= BTile::kColumns, "shapes of a product");
  static_assert(ATile::kColumns % kGroupRows == 0 && kGroupRows % panel_columns<ATile>() == 0 &&
                    mn_major_reach<ATile>() == operand_bytes<ATile>() &&
                    mn_major_reach<BTile>() == operand_bytes<BTile>(),
                "a group's columns are whole panels, and products read nothing beyond the tiles");
  const ptx::MatrixDescriptor a_operand = mn_major_columns(a, a_column), b_operand = mn_major_operand(b);
#pragma unroll
  for (int slice = 0; slice < BTile::kRows / 16; ++slice)
    wgmma_slice<ptx::Major::kMn, ptx::Major::kMn>(
        typename ATile::Element{}, elements(accumulator), ptx::advance(a_operand, mn_major_step<ATile>(slice)),
        ptx::advance(b_operand, mn_major_step<BTile>(slice)), kAdds || slice != 0, site);
}
template <class Acc, class ATile, class BTile>
__device__ __forceinline__ void issue_atb(Acc &accumulator, const ATile &a, int a_column, const BTile &b,
                                          ptx::Site site = ptx::Site::here()) {
  issue_atb_of_shared<false>(accumulator, a, a_column, b, site);
}
template <class Acc, class ATile, class BTile>
__device__ __forceinline__ void issue_add_atb(Acc &accumulator, const ATile &a, int a_column, const BTile &b,
                                              ptx::Site site = ptx::Site::here()) {
  issue_atb_of_shared<true>(accumulator, a, a_column, b, site);
}

} // namespace fagen::device
