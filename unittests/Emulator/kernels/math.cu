// fagen: the arithmetic functions over many inputs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/math.h>
#include <fagen/device/ptx/threads.h>

using namespace fagen::device;

struct Arguments {
  const void *in;
  void *out;
  int count;
};

__device__ __forceinline__ float input(const Arguments &arguments, int index) {
  unsigned word[1];
  ptx::ld_global(word, static_cast<const unsigned *>(arguments.in) + index);
  float value;
  __builtin_memcpy(&value, word, 4);
  return value;
}

__device__ __forceinline__ int global_index() { return ptx::cta_index() * 256 + ptx::thread_index(); }

// out[i] = to_float(i), all 65536 of them
extern "C" __global__ void widen_f16(const __grid_constant__ Arguments arguments) {
  const int i = global_index();
  ptx::st_global_f32(static_cast<float *>(arguments.out) + i, ptx::to_float(f16{static_cast<unsigned short>(i)}));
}
extern "C" __global__ void widen_bf16(const __grid_constant__ Arguments arguments) {
  const int i = global_index();
  ptx::st_global_f32(static_cast<float *>(arguments.out) + i, ptx::to_float(bf16{static_cast<unsigned short>(i)}));
}

extern "C" __global__ void round_f16(const __grid_constant__ Arguments arguments) {
  const int i = global_index();
  ptx::st_global_u16(static_cast<unsigned short *>(arguments.out) + i, ptx::round_to<f16>(input(arguments, i)).bits);
}
extern "C" __global__ void round_bf16(const __grid_constant__ Arguments arguments) {
  const int i = global_index();
  ptx::st_global_u16(static_cast<unsigned short *>(arguments.out) + i, ptx::round_to<bf16>(input(arguments, i)).bits);
}

// Words: the pair of inputs 0 and 1 in f16, in bf16; then results of the other functions on inputs 0, 1, 2.
extern "C" __global__ void functions(const __grid_constant__ Arguments arguments) {
  const float a = input(arguments, 0), b = input(arguments, 1), c = input(arguments, 2);
  unsigned *words = static_cast<unsigned *>(arguments.out);
  ptx::st_global_u32(words, ptx::round_pair<f16>(a, b));
  ptx::st_global_u32(words + 1, ptx::round_pair<bf16>(a, b));
  const float results[9] = {ptx::exp2(a),   ptx::log2(a),   ptx::fma(a, b, c),     ptx::mul(a, b),       ptx::add(a, b),
                            ptx::div(a, b), ptx::max(a, b), ptx::max_or_nan(a, b), ptx::min_or_nan(a, b)};
  for (int i = 0; i < 9; ++i)
    ptx::st_global_f32(reinterpret_cast<float *>(words) + 2 + i, results[i]);
}
