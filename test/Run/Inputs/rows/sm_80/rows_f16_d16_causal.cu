// fagen: attention by hand for tests of fagen-run: a thread a query row, two passes over the keys in global memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/params.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/math.h>
#include <fagen/device/tile/cta.h>

using namespace fagen::device;

constexpr int kTileRows = 32;
constexpr int kHeadDim = 16;
constexpr bool kCausal = true;

__device__ __forceinline__ float load(const f16 *element) { return ptx::to_float(f16{ptx::ld_global_u16(element)}); }

__device__ __forceinline__ float score(const float (&q)[kHeadDim], const f16 *key) {
  float dot = 0.0f;
  for (int c = 0; c < kHeadDim; ++c)
    dot = ptx::fma(q[c], load(key + c), dot);
  return dot;
}

extern "C" __global__ void __launch_bounds__(kTileRows)
    fagen_rows_f16_d16_causal_sm_80(const __grid_constant__ AttentionParams params) {
  const CtaPlace place = locate_cta<kTileRows>(params);
  const int row = place.row_begin + ptx::thread_index();
  if (row >= params.seq_q)
    return;
  const f16 *query = head_rows<f16>(params.q, params.q_stride, place.batch, place.head) + row * params.q_stride[2];
  const f16 *keys = head_rows<f16>(params.k, params.k_stride, place.batch, place.kv_head);
  const f16 *values = head_rows<f16>(params.v, params.v_stride, place.batch, place.kv_head);
  const int last = row + params.seq_kv - params.seq_q; // the last key that a causal row sees
  const int count = kCausal && last + 1 < params.seq_kv ? last + 1 : params.seq_kv;

  float q[kHeadDim];
  for (int c = 0; c < kHeadDim; ++c)
    q[c] = load(query + c);
  float row_max = ptx::negative_infinity();
  for (int key = 0; key < count; ++key)
    row_max = ptx::max(row_max, score(q, keys + key * params.k_stride[2]));
  float row_sum = 0.0f;
  float o[kHeadDim] = {};
  for (int key = 0; key < count; ++key) {
    const float p = ptx::exp2((score(q, keys + key * params.k_stride[2]) - row_max) * params.scale_log2);
    row_sum += p;
    for (int c = 0; c < kHeadDim; ++c)
      o[c] = ptx::fma(p, load(values + key * params.v_stride[2] + c), o[c]);
  }
  f16 *output = head_rows<f16>(params.o, params.o_stride, place.batch, place.head) + row * params.o_stride[2];
  for (int c = 0; c < kHeadDim; ++c)
    ptx::st_global_u16(output + c, ptx::round_to<f16>(count > 0 ? ptx::div(o[c], row_sum) : 0.0f).bits);
  if (float *lse = head_lse(params, place.batch, place.head))
    ptx::st_global_f32(lse + row, count > 0 ? row_max * params.scale + ptx::log2(row_sum) * 0.69314718f
                                            : ptx::negative_infinity());
}
