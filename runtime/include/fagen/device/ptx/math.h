// fagen: arithmetic that must be one known instruction. PTX ISA, Floating Point Instructions and cvt.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/types.h>

namespace fagen::device::ptx {

/// 2^x; 2 ulp, subnormal inputs and results flushed to zero; exp2(-inf) = 0. PTX ISA: ex2.approx.ftz.f32.
__device__ __forceinline__ float exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// log2(x), absolute error 2^-22; log2(0) = -inf. PTX ISA: lg2.approx.ftz.f32.
__device__ __forceinline__ float log2(float x) {
  float result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// tanh(x), relative error 2^-11. PTX ISA: tanh.approx.f32.
__device__ __forceinline__ float tanh(float x) {
  float result;
  asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// a * b + c, rounded once. PTX ISA: fma.rn.f32.
__device__ __forceinline__ float fma(float a, float b, float c) {
  float result;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));
  return result;
}

/// a * b, rounded, never contracted with an addition. PTX ISA: mul.rn.f32.
__device__ __forceinline__ float mul(float a, float b) {
  float result;
  asm("mul.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/// a + b, rounded, never contracted with a product. PTX ISA: add.rn.f32.
__device__ __forceinline__ float add(float a, float b) {
  float result;
  asm("add.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/// The quotient, correctly rounded. PTX ISA: div.rn.f32.
__device__ __forceinline__ float div(float a, float b) {
  float result;
  asm("div.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/// The square root, correctly rounded. PTX ISA: sqrt.rn.f32.
__device__ __forceinline__ float sqrt(float x) {
  float result;
  asm("sqrt.rn.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// The larger; a number wins over NaN. PTX ISA: max.f32.
__device__ __forceinline__ float max(float a, float b) {
  float result;
  asm("max.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/// The larger, or NaN where one is NaN. PTX ISA: max.NaN.f32.
__device__ __forceinline__ float max_or_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/// The smaller, or NaN where one is NaN. PTX ISA: min.NaN.f32.
__device__ __forceinline__ float min_or_nan(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/// The bits of a value, and the value of bits.
__device__ __forceinline__ unsigned float_bits(float x) { return static_cast<unsigned>(__float_as_int(x)); }
__device__ __forceinline__ float bits_float(unsigned bits) { return __int_as_float(static_cast<int>(bits)); }

/// Minus infinity.
__device__ __forceinline__ float negative_infinity() { return bits_float(0xff800000u); }

/// f32 to a 16-bit type, to nearest even.
template <class T> __device__ __forceinline__ T round_to(float x);
template <> __device__ __forceinline__ f16 round_to<f16>(float x) {
  f16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
}
template <> __device__ __forceinline__ bf16 round_to<bf16>(float x) {
  bf16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
}

/// Two f32 to a pair in one word, `low` in the lower half.
template <class T> __device__ __forceinline__ unsigned round_pair(float low, float high);
template <> __device__ __forceinline__ unsigned round_pair<f16>(float low, float high) {
  unsigned result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}
template <> __device__ __forceinline__ unsigned round_pair<bf16>(float low, float high) {
  unsigned result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

/// A 16-bit value to f32, exact.
__device__ __forceinline__ float to_float(f16 x) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
  return result;
}
__device__ __forceinline__ float to_float(bf16 x) {
  return __int_as_float(static_cast<int>(static_cast<unsigned>(x.bits) << 16));
}

} // namespace fagen::device::ptx
