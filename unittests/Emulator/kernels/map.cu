// fagen: one warp maps an accumulator of 32 x 32 elements with a vector of its rows, and writes it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ops/map.h>
#include <fagen/device/ops/mma.h>
#include <fagen/device/ptx/global.h>

using namespace fagen::device;

struct Arguments {
  const float *in;
  float *out;
  int count;
};

/// Element (r, c) is (100 (r + 3) + c + 5) * (r + 3): the fragment's corner is (3, 5).
extern "C" __global__ void places(const __grid_constant__ Arguments arguments) {
  Accumulator<32, 32> s;
  RowValues<32> m;
  clear(s);
  fill(m, 1.0f);
  map(m, 3, 0, [&](float m, int q, int) { return m * f32(q); });
  map(s, 3, 5, [&](float s, float m, int q, int k) { return s + f32(100 * q + k) * m; }, m);
  const int lane = ptx::lane_index();
  for (int slab = 0; slab < 2; ++slab)
    for (int tile = 0; tile < 4; ++tile)
      for (int i = 0; i < 4; ++i)
        ptx::st_global_f32(arguments.out + (16 * slab + lane / 4 + i / 2 * 8) * 32 + 8 * tile + lane % 4 * 2 + i % 2,
                           s.value[slab][tile][i]);
}

/// What expressions call.
extern "C" __global__ void functions(const __grid_constant__ Arguments arguments) {
  if (ptx::lane_index() != 0)
    return;
  const float values[] = {exp2(-1.5f),  log2(8.0f),       tanh(0.5f),      abs(-2.5f),
                          f32(abs(-3)), max(1.0f, -1.0f), min(1.0f, -1.0f)};
  for (int i = 0; i < 7; ++i)
    ptx::st_global_f32(arguments.out + i, values[i]);
}
