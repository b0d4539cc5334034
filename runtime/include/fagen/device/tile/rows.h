// fagen: where a row of Q, O or the log-sum-exp lies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile's rows are those of one head, one after the other at one stride. Or they are those of all query heads that
// share a K/V head, so that K and V are read once for all of them: row r is query r / heads_per_kv of the group's head
// r % heads_per_kv. Neighbours differ in their head, so causal masks grow with the row as ever.
#pragma once

#include <fagen/device/params.h>

namespace fagen::device {

enum class Rows { kOfHead, kOfGroup };

/// How many rows a head has, or a group of heads.
template <Rows kRows> __device__ __forceinline__ int row_count(const AttentionParams &params) {
  return kRows == Rows::kOfHead ? params.seq_q : params.seq_q * params.heads_per_kv;
}

/// How many heads have tiles of their own, or how many groups of heads.
template <Rows kRows> __device__ __forceinline__ int tile_heads(const AttentionParams &params) {
  return kRows == Rows::kOfHead ? params.heads : params.kv_heads;
}

/// Rows of a group of heads, counted from row 0 of the first of them.
struct PackedRows {
  Divisor by_heads;
  int heads;
  long long head_stride;
  long long row_stride;
};

__device__ __forceinline__ PackedRows packed_rows(const AttentionParams &params, const long long (&stride)[3]) {
  return {params.by_heads_per_kv, params.heads_per_kv, stride[1], stride[2]};
}
__device__ __forceinline__ PackedRows packed_lse_rows(const AttentionParams &params) {
  return {params.by_heads_per_kv, params.heads_per_kv, params.lse_stride[1], 1};
}

/// Elements from row 0 to `row`.
__device__ __forceinline__ long long row_offset(long long stride, int row) { return row * stride; }
__device__ __forceinline__ long long row_offset(const PackedRows &rows, int row) {
  const int query = floor_div(row, rows.by_heads);
  return query * rows.row_stride + (row - query * rows.heads) * rows.head_stride;
}

/// Of rows that a function places.
template <class Map> __device__ __forceinline__ auto row_offset(const Map &rows, int row) -> decltype(rows(row)) {
  return rows(row);
}

} // namespace fagen::device
