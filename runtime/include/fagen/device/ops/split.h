// fagen: CTAs that share the keys of a tile of query rows leave their results in global memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A part is what one split has seen: for each query row of each head and batch kHeadDimV f32 of O, not normalised, then
// m and l, and a gap of two words. ops/combine.h merges the parts.
#pragma once

#include <fagen/device/ops/merge.h>
#include <fagen/device/ops/store.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/tile/cta.h>
#include <fagen/device/tile/layout.h>
#include <fagen/device/tile/rows.h>

namespace fagen::device {

/// A CtaPlace with its part of the keys.
struct SplitPlace {
  int batch;
  int head;
  int kv_head;
  int row_begin; ///< first query row
  int split;
  int split_begin; ///< first key
  int split_keys;
};

/// The CTAs of a split come one after the other, in the order of locate_cta. A split has kSplitKeys keys, whatever else
/// there is to do; with 0 the splits have whole key tiles, as many as the others or one more.
template <int kTileRows, int kTileKeys, int kSplitKeys, TileOrder kOrder = TileOrder::kFirstTileFirst,
          Rows kRows = Rows::kOfHead>
__device__ __forceinline__ SplitPlace locate_split(const AttentionParams &params) {
  const int tiles = (row_count<kRows>(params) + kTileRows - 1) / kTileRows;
  const int ctas = tiles * tile_heads<kRows>(params) * params.batch, cta = ptx::recompute(ptx::cta_index());
  const int split = cta / ctas;
  const CtaPlace place = locate_cta<kTileRows, kOrder, kRows>(params, cta % ctas);
  long long begin, next;
  if constexpr (kSplitKeys > 0) {
    begin = static_cast<long long>(split) * kSplitKeys;
    next = begin + kSplitKeys;
  } else {
    const long long key_tiles = (static_cast<long long>(params.seq_kv) + kTileKeys - 1) / kTileKeys;
    begin = key_tiles * split / params.splits * kTileKeys;
    next = key_tiles * (split + 1) / params.splits * kTileKeys;
  }
  const long long end = next < params.seq_kv ? next : params.seq_kv;
  return {place.batch,
          place.head,
          place.kv_head,
          place.row_begin,
          split,
          static_cast<int>(begin),
          begin < end ? static_cast<int>(end - begin) : 0};
}

/// Gives the split the keys from `begin` up to `next`, as far as there are any.
__device__ __forceinline__ void take_keys(SplitPlace &place, const AttentionParams &params, long long begin,
                                          long long next) {
  const long long end = next < params.seq_kv ? next : params.seq_kv;
  place.split_begin = static_cast<int>(begin);
  place.split_keys = begin < end ? static_cast<int>(end - begin) : 0;
}

/// Shares out the keys from `first` up to `end`, outside of which no row sees any: whole tiles of them, counted from
/// key 0.
template <int kTileKeys>
__device__ __forceinline__ void share_seen_keys(SplitPlace &place, const AttentionParams &params, int first, int end) {
  const long long last = max(min(end, params.seq_kv), first), tile = first / kTileKeys;
  const long long tiles = (last + kTileKeys - 1) / kTileKeys - tile;
  const long long begin = (tile + tiles * place.split / params.splits) * kTileKeys;
  const long long next = (tile + tiles * (place.split + 1) / params.splits) * kTileKeys;
  take_keys(place, params, begin, next);
}

/// The same where no row sees a key from `gap_begin` up to `gap_end` either: both may be any numbers, and of the gap
/// counts what lies from `first` on. A split before this gap ends there, and one that has tiles on both sides
/// skips it by its mask.
template <int kTileKeys>
__device__ __forceinline__ void share_seen_keys(SplitPlace &place, const AttentionParams &params, int first, int end,
                                                int gap_begin, int gap_end) {
  const long long last = max(min(end, params.seq_kv), first), tile = first / kTileKeys;
  const long long gap = max((static_cast<long long>(gap_begin) + kTileKeys - 1) / kTileKeys, tile);
  const long long hidden = max(min(static_cast<long long>(gap_end), last) / kTileKeys - gap, 0LL);
  const long long tiles = (last + kTileKeys - 1) / kTileKeys - tile - hidden;
  const long long own = tile + tiles * place.split / params.splits;
  const long long own_end = tile + tiles * (place.split + 1) / params.splits;
  take_keys(place, params, (own < gap ? own : own + hidden) * kTileKeys,
            (own_end <= gap ? own_end : own_end + hidden) * kTileKeys);
}

/// Parts leave m as a score, which params know how to scale, as the exponent of two that it stands for, or in nats: as
/// the exponent of e.
enum class RowUnit { kScores, kExponents, kNats };
constexpr RowUnit kOfExponents = RowUnit::kExponents, kOfNats = RowUnit::kNats;
template <RowUnit kUnit, class Params> __device__ __forceinline__ float exponent_factor(const Params &params) {
  return kUnit == RowUnit::kScores ? params.scale_log2 : kUnit == RowUnit::kNats ? kLog2E : 1.0f;
}
template <RowUnit kUnit, class Params> __device__ __forceinline__ float lse_factor(const Params &params) {
  return kUnit == RowUnit::kScores ? params.scale : kUnit == RowUnit::kNats ? 1.0f : kLn2;
}

/// The f32 of a part's row.
template <int kHeadDimV> constexpr int split_columns() { return kHeadDimV + static_cast<int>(kSplitExtra); }

/// Parts as kernels with parameters of their own have them, in the place of AttentionParams.
struct Parts {
  int splits;       ///< how many there are
  float scale;      ///< of m to nats
  float scale_log2; ///< of m to exponents of two
  long long stride; ///< f32 from a row of a part to the same one of the next
};

/// F32 from a row of a part to the same one of the next.
template <int kHeadDimV> __device__ __forceinline__ long long part_stride(const AttentionParams &params) {
  return static_cast<long long>(params.batch) * params.heads * params.seq_q * split_columns<kHeadDimV>();
}
template <int kHeadDimV> __device__ __forceinline__ long long part_stride(const Parts &parts) { return parts.stride; }

/// What all parts take of the workspace.
template <int kHeadDimV> __device__ __forceinline__ long long split_bytes(const AttentionParams &params) {
  const long long rows = static_cast<long long>(params.batch) * params.heads * params.seq_q;
  return params.splits * rows * split_columns<kHeadDimV>() * static_cast<long long>(sizeof(float));
}

/// Row 0 of a head in a part.
template <int kHeadDimV>
__device__ __forceinline__ float *split_rows(const AttentionParams &params, int part, int batch, int head) {
  const long long of_head = (static_cast<long long>(part) * params.batch + batch) * params.heads + head;
  return static_cast<float *>(params.workspace) + of_head * params.seq_q * split_columns<kHeadDimV>();
}

/// Rows of a group of heads in a part, counted from row 0 of the first of them.
template <int kHeadDimV> __device__ __forceinline__ PackedRows packed_split_rows(const AttentionParams &params) {
  constexpr long long kColumns = split_columns<kHeadDimV>();
  return {params.by_heads_per_kv, params.heads_per_kv, params.seq_q * kColumns, kColumns};
}

/// The warp's rows, l being whole sums; `target` is row 0, from which `rows` (tile/rows.h) leads to the others.
template <class RowMap, int kRows, int kColumns>
__device__ __forceinline__ void store_split(float *target, const RowMap &rows, const Accumulator<kRows, kColumns> &o,
                                            const RowValues<kRows> &m, const RowValues<kRows> &l, int first_row,
                                            int limit, ptx::Site site = ptx::Site::here()) {
  const int lane_of_quad = ptx::lane_index() % 4;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = ptx::recompute(first_row + 16 * slab + 8 * half + ptx::lane_index() / 4);
      if (row >= limit)
        continue;
      float *const own = target + row_offset(rows, row);
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile) {
        const float pair[2] = {o.value[slab][tile][2 * half], o.value[slab][tile][2 * half + 1]};
        ptx::st_global_f32(own + 8 * tile + 2 * lane_of_quad, pair, site);
      }
      if (lane_of_quad == 0) {
        const float pair[2] = {m.value[slab][half], l.value[slab][half]};
        ptx::st_global_f32(own + kColumns, pair, site);
      }
    }
}

/// Merges the key warps' rows into a part; row r of the tile is warp r % kWarps's. `target` is row 0, from which `rows`
/// (tile/rows.h) leads to the others. Nothing where there is only one part: combine_last takes it from where it is.
template <int kWarps, int kKeyWarps, RowUnit kUnit = RowUnit::kScores, class Params, class RowMap, class Partial>
__device__ __forceinline__ void store_merged_split(const Params &params, float *target, const RowMap &rows,
                                                   const Partial &partial, int first_row, int limit,
                                                   ptx::Site site = ptx::Site::here()) {
  constexpr int kTileRows = Partial::kRows / kKeyWarps;
  constexpr int kColumns = Partial::kColumns - static_cast<int>(kPartialExtra);
  if (params.splits == 1)
    return;
  for (int row = ptx::warp_index(); row < kTileRows && first_row + row < limit; row += kWarps) {
    float *const own = target + row_offset(rows, first_row + row);
    for (int column = 2 * ptx::lane_index(); column < kColumns; column += 64) {
      const MergedPair merged = merge_pair<kKeyWarps>(partial, row, column, exponent_factor<kUnit>(params), site);
      ptx::st_global_f32(own + column, merged.values, site);
      if (column == 0) {
        const float pair_of_row[2] = {merged.m, merged.sum};
        ptx::st_global_f32(own + kColumns, pair_of_row, site);
      }
    }
  }
}

} // namespace fagen::device
