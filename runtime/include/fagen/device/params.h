// fagen: the one argument of every forward attention kernel; shared by host runtime, kernels and emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/divisor.h>
#include <fagen/device/tensor_map.h>

namespace fagen::device {

/// O = softmax(scale * Q K^T + mask) V for every batch and head.
/// Q and O have shape [batch, heads, seq_q, columns], K and V [batch, kv_heads, seq_kv, columns]; the last dimension is
/// dense, the others have the caller's strides in elements. Query head h reads K/V head h / heads_per_kv.
/// lse [batch, heads, seq_q] in f32 may be null; its last dimension is dense.
struct AttentionParams {
  const void *q;
  const void *k;
  const void *v;
  void *o;
  float *lse;
  long long q_stride[3]; ///< batch, head, row
  long long k_stride[3];
  long long v_stride[3];
  long long o_stride[3];
  long long lse_stride[2]; ///< batch, head
  int batch;
  int heads;
  int kv_heads;
  int heads_per_kv;
  int seq_q;
  int seq_kv;
  float scale;
  float scale_log2; ///< max(scale * log2(e), smallest normal f32): the factor of exp2
  int splits;       ///< CTAs that share the keys of a tile of query rows; 1 where the row has FAGEN_GRID_TILES only
  void *workspace;  ///< the row's parts one after the other (fagen_workspace); null when it has none
  Divisor by_heads_per_kv;
};

/// The argument of kernels that copy boxes: a row's table says which of the maps are filled. Their dimensions are
/// columns, rows, heads and batch.
struct MappedAttentionParams : AttentionParams {
  Divisor by_tiles; ///< tiles of query rows that a head has
  Divisor by_heads;
  TensorMap q_map;
  TensorMap k_map;
  TensorMap v_map;
  TensorMap o_map;
};

} // namespace fagen::device
