// fagen: fragments of which something was not written (`count` is 0), or all was. One warp each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ops/lane_softmax.h>
#include <fagen/device/ops/mma.h>
#include <fagen/device/ops/softmax.h>
#include <fagen/device/ops/store.h>
#include <fagen/device/ops/wmma.h>
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/threads.h>

using namespace fagen::device;

struct Arguments {
  const void *in;
  void *out;
  int count;
};

using Tile = SharedTile<f16, 16, 16, Swizzle::kNone>;
using Scores = SharedTile<float, 16, 32, Swizzle::kNone>;

struct SharedStorage {
  Tile tile;
  Scores scores;
};

/// The CTA's shared memory, zero throughout.
__device__ __forceinline__ SharedStorage &zeros() {
  const unsigned words[4] = {};
  for (unsigned i = ptx::lane_index(); i < sizeof(SharedStorage) / sizeof(words); i += 32)
    ptx::st_shared(sizeof(words) * i, words);
  ptx::warp_barrier();
  return ptx::shared_storage<SharedStorage>();
}

template <class Fragment> __device__ __forceinline__ void keep(const Arguments &arguments, const Fragment &o) {
  store_rows<4>(static_cast<f16 *>(arguments.out), 16, o, 0, 16);
}

extern "C" __global__ void store(const __grid_constant__ Arguments arguments) {
  Accumulator<16, 16> o;
  if (arguments.count)
    clear(o);
  store_rows<4>(static_cast<f16 *>(arguments.out), 16, o, 0, 16); // [store]
}

extern "C" __global__ void accumulator(const __grid_constant__ Arguments arguments) {
  SharedStorage &shared = zeros();
  LeftOperand<f16, 16, 16> p;
  load_operand(p, shared.tile, 0);
  Accumulator<16, 16> o;
  if (arguments.count)
    clear(o);
  mma_ab(o, p, shared.tile, 0); // [accumulator]
  keep(arguments, o);
}

extern "C" __global__ void operand(const __grid_constant__ Arguments arguments) {
  SharedStorage &shared = zeros();
  LeftOperand<f16, 16, 16> p;
  if (arguments.count)
    load_operand(p, shared.tile, 0);
  Accumulator<16, 16> s;
  mma_abt(s, p, shared.tile, 0); // [operand]
  keep(arguments, s);
}

// Two elements in one lane, which arithmetic hands on: scores, their probabilities, a word of P.
extern "C" __global__ void one_word(const __grid_constant__ Arguments arguments) {
  SharedStorage &shared = zeros();
  Accumulator<16, 16> s, o;
  for (int tile = 0; tile < 2; ++tile)
    for (int i = 0; i < 4; ++i)
      if (arguments.count || ptx::lane_index() != 6 || tile != 1 || i < 2)
        s.value[0][tile][i] = 1.0f;
  RowValues<16> m;
  fill(m, 1.0f);
  exp2<true>(s, m, 0.5f);
  LeftOperand<f16, 16, 16> p;
  convert(p, s);
  clear(o);
  mma_ab(o, p, shared.tile, 0); // [one_word]
  keep(arguments, o);
}

extern "C" __global__ void sums(const __grid_constant__ Arguments arguments) {
  Accumulator<16, 16> s;
  clear(s);
  RowValues<16> l;
  if (arguments.count)
    fill(l, 0.0f);
  row_sum(l, s);
  total(l); // [sums]
  keep(arguments, s);
}

// A maximum prefers numbers to NaNs, yet this one is noticed.
extern "C" __global__ void maxima(const __grid_constant__ Arguments arguments) {
  Accumulator<16, 16> s;
  clear(s);
  RowValues<16> m, m_new;
  if (arguments.count)
    fill(m, 0.0f);
  row_max(m_new, s, m); // [maxima]
  keep(arguments, s);
}

extern "C" __global__ void lanes(const __grid_constant__ Arguments arguments) {
  SharedStorage &shared = zeros();
  LaneRows<16> l, all;
  if (arguments.count)
    fill(l, 0.0f);
  reduce_partial_sum(shared.scores, l, 0); // [lanes]
  ptx::warp_barrier();
  reduce_total_sum(all, shared.scores, 0); // reads what a finding was about
}

extern "C" __global__ void columns(const __grid_constant__ Arguments arguments) {
  LaneColumns<16, 16> o;
  if (arguments.count)
    clear(o);
  store_rows<4>(static_cast<f16 *>(arguments.out), 16, o, 0, 16); // [columns]
}

extern "C" __global__ void wmma_operand(const __grid_constant__ Arguments arguments) {
  SharedStorage &shared = zeros();
  WmmaOperand<f16, 16, 16> q;
  if (arguments.count)
    load_operand(q, shared.tile, 0);
  using Square = SharedTile<float, 16, 16, Swizzle::kNone>;
  wmma_abt<16>(reinterpret_cast<const Square &>(shared.scores), q, shared.tile, 0); // [wmma_operand]
}
