// fagen: one warp settles the rows of a key tile. Q and K are element bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ops/settle.h>
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/types.h>

using namespace fagen::device;

constexpr int kRows = 16, kKeys = 32, kHeadDim = 64;

struct Arguments {
  const unsigned short *q, *k;
  const float (*rows)[2];                           // m and l
  float *terms, *alpha, *m_out, *l_out, *is_redone; // terms: kRows x kKeys; the others one a row
  int seen;                                         // keys of row 0; each row sees one more than the one above
};

template <class T> struct Storage {
  SharedTile<T, kKeys, kHeadDim, Swizzle::kXor> k;
  SharedTile<T, kRows, kHeadDim, Swizzle::kXor> q;
};

template <class Tile> __device__ __forceinline__ void fill_tile(const Tile &tile, const unsigned short *bits) {
  for (int i = ptx::lane_index(); i < Tile::kRows * Tile::kColumns; i += 32)
    ptx::st_shared_u16(tile.address(i / Tile::kColumns, i % Tile::kColumns), ptx::ld_global_u16(bits + i));
}

template <class T, int kEvery = 0> __device__ __forceinline__ void settle(const Arguments &arguments) {
  Storage<T> &shared = ptx::shared_storage<Storage<T>>();
  const int lane = ptx::lane_index();
  fill_tile(shared.q, arguments.q);
  fill_tile(shared.k, arguments.k);
  ptx::warp_barrier();

  Accumulator<kRows, kKeys> s;
  RowValues<kRows> alpha, m, l;
  for (int half = 0; half < 2; ++half) {
    float row[2];
    ptx::ld_global_f32(row, arguments.rows[lane / 4 + 8 * half]);
    m.value[0][half] = row[0];
    l.value[0][half] = lane % 4 == 0 ? row[1] : 0.0f; // a thread's part
  }
  mma_abt(s, shared.q, 0, shared.k, 0);
  const auto mask_rows = [&] { mask_from(s, 0, 0, [&](int row) { return row + arguments.seen; }); };
  mask_rows();
  exp2<false, kEvery>(s, m, 1.0f);
  const bool is_redone = arguments.seen < kKeys ? settle_rows(s, alpha, l, m, shared.q, 0, shared.k, 1.0f, mask_rows)
                                                : settle_rows(s, alpha, l, m, shared.q, 0, shared.k, 1.0f);
  total(l);
  for (int half = 0; half < 2; ++half) {
    const int row = lane / 4 + 8 * half;
    for (int tile = 0; tile < kKeys / 8; ++tile)
      for (int i = 0; i < 2; ++i)
        ptx::st_global_f32(arguments.terms + kKeys * row + 8 * tile + lane % 4 * 2 + i, s.value[0][tile][2 * half + i]);
    if (lane % 4 == 0) {
      ptx::st_global_f32(arguments.alpha + row, alpha.value[0][half]);
      ptx::st_global_f32(arguments.m_out + row, m.value[0][half]);
      ptx::st_global_f32(arguments.l_out + row, l.value[0][half]);
      ptx::st_global_f32(arguments.is_redone + row, is_redone ? 1.0f : 0.0f);
    }
  }
}

extern "C" __global__ void settle_f16(const __grid_constant__ Arguments arguments) { settle<f16>(arguments); }
extern "C" __global__ void settle_bf16(const __grid_constant__ Arguments arguments) { settle<bf16>(arguments); }
extern "C" __global__ void settle_f16_mixed(const __grid_constant__ Arguments arguments) { settle<f16, 2>(arguments); }
