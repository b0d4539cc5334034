// fagen: attention as emitted kernels do it: 64 x 64 tiles, 4 warps, head_dim 64, f16, K and V by asynchronous copies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ops/copy.h>
#include <fagen/device/ops/mma.h>
#include <fagen/device/ops/softmax.h>
#include <fagen/device/ops/store.h>
#include <fagen/device/params.h>
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/tile/cta.h>

using namespace fagen::device;

constexpr int kTileRows = 64;
constexpr int kTileKeys = 64;
constexpr int kHeadDim = 64;
constexpr int kThreads = 128;
constexpr int kVectorBytes = 16;
using Tile = SharedTile<f16, 64, kHeadDim, Swizzle::kXor>;

struct SharedStorage {
  Tile q;
  Tile k[2];
  Tile v[2];
};

struct Warp {
  LeftOperand<f16, 16, kHeadDim> q;
  Accumulator<16, kHeadDim> o;
  RowValues<16> m;
  RowValues<16> l;
};

template <bool kMasked>
__device__ __forceinline__ void step(Warp &warp, const Tile &k, const Tile &v, float c, int first_key, int keys) {
  Accumulator<16, kTileKeys> s;
  RowValues<16> m_new;
  LeftOperand<f16, 16, kTileKeys> p;
  mma_abt(s, warp.q, k, 0);
  if (kMasked)
    mask(s, 0, first_key, [&](int, int key) { return key < keys; });
  row_max(m_new, s, warp.m);
  rescale<kMasked>(warp.o, warp.l, warp.m, m_new, c);
  exp2<kMasked>(s, warp.m, c);
  row_sum(warp.l, s);
  convert(p, s);
  mma_ab(warp.o, p, v, 0);
}

extern "C" __global__ void attention(const __grid_constant__ AttentionParams params) {
  SharedStorage &shared = ptx::shared_storage<SharedStorage>();
  const CtaPlace place = locate_cta<kTileRows>(params);
  const f16 *q = head_rows<f16>(params.q, params.q_stride, place.batch, place.head);
  const f16 *k = head_rows<f16>(params.k, params.k_stride, place.batch, place.kv_head);
  const f16 *v = head_rows<f16>(params.v, params.v_stride, place.batch, place.kv_head);
  const int key_tiles = (params.seq_kv + kTileKeys - 1) / kTileKeys;

  copy_tile_async<kThreads, kVectorBytes>(shared.q, q, params.q_stride[2], place.row_begin, params.seq_q);
  copy_tile_async<kThreads, kVectorBytes>(shared.k[0], k, params.k_stride[2], 0, params.seq_kv);
  copy_tile_async<kThreads, kVectorBytes>(shared.v[0], v, params.v_stride[2], 0, params.seq_kv);
  ptx::cp_async_commit();
  Warp warp;
  clear(warp.o);
  fill(warp.l, 0.0f);
  fill(warp.m, ptx::negative_infinity());
  for (int j = 0; j < key_tiles; ++j) {
    const int next = (j + 1) * kTileKeys;
    if (j + 1 < key_tiles) {
      copy_tile_async<kThreads, kVectorBytes>(shared.k[(j + 1) % 2], k, params.k_stride[2], next, params.seq_kv);
      copy_tile_async<kThreads, kVectorBytes>(shared.v[(j + 1) % 2], v, params.v_stride[2], next, params.seq_kv);
    }
    ptx::cp_async_commit();
    ptx::cp_async_wait<1>();
    ptx::cta_barrier();
    if (j == 0)
      load_operand(warp.q, shared.q, 16 * ptx::warp_index());
    if (next <= params.seq_kv)
      step<false>(warp, shared.k[j % 2], shared.v[j % 2], params.scale_log2, 0, 0);
    else
      step<true>(warp, shared.k[j % 2], shared.v[j % 2], params.scale_log2, j * kTileKeys, params.seq_kv);
    ptx::cta_barrier();
  }
  ptx::cp_async_wait<0>();
  total(warp.l);
  normalize(warp.o, warp.l);
  const int first_row = place.row_begin + 16 * ptx::warp_index();
  store_rows<4>(head_rows<f16>(params.o, params.o_stride, place.batch, place.head), params.o_stride[2], warp.o,
                first_row, params.seq_q);
  store_lse(head_lse(params, place.batch, place.head), warp.m, warp.l, params.scale, first_row, params.seq_q);
}
