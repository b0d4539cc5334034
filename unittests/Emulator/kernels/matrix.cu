// fagen: ldmatrix and mma, one instruction a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/ldmatrix.h>
#include <fagen/device/ptx/mma.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/threads.h>

using namespace fagen::device;

struct Arguments {
  const void *in;
  void *out;
  int count;
};

// in: 4 matrices of 8 rows of 4 words; out: each lane's four words. Lane i's row lies at 16i + count.
template <bool kTransposed> __device__ __forceinline__ void load(const Arguments &arguments) {
  const int lane = ptx::lane_index();
  const unsigned row = 16 * lane + arguments.count;
  unsigned words[4];
  ptx::ld_global(words, static_cast<const unsigned *>(arguments.in) + 4 * lane);
  for (int i = 0; i < 4; ++i) {
    const unsigned word[1] = {words[i]};
    ptx::st_shared(row / 4 * 4 + 4 * i, word);
  }
  ptx::warp_barrier();
  unsigned matrix[4];
  if (kTransposed)
    ptx::ldmatrix_x4_trans(matrix, row);
  else
    ptx::ldmatrix_x4(matrix, row); // [ldmatrix]
  for (int i = 0; i < 4; ++i)
    ptx::st_global_u32(static_cast<unsigned *>(arguments.out) + 4 * lane + i, matrix[i]);
}

extern "C" __global__ void load_plain(const __grid_constant__ Arguments arguments) { load<false>(arguments); }
extern "C" __global__ void load_transposed(const __grid_constant__ Arguments arguments) { load<true>(arguments); }

// in: per lane 4 words of A, 2 of B and 4 of C; out: per lane 4 of D.
template <bool kBf16> __device__ __forceinline__ void product(const Arguments &arguments) {
  const int lane = ptx::lane_index();
  const unsigned *in = static_cast<const unsigned *>(arguments.in) + 10 * lane;
  unsigned a[4];
  unsigned b[2];
  float d[4];
  for (int i = 0; i < 10; ++i) {
    unsigned word[1];
    ptx::ld_global(word, in + i);
    if (i < 4)
      a[i] = word[0];
    else if (i < 6)
      b[i - 4] = word[0];
    else
      __builtin_memcpy(&d[i - 6], word, 4);
  }
  if (kBf16)
    ptx::mma_m16n8k16_f32_bf16(d, a, b[0], b[1]);
  else
    ptx::mma_m16n8k16_f32_f16(d, a, b[0], b[1]);
  for (int i = 0; i < 4; ++i)
    ptx::st_global_f32(static_cast<float *>(arguments.out) + 4 * lane + i, d[i]);
}

extern "C" __global__ void product_f16(const __grid_constant__ Arguments arguments) { product<false>(arguments); }
extern "C" __global__ void product_bf16(const __grid_constant__ Arguments arguments) { product<true>(arguments); }
