// fagen: 2^x by polynomial, and which terms of a thread are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ops/exp2.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/threads.h>

using namespace fagen::device;

struct Arguments {
  const float *in;
  float *out;
  int count;
};

__device__ __forceinline__ float input(const Arguments &arguments, int index) {
  unsigned word[1];
  ptx::ld_global(word, reinterpret_cast<const unsigned *>(arguments.in) + index);
  return ptx::bits_float(word[0]);
}

extern "C" __global__ void polynomials(const __grid_constant__ Arguments arguments) {
  for (int i = ptx::cta_index() * 256 + ptx::thread_index(); i < arguments.count; i += 256 * 64)
    ptx::st_global_f32(arguments.out + i, exp2_by_polynomial(input(arguments, i)));
}

template <int kEvery> __device__ __forceinline__ void power_all(const Arguments &arguments) {
  TermExp2<kEvery> power;
  for (int i = 0; i < arguments.count; ++i)
    ptx::st_global_f32(arguments.out + i, power(input(arguments, i)));
}
extern "C" __global__ void every_third(const __grid_constant__ Arguments arguments) { power_all<3>(arguments); }
extern "C" __global__ void none(const __grid_constant__ Arguments arguments) { power_all<0>(arguments); }
