// fagen: one small kernel for each ptx function that only sm_90a has: reads words, applies the function, writes words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same text runs on a GPU, by NVRTC, and in the emulator. conformance/bulk_cases.cpp and warpgroup_cases.cpp say
// what comes in and what must come out; a CTA has 128 threads unless a kernel says otherwise.
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/cluster.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/launches.h>
#include <fagen/device/ptx/math.h>
#include <fagen/device/ptx/mbarrier.h>
#include <fagen/device/ptx/shuffle.h>
#include <fagen/device/ptx/stmatrix.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/ptx/tma.h>
#include <fagen/device/ptx/warpgroup.h>
#include <fagen/device/ptx/wgmma.h>
#include <fagen/device/tile/operand.h>
#include <fagen/device/types.h>

using namespace fagen::device;

struct ConformanceParams {
  const unsigned *in;
  unsigned *out;
  unsigned long long out_words;
  TensorMap in_map, out_map;
};

constexpr int kThreads = 128;
constexpr unsigned kData = 1024; // where boxes and matrices begin in shared memory; barriers stand before them

__device__ __forceinline__ unsigned shared_begin() { return ptx::shared_address(&ptx::shared_storage<unsigned>()); }
__device__ __forceinline__ int element() { return ptx::cta_index() * kThreads + ptx::thread_index(); }
__device__ __forceinline__ unsigned word_of(const unsigned *from) {
  unsigned word[1];
  ptx::ld_global(word, from);
  return word[0];
}
__device__ __forceinline__ unsigned bits_of(float value) {
  union {
    float value;
    unsigned bits;
  } both;
  both.value = value;
  return both.bits;
}

// ---- Barriers in shared memory: eight times, each thread's number becomes a function of another's.

extern "C" __global__ void conformance_mbarrier(const __grid_constant__ ConformanceParams params) {
  const unsigned full = shared_begin(), empty = full + 8, own = full + kData + 4 * ptx::thread_index();
  if (ptx::thread_index() == 0) {
    ptx::mbarrier_init(full, kThreads);
    ptx::mbarrier_init(empty, kThreads);
    ptx::mbarrier_init_fence();
  }
  ptx::cta_barrier();
  unsigned value[1] = {word_of(params.in + 2 * element())};
  const unsigned other = full + kData + 4 * word_of(params.in + 2 * element() + 1);
  for (int round = 0; round < 8; ++round) {
    ptx::mbarrier_wait(empty, round % 2 ^ 1);
    ptx::st_shared(own, value);
    ptx::mbarrier_arrive(full);
    while (!ptx::mbarrier_try_wait(full, round % 2)) {
    }
    unsigned read[1];
    ptx::ld_shared(read, other);
    value[0] = (value[0] ^ read[0]) * 2654435761u + 1;
    ptx::mbarrier_arrive(empty);
  }
  ptx::st_global_u32(params.out + element(), value[0]);
}

// With no launch before that has not ended there is nothing to wait for, and nobody waits for this one.
extern "C" __global__ void conformance_launches(const __grid_constant__ ConformanceParams params) {
  ptx::await_launches();
  ptx::release_launches();
  ptx::st_global_u32(params.out + element(), word_of(params.in + element()) + 1);
}

// ---- Bulk copies: eight words of each CTA are coordinates; the tensor stands after those of 32 CTAs.

template <int kRank> __device__ __forceinline__ void coordinates(int (&at)[kRank], const ConformanceParams &params) {
  for (int n = 0; n < kRank; ++n)
    at[n] = static_cast<int>(word_of(params.in + ptx::cta_index() * 8 + n));
}

template <int kRank> __device__ __forceinline__ void load_box(const ConformanceParams &params) {
  const unsigned barrier = shared_begin();
  const int words = static_cast<int>(params.out_words / 32);
  int at[kRank];
  coordinates(at, params);
  if (ptx::thread_index() == 0) {
    ptx::tma_prefetch_map(params.in_map);
    ptx::mbarrier_init(barrier, 1);
    ptx::mbarrier_init_fence();
    ptx::mbarrier_arrive_expect(barrier, 4 * words);
    if (ptx::cta_index() % 2)
      ptx::tma_load(barrier + kData, params.in_map, at, barrier);
    else
      ptx::tma_load(barrier + kData, params.in_map, at, barrier, ptx::CacheHint::kEvictLast);
  }
  ptx::cta_barrier();
  ptx::mbarrier_wait(barrier, 0);
  for (int i = ptx::thread_index(); i < words; i += kThreads) {
    unsigned word[1];
    ptx::ld_shared(word, barrier + kData + 4 * i);
    ptx::st_global_u32(params.out + ptx::cta_index() * words + i, word[0]);
  }
}

// The box's words follow the coordinates; two groups of one store each.
template <int kRank> __device__ __forceinline__ void store_box(const ConformanceParams &params) {
  const unsigned data = shared_begin() + kData;
  const int words = static_cast<int>(word_of(params.in + 7));
  const unsigned next = (4 * words + 1023) / 1024 * 1024; // where the second box begins
  int at[kRank];
  coordinates(at, params);
  for (int half = 0; half < 2; ++half)
    for (int i = ptx::thread_index(); i < words; i += kThreads) {
      const unsigned word[1] = {word_of(params.in + 32 * 8 + (2 * ptx::cta_index() + half) * words + i)};
      ptx::st_shared(data + half * next + 4 * i, word);
    }
  ptx::fence_proxy_async();
  ptx::cta_barrier();
  if (ptx::thread_index() == 0) {
    ptx::tma_store(params.out_map, at, data);
    ptx::tma_commit();
    at[kRank - 1] += 32; // the other half of the tensor
    ptx::tma_store(params.out_map, at, data + next);
    ptx::tma_commit();
    ptx::tma_wait<1>();
    ptx::tma_wait_read<0>();
  }
}

extern "C" __global__ void conformance_tma_load_2(const __grid_constant__ ConformanceParams params) {
  load_box<2>(params);
}
extern "C" __global__ void conformance_tma_load_3(const __grid_constant__ ConformanceParams params) {
  load_box<3>(params);
}
extern "C" __global__ void conformance_tma_load_4(const __grid_constant__ ConformanceParams params) {
  load_box<4>(params);
}
extern "C" __global__ void conformance_tma_load_5(const __grid_constant__ ConformanceParams params) {
  load_box<5>(params);
}
extern "C" __global__ void conformance_tma_store_2(const __grid_constant__ ConformanceParams params) {
  store_box<2>(params);
}
extern "C" __global__ void conformance_tma_store_3(const __grid_constant__ ConformanceParams params) {
  store_box<3>(params);
}
extern "C" __global__ void conformance_tma_store_4(const __grid_constant__ ConformanceParams params) {
  store_box<4>(params);
}
extern "C" __global__ void conformance_tma_store_5(const __grid_constant__ ConformanceParams params) {
  store_box<5>(params);
}

// ---- stmatrix: four words a thread, and where its row goes.

template <bool kTransposed> __device__ __forceinline__ void store_matrices(const ConformanceParams &params) {
  const unsigned warp_begin = shared_begin() + ptx::warp_index() * 512;
  unsigned words[4];
  for (int i = 0; i < 4; ++i)
    words[i] = word_of(params.in + 5 * element() + i);
  const unsigned row = warp_begin + 16 * word_of(params.in + 5 * element() + 4);
  if (kTransposed)
    ptx::stmatrix_x4_trans(row, words);
  else
    ptx::stmatrix_x4(row, words);
  ptx::warp_barrier();
  ptx::ld_shared(words, warp_begin + 16 * ptx::lane_index());
  ptx::st_global(params.out + 4 * element(), words);
}
extern "C" __global__ void conformance_stmatrix_x4(const __grid_constant__ ConformanceParams params) {
  store_matrices<false>(params);
}
extern "C" __global__ void conformance_stmatrix_x4_trans(const __grid_constant__ ConformanceParams params) {
  store_matrices<true>(params);
}

// ---- Who a thread is: 384 threads; group 0 gives registers to the others. A word for each, and how many were elected.

extern "C" __global__ void __launch_bounds__(384, 1)
    conformance_warp_groups(const __grid_constant__ ConformanceParams params) {
  const int group = ptx::warp_group_index();
  if (group == 0)
    ptx::setmaxnreg_dec<24>();
  else
    ptx::setmaxnreg_inc<240>();
  unsigned elected = ptx::elect_one();
  for (int mask = 1; mask < 32; mask *= 2)
    elected += ptx::shuffle_xor(elected, mask);
  ptx::cluster_arrive();
  ptx::cluster_wait();
  const unsigned self = ptx::cluster_rank() + 16 * ptx::cluster_size() + 256 * elected + 65536 * group;
  ptx::st_global_u32(params.out + ptx::cta_index() * 384 + ptx::thread_index(), self);
}

// ---- Clusters of two: each CTA brings half of each of four tiles to both, and tells both when it has read them.

constexpr int kTileRows = 16, kRounds = 4;

extern "C" __global__ void __cluster_dims__(2, 1, 1)
    conformance_clusters(const __grid_constant__ ConformanceParams params) {
  const unsigned full = shared_begin(), empty = full + 8, tile = full + kData, rank = ptx::cluster_rank();
  if (ptx::thread_index() == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::mbarrier_init(empty, 2);
    ptx::mbarrier_init_fence();
  }
  ptx::warp_barrier();
  ptx::cluster_arrive();
  ptx::cluster_wait();
  unsigned mixed[4] = {};
  for (int round = 0; round < kRounds; ++round) {
    if (ptx::thread_index() == 0) {
      ptx::mbarrier_wait(empty, round % 2 ^ 1);
      ptx::mbarrier_arrive_expect(full, 128 * kTileRows);
      const int row = kTileRows * (ptx::cta_index() / 2 * kRounds + round) + kTileRows / 2 * static_cast<int>(rank);
      ptx::tma_load_multicast(tile + 64 * kTileRows * rank, params.in_map, {0, row}, full, 3);
    }
    ptx::mbarrier_wait(full, round % 2);
    for (int i = 0; i < 4; ++i) {
      unsigned word[1];
      ptx::ld_shared(word, tile + 4 * (ptx::thread_index() + kThreads * i));
      mixed[i] = (mixed[i] ^ word[0]) * 2654435761u + 1;
    }
    ptx::cta_barrier();
    if (ptx::thread_index() < 2)
      ptx::mbarrier_arrive_at(empty, ptx::thread_index());
  }
  for (int i = 0; i < 4; ++i)
    ptx::st_global_u32(params.out + 4 * kThreads * ptx::cta_index() + kThreads * i + ptx::thread_index(), mixed[i]);
  ptx::warp_barrier();
  ptx::cluster_arrive();
  ptx::cluster_wait();
}

// ---- Products of whole numbers: exact, so each element of each operand must be where it belongs. CTA i takes N =
// 8 (i + 1). Operands are made of the seed by the rule that the host knows.

constexpr int kM = 64;

__device__ __forceinline__ int small_number(unsigned seed, int matrix, int row, int column) {
  unsigned x = seed + 0x9e3779b9u * (matrix + 1) + 0x85ebca6bu * row + 0xc2b2ae35u * column;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  return static_cast<int>(x % 17) - 8;
}

/// How operands are given. K columns of A and B are summed over.
enum class Form {
  kShared,           // A and B along K in shared memory
  kSharedTransposed, // A and B across K
  kRegisters,        // A in registers, B along K
  kRegistersAcross   // A in registers, B across K
};

constexpr unsigned kNaN = 0xffff; // of either type

/// Columns from `columns` on are NaN: no product may read them.
template <class Tile>
__device__ __forceinline__ void fill_tile(const Tile &tile, unsigned seed, int matrix, bool flip,
                                          int columns = Tile::kColumns) {
#pragma unroll 1
  for (int i = ptx::thread_index(); i < Tile::kRows * Tile::kColumns; i += kThreads) {
    const int row = i / Tile::kColumns, column = i % Tile::kColumns;
    const float number = small_number(seed, matrix, flip ? column : row, flip ? row : column);
    ptx::st_shared_u16(tile.address(row, column),
                       column < columns ? ptx::round_to<typename Tile::Element>(number).bits : kNaN);
  }
}

/// What stands after a tile in shared memory: NaN, of each type.
struct Beyond {
  unsigned words[256];
  __device__ __forceinline__ void fill() const {
    const unsigned word[1] = {0xffffffff};
    for (int i = ptx::thread_index(); i < 256; i += kThreads)
      ptx::st_shared(ptx::shared_address(words) + 4 * i, word);
  }
};

template <ptx::Major kA, ptx::Major kB, int kCount>
__device__ __forceinline__ void multiply(f16, float (&d)[kCount], ptx::MatrixDescriptor a, ptx::MatrixDescriptor b) {
  ptx::wgmma_f32_f16<kA, kB>(d, a, b, true);
}
template <ptx::Major kA, ptx::Major kB, int kCount>
__device__ __forceinline__ void multiply(bf16, float (&d)[kCount], ptx::MatrixDescriptor a, ptx::MatrixDescriptor b) {
  ptx::wgmma_f32_bf16<kA, kB>(d, a, b, true);
}
template <ptx::Major kB, int kCount>
__device__ __forceinline__ void multiply(f16, float (&d)[kCount], const unsigned (&a)[4], ptx::MatrixDescriptor b) {
  ptx::wgmma_f32_f16<kB>(d, a, b, true);
}
template <ptx::Major kB, int kCount>
__device__ __forceinline__ void multiply(bf16, float (&d)[kCount], const unsigned (&a)[4], ptx::MatrixDescriptor b) {
  ptx::wgmma_f32_bf16<kB>(d, a, b, true);
}

template <class T> __device__ __forceinline__ void load_fragment(unsigned (&a)[4], unsigned seed, int slice) {
  for (int i = 0; i < 4; ++i) {
    const int row = ptx::warp_index() * 16 + ptx::lane_index() / 4 + i % 2 * 8;
    const int column = 16 * slice + ptx::lane_index() % 4 * 2 + i / 2 * 8;
    a[i] = ptx::round_to<T>(small_number(seed, 0, row, column)).bits |
           static_cast<unsigned>(ptx::round_to<T>(small_number(seed, 0, row, column + 1)).bits) << 16;
  }
}

/// Results stand after those of the smaller N, which add up to kBefore.
template <class T, Form kForm, int kK, int kN, int kBefore>
__device__ __forceinline__ void product(const ConformanceParams &params, unsigned seed) {
  constexpr bool kAcross = kForm == Form::kSharedTransposed || kForm == Form::kRegistersAcross;
  constexpr bool kFromShared = kForm == Form::kShared || kForm == Form::kSharedTransposed;
  constexpr ptx::Major kMajor = kAcross ? ptx::Major::kMn : ptx::Major::kK;
  // Across K a row of B holds N columns, to whole panels of kK columns.
  using A = SharedTile<T, kAcross ? kK : kM, kAcross ? kM : kK, Swizzle::kXor>;
  using B = SharedTile<T, kAcross ? kK : kN, kAcross ? (kN + 63) / 64 * 64 : kK, Swizzle::kXor>;
  struct Storage {
    alignas(1024) A a;
    alignas(1024) B b;
    Beyond beyond;
  };
  const Storage &storage = ptx::shared_storage<Storage>();
  if (kFromShared)
    fill_tile(storage.a, seed, 0, kAcross);
  fill_tile(storage.b, seed, 1, !kAcross, kAcross ? kN : kK); // element (k, n)
  storage.beyond.fill();
  ptx::fence_proxy_async();
  ptx::cta_barrier();
  float d[kN / 2];
  for (int i = 0; i < kN / 2; ++i)
    d[i] = i - 3;
  unsigned a[kK / 16][4];
  if (!kFromShared)
    for (int slice = 0; slice < kK / 16; ++slice)
      load_fragment<T>(a[slice], seed, slice);
  ptx::pin_registers(d);
  ptx::wgmma_fence();
#pragma unroll
  for (int slice = 0; slice < kK / 16; ++slice) {
    const auto b = kAcross ? ptx::advance(mn_major_operand(storage.b), mn_major_step<B>(slice))
                           : ptx::advance(k_major_operand(storage.b), k_major_step<B>(slice));
    if constexpr (kFromShared)
      multiply<kMajor, kMajor>(T{}, d,
                               kAcross ? ptx::advance(mn_major_operand(storage.a), mn_major_step<A>(slice))
                                       : ptx::advance(k_major_operand(storage.a), k_major_step<A>(slice)),
                               b);
    else
      multiply<kMajor>(T{}, d, a[slice], b);
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  ptx::pin_registers(d);
  unsigned *out = params.out + kBefore * kThreads / 2;
  for (int i = 0; i < kN / 2; ++i)
    ptx::st_global_u32(out + kThreads * i + ptx::thread_index(), bits_of(d[i]));
}

/// CTA i takes N = 8 + kStep i.
template <class T, Form kForm, int kK, int kStep, int kN = 8, int kBefore = 0>
__device__ __forceinline__ void every_product(const ConformanceParams &params) {
  if (8 + kStep * ptx::cta_index() == kN)
    product<T, kForm, kK, kN, kBefore>(params, word_of(params.in));
  else if constexpr (kN + kStep <= 256)
    every_product<T, kForm, kK, kStep, kN + kStep, kBefore + kN>(params);
}

// Names: A's place, the order of B, the bytes of a swizzled row. Some take every N, the others every fifth.
#define FAGEN_PRODUCTS(name, type, form, k, step)                                                                      \
  extern "C" __global__ void __launch_bounds__(128, 1)                                                                 \
      conformance_wgmma_##type##_##name(const __grid_constant__ ConformanceParams params) {                            \
    every_product<type, Form::form, k, step>(params);                                                                  \
  }
FAGEN_PRODUCTS(shared_128, f16, kShared, 64, 8)
FAGEN_PRODUCTS(registers_across_128, f16, kRegistersAcross, 32, 8)
FAGEN_PRODUCTS(transposed_128, bf16, kSharedTransposed, 32, 8)
FAGEN_PRODUCTS(registers_128, bf16, kRegisters, 64, 8)
FAGEN_PRODUCTS(shared_64, f16, kShared, 32, 40)
FAGEN_PRODUCTS(shared_32, f16, kShared, 16, 40)
FAGEN_PRODUCTS(transposed_128, f16, kSharedTransposed, 32, 40)
FAGEN_PRODUCTS(registers_across_128, bf16, kRegistersAcross, 48, 40)

// Panels of 64 bytes across K: head dim 96.
template <class T> __device__ __forceinline__ void product_96(const ConformanceParams &params) {
  using B = SharedTile<T, 32, 96, Swizzle::kXor>;
  const B &tile = ptx::shared_storage<B>();
  const unsigned seed = word_of(params.in);
  fill_tile(tile, seed, 1, false);
  ptx::fence_proxy_async();
  ptx::cta_barrier();
  float d[48];
  for (int i = 0; i < 48; ++i)
    d[i] = i - 3;
  unsigned a[2][4];
  for (int slice = 0; slice < 2; ++slice)
    load_fragment<T>(a[slice], seed, slice);
  ptx::wgmma_fence();
#pragma unroll
  for (int slice = 0; slice < 2; ++slice)
    multiply<ptx::Major::kMn>(T{}, d, a[slice], ptx::advance(mn_major_operand(tile), mn_major_step<B>(slice)));
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  ptx::pin_registers(d);
  for (int i = 0; i < 48; ++i)
    ptx::st_global_u32(params.out + kThreads * i + ptx::thread_index(), bits_of(d[i]));
}
extern "C" __global__ void conformance_wgmma_f16_registers_across_64(const __grid_constant__ ConformanceParams params) {
  product_96<f16>(params);
}

// ---- Products of any numbers, m64n8k16: nine words of input a thread: A, the accumulators, and of 64 threads B.

template <class T> __device__ __forceinline__ void any_product(const ConformanceParams &params) {
  using B = SharedTile<T, 8, 16, Swizzle::kXor>;
  const B &tile = ptx::shared_storage<B>();
  const unsigned *in = params.in + 9 * element();
  unsigned a[4];
  float d[4];
  for (int i = 0; i < 4; ++i) {
    a[i] = word_of(in + i);
    union {
      unsigned bits;
      float value;
    } both;
    both.bits = word_of(in + 4 + i);
    d[i] = both.value;
  }
  if (ptx::thread_index() < 64) {
    const unsigned word[1] = {word_of(in + 8)};
    ptx::st_shared(tile.address(ptx::thread_index() / 8, ptx::thread_index() % 8 * 2), word);
  }
  ptx::fence_proxy_async();
  ptx::cta_barrier();
  ptx::wgmma_fence();
  multiply<ptx::Major::kK>(T{}, d, a, k_major_operand(tile));
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  ptx::pin_registers(d);
  for (int i = 0; i < 4; ++i)
    ptx::st_global_u32(params.out + 4 * element() + i, bits_of(d[i]));
}
extern "C" __global__ void conformance_wgmma_f32_f16(const __grid_constant__ ConformanceParams params) {
  any_product<f16>(params);
}
extern "C" __global__ void conformance_wgmma_f32_bf16(const __grid_constant__ ConformanceParams params) {
  any_product<bf16>(params);
}
