// fagen: one access to shared memory a kernel, by one warp: what the rules of bank conflicts are tried on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// measure/ncu_conflicts.py has ncu count the wavefronts on a GPU, unit-Emulator has the emulator count them; both
// compare with measure/bank_probe.txt.
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/ldmatrix.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/threads.h>

using namespace fagen::device;

/// Longer than the registers that a host compiler would pass it in: the emulator takes arguments in memory.
struct Arguments {
  unsigned *out;
  long long unused[2];
};

constexpr int kSharedBytes = 8192;

#ifdef FAGEN_EMULATED_KERNEL
#define FAGEN_PROBE(name)
#else
#include <cstdio>
#include <cuda_runtime.h>

struct Probe {
  explicit Probe(void (*kernel)(Arguments)) : kernel(kernel), before(last) { last = this; }
  void (*kernel)(Arguments);
  const Probe *before;
  static inline const Probe *last = nullptr;
};
#define FAGEN_PROBE(name) static const Probe probe_##name(name);
#endif

/// Address of byte 0 of the CTA's shared memory, all of it written.
__device__ __forceinline__ unsigned written_memory() {
  const unsigned base = ptx::shared_address(&ptx::shared_storage<unsigned char>());
  for (int byte = 4 * ptx::lane_index(); byte < kSharedBytes; byte += 128)
    ptx::st_shared_f32(base + byte, 1.0f);
  ptx::warp_barrier();
  return base;
}

/// All words are used: ptxas loads no others.
template <int kWords> __device__ __forceinline__ unsigned total(const unsigned (&words)[kWords]) {
  unsigned sum = 0;
#pragma unroll
  for (int i = 0; i < kWords; ++i)
    sum += words[i];
  return sum;
}

// `active`: which lanes take part; `offset`: of the lane's bytes.
#define FAGEN_LOAD(name, words, active, offset)                                                                        \
  extern "C" __global__ void name(const __grid_constant__ Arguments arguments) {                                       \
    const unsigned base = written_memory();                                                                            \
    const unsigned lane = ptx::lane_index();                                                                           \
    unsigned value[words] = {};                                                                                        \
    if (active)                                                                                                        \
      ptx::ld_shared(value, base + (offset));                                                                          \
    ptx::st_global_u32(arguments.out + lane, total(value));                                                            \
  }                                                                                                                    \
  FAGEN_PROBE(name)
#define FAGEN_STORE(name, words, active, offset)                                                                       \
  extern "C" __global__ void name(const __grid_constant__ Arguments arguments) {                                       \
    const unsigned base = ptx::shared_address(&ptx::shared_storage<unsigned char>());                                  \
    const unsigned lane = ptx::lane_index();                                                                           \
    const unsigned value[words] = {lane};                                                                              \
    if (active)                                                                                                        \
      ptx::st_shared(base + (offset), value);                                                                          \
    ptx::st_global_u32(arguments.out + lane, lane);                                                                    \
  }                                                                                                                    \
  FAGEN_PROBE(name)
#define FAGEN_LDMATRIX(name, offset)                                                                                   \
  extern "C" __global__ void name(const __grid_constant__ Arguments arguments) {                                       \
    const unsigned base = written_memory();                                                                            \
    const unsigned lane = ptx::lane_index();                                                                           \
    unsigned value[4];                                                                                                 \
    ptx::ldmatrix_x4(value, base + (offset));                                                                          \
    ptx::st_global_u32(arguments.out + lane, value[0]);                                                                \
  }                                                                                                                    \
  FAGEN_PROBE(name)

FAGEN_LOAD(load_4B_consecutive, 1, true, 4 * lane)
FAGEN_LOAD(load_4B_same, 1, true, 0)
FAGEN_LOAD(load_4B_every_second, 1, true, 8 * lane)
FAGEN_LOAD(load_4B_one_bank, 1, true, 128 * lane)
FAGEN_LOAD(load_4B_one_bank_8_lanes, 1, lane % 4 == 0, 128 * lane)
FAGEN_LOAD(load_4B_stride_33, 1, true, 132 * lane)

FAGEN_LOAD(load_8B_consecutive, 2, true, 8 * lane)
FAGEN_LOAD(load_8B_every_second, 2, true, 16 * lane)
FAGEN_LOAD(load_8B_one_bank, 2, true, 128 * lane)
FAGEN_LOAD(load_8B_same, 2, true, 0)
FAGEN_LOAD(load_8B_pairs, 2, true, lane / 2 * 8)
FAGEN_LOAD(load_8B_pairs_two_apart, 2, true, (lane / 4 * 2 + lane % 2) * 8)
FAGEN_LOAD(load_8B_halves_alike, 2, true, lane % 16 * 8)
FAGEN_LOAD(load_8B_lower_half, 2, lane < 16, 8 * lane)
FAGEN_LOAD(load_8B_even_lanes, 2, lane % 2 == 0, 8 * lane)

FAGEN_LOAD(load_16B_consecutive, 4, true, 16 * lane)
FAGEN_LOAD(load_16B_rows_of_128, 4, true, 128 * lane)
FAGEN_LOAD(load_16B_rows_of_144, 4, true, 144 * lane)
FAGEN_LOAD(load_16B_same, 4, true, 0)
FAGEN_LOAD(load_16B_pairs, 4, true, lane / 2 * 16)
FAGEN_LOAD(load_16B_pairs_two_apart, 4, true, (lane / 4 * 2 + lane % 2) * 16)
FAGEN_LOAD(load_16B_upper_half_same, 4, true, lane < 16 ? 16 * lane : 512)
FAGEN_LOAD(load_16B_first_quarter, 4, lane < 8, 16 * lane)
FAGEN_LOAD(load_16B_two_lanes, 4, lane == 0 || lane == 31, 128 * lane)

FAGEN_STORE(store_4B_consecutive, 1, true, 4 * lane)
FAGEN_STORE(store_4B_one_bank, 1, true, 128 * lane)
FAGEN_STORE(store_4B_same, 1, true, 0)
FAGEN_STORE(store_8B_consecutive, 2, true, 8 * lane)
FAGEN_STORE(store_8B_every_second, 2, true, 16 * lane)
FAGEN_STORE(store_8B_same, 2, true, 0)
FAGEN_STORE(store_16B_consecutive, 4, true, 16 * lane)
FAGEN_STORE(store_16B_rows_of_128, 4, true, 128 * lane)
FAGEN_STORE(store_16B_same, 4, true, 0)

FAGEN_LDMATRIX(ldmatrix_16B_consecutive, 16 * lane)
FAGEN_LDMATRIX(ldmatrix_16B_rows_of_96, 96 * lane)
FAGEN_LDMATRIX(ldmatrix_16B_rows_of_128, 128 * lane)
FAGEN_LDMATRIX(ldmatrix_16B_rows_of_144, 144 * lane)
FAGEN_LDMATRIX(ldmatrix_16B_same, 0)

// Two bytes a lane.
extern "C" __global__ void load_2B_consecutive(const __grid_constant__ Arguments arguments) {
  const unsigned base = written_memory();
  const int lane = ptx::lane_index();
  ptx::st_global_u32(arguments.out + lane, ptx::ld_shared_u16(base + 2 * lane));
}
FAGEN_PROBE(load_2B_consecutive)
extern "C" __global__ void store_2B_halves(const __grid_constant__ Arguments) {
  ptx::st_shared_u16(ptx::shared_address(&ptx::shared_storage<unsigned char>()) + 2 * ptx::lane_index(), 1);
}
FAGEN_PROBE(store_2B_halves)
extern "C" __global__ void store_2B_rows_of_64(const __grid_constant__ Arguments) {
  ptx::st_shared_u16(ptx::shared_address(&ptx::shared_storage<unsigned char>()) + 64 * ptx::lane_index(), 1);
}
FAGEN_PROBE(store_2B_rows_of_64)

#ifndef FAGEN_EMULATED_KERNEL
// Launches every probe once.
int main() {
  Arguments arguments{};
  cudaError_t error = cudaMalloc(&arguments.out, 32 * sizeof(unsigned));
  for (const Probe *probe = Probe::last; probe && error == cudaSuccess; probe = probe->before) {
    probe->kernel<<<1, 32, kSharedBytes>>>(arguments);
    error = cudaDeviceSynchronize();
  }
  if (error != cudaSuccess)
    std::fprintf(stderr, "bank_probe: %s\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}
#endif
