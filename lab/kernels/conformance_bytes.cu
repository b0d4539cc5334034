// fagen: one small kernel for each ptx function of floats of one byte: reads words, applies the function, writes words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same text runs on a GPU, by NVRTC, and in the emulator. conformance/byte_cases.cpp says what comes in and what
// must come out; a CTA has 128 threads.
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/bytes.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/math.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/ptx/tma.h>
#include <fagen/device/ptx/warpgroup.h>
#include <fagen/device/ptx/wgmma_bytes.h>
#include <fagen/device/tile/operand.h>
#include <fagen/device/types.h>

using namespace fagen::device;

struct ConformanceParams {
  const unsigned *in;
  unsigned *out;
  unsigned long long out_words;
  TensorMap in_map, out_map;
};

constexpr int kThreads = 128, kRows = 64;

__device__ __forceinline__ int element() { return ptx::cta_index() * kThreads + ptx::thread_index(); }
__device__ __forceinline__ unsigned word_of(const unsigned *from) {
  unsigned word[1];
  ptx::ld_global(word, from);
  return word[0];
}

// ---- Conversions: two floats to a pair of bytes, and a pair of bytes to two f16.

template <class T> __device__ __forceinline__ void round_words(const ConformanceParams &params) {
  const unsigned *in = params.in + 2 * element();
  ptx::st_global_u32(params.out + element(),
                     ptx::round_bytes<T>(ptx::bits_float(word_of(in)), ptx::bits_float(word_of(in + 1))));
}
extern "C" __global__ void conformance_round_bytes_e4m3(const __grid_constant__ ConformanceParams params) {
  round_words<e4m3>(params);
}
extern "C" __global__ void conformance_round_bytes_e5m2(const __grid_constant__ ConformanceParams params) {
  round_words<e5m2>(params);
}

template <class T> __device__ __forceinline__ void widen_words(const ConformanceParams &params) {
  const auto pair = static_cast<unsigned short>(word_of(params.in + element()));
  ptx::st_global_u32(params.out + element(), ptx::widen_bytes<T>(pair));
}
extern "C" __global__ void conformance_widen_bytes_e4m3(const __grid_constant__ ConformanceParams params) {
  widen_words<e4m3>(params);
}
extern "C" __global__ void conformance_widen_bytes_e5m2(const __grid_constant__ ConformanceParams params) {
  widen_words<e5m2>(params);
}

// ---- Products of whole numbers: exact, so each byte of each operand must be where it belongs. CTA i takes N =
// 8 + kStep i. Operands are made of the seed by the rule that the host knows.

__device__ __forceinline__ int small_number(unsigned seed, int matrix, int row, int column) {
  unsigned x = seed + 0x9e3779b9u * (matrix + 1) + 0x85ebca6bu * row + 0xc2b2ae35u * column;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  return static_cast<int>(x % 17) - 8;
}

/// Four of what is summed over, from k on: of row `m` of A, or column `m` of B.
__device__ __forceinline__ unsigned four_numbers(unsigned seed, int matrix, int m, int k) {
  const auto number = [&](int i) {
    return static_cast<float>(matrix == 0 ? small_number(seed, 0, m, k + i) : small_number(seed, 1, k + i, m));
  };
  return ptx::round_bytes<e4m3>(number(0), number(1)) |
         static_cast<unsigned>(ptx::round_bytes<e4m3>(number(2), number(3))) << 16;
}

template <class Tile> __device__ __forceinline__ void fill_tile(const Tile &tile, unsigned seed, int matrix) {
#pragma unroll 1
  for (int i = ptx::thread_index(); i < Tile::kRows * Tile::kColumns / 4; i += kThreads) {
    const int row = i / (Tile::kColumns / 4), column = i % (Tile::kColumns / 4) * 4;
    const unsigned word[1] = {four_numbers(seed, matrix, row, column)};
    ptx::st_shared(tile.address(row, column), word);
  }
}

__device__ __forceinline__ void load_fragment(unsigned (&a)[4], unsigned seed, int slice) {
  for (int i = 0; i < 4; ++i) {
    const int row = ptx::warp_index() * 16 + ptx::lane_index() / 4 + i % 2 * 8;
    a[i] = four_numbers(seed, 0, row, 32 * slice + i / 2 * 16 + ptx::lane_index() % 4 * 4);
  }
}

/// Results stand after those of the smaller N, which add up to kBefore. B holds column n of the product in its row n.
template <bool kFromShared, int kK, int kN, int kBefore>
__device__ __forceinline__ void product(const ConformanceParams &params, unsigned seed) {
  using A = SharedTile<e4m3, kRows, kK, Swizzle::kXor>;
  using B = SharedTile<e4m3, kN, kK, Swizzle::kXor>;
  struct Storage {
    alignas(1024) A a;
    alignas(1024) B b;
    unsigned beyond[256]; // NaN: no product may read it
  };
  const Storage &storage = ptx::shared_storage<Storage>();
  if (kFromShared)
    fill_tile(storage.a, seed, 0);
  fill_tile(storage.b, seed, 1);
  const unsigned none[1] = {0xffffffff};
  for (int i = ptx::thread_index(); i < 256; i += kThreads)
    ptx::st_shared(ptx::shared_address(storage.beyond) + 4 * i, none);
  ptx::fence_proxy_async();
  ptx::cta_barrier();
  float d[kN / 2];
  for (int i = 0; i < kN / 2; ++i)
    d[i] = i - 3;
  unsigned a[kK / 32][4];
  if (!kFromShared)
    for (int slice = 0; slice < kK / 32; ++slice)
      load_fragment(a[slice], seed, slice);
  ptx::pin_registers(d);
  ptx::wgmma_fence();
#pragma unroll
  for (int slice = 0; slice < kK / 32; ++slice) {
    const auto b = ptx::advance(k_major_operand(storage.b), k_major_step<B>(slice));
    if constexpr (kFromShared)
      ptx::wgmma_f32_e4m3(d, ptx::advance(k_major_operand(storage.a), k_major_step<A>(slice)), b, true);
    else
      ptx::wgmma_f32_e4m3(d, a[slice], b, true);
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  ptx::pin_registers(d);
  unsigned *out = params.out + kBefore * kThreads / 2;
  for (int i = 0; i < kN / 2; ++i)
    ptx::st_global_u32(out + kThreads * i + ptx::thread_index(), ptx::float_bits(d[i]));
}

/// CTA i takes N = 8 + kStep i.
template <bool kFromShared, int kK, int kStep, int kN = 8, int kBefore = 0>
__device__ __forceinline__ void every_product(const ConformanceParams &params) {
  if (8 + kStep * ptx::cta_index() == kN)
    product<kFromShared, kK, kN, kBefore>(params, word_of(params.in));
  else if constexpr (kN + kStep <= 256)
    every_product<kFromShared, kK, kStep, kN + kStep, kBefore + kN>(params);
}

// Names: A's place, the bytes of a swizzled row.
#define FAGEN_PRODUCTS(name, from_shared, k, step)                                                                     \
  extern "C" __global__ void __launch_bounds__(128, 1)                                                                 \
      conformance_wgmma_e4m3_##name(const __grid_constant__ ConformanceParams params) {                                \
    every_product<from_shared, k, step>(params);                                                                       \
  }
FAGEN_PRODUCTS(shared_128, true, 128, 8)
FAGEN_PRODUCTS(registers_128, false, 128, 40)
FAGEN_PRODUCTS(shared_64, true, 64, 40)
FAGEN_PRODUCTS(registers_32, false, 32, 40)

// ---- Products of any numbers, m64n8k32: nine words of input a thread: A, the accumulators, and of 64 threads B.

extern "C" __global__ void conformance_wgmma_f32_e4m3(const __grid_constant__ ConformanceParams params) {
  using B = SharedTile<e4m3, 8, 32, Swizzle::kXor>;
  const B &tile = ptx::shared_storage<B>();
  const unsigned *in = params.in + 9 * element();
  unsigned a[4];
  float d[4];
  for (int i = 0; i < 4; ++i) {
    a[i] = word_of(in + i);
    d[i] = ptx::bits_float(word_of(in + 4 + i));
  }
  if (ptx::thread_index() < 64) {
    const unsigned word[1] = {word_of(in + 8)};
    ptx::st_shared(tile.address(ptx::thread_index() / 8, ptx::thread_index() % 8 * 4), word);
  }
  ptx::fence_proxy_async();
  ptx::cta_barrier();
  ptx::wgmma_fence();
  ptx::wgmma_f32_e4m3(d, a, k_major_operand(tile), true);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  ptx::pin_registers(d);
  for (int i = 0; i < 4; ++i)
    ptx::st_global_u32(params.out + 4 * element() + i, ptx::float_bits(d[i]));
}
