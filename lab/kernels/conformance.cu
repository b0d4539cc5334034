// fagen: one small kernel for each ptx function: reads words, applies the function, writes words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same text runs on a GPU, by NVRTC, and in the emulator. conformance/*_cases.cpp say what comes in and what must
// come out; a CTA has 128 threads unless a kernel says otherwise.
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/clock.h>
#include <fagen/device/ptx/cp_async.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/ldmatrix.h>
#include <fagen/device/ptx/math.h>
#include <fagen/device/ptx/mma.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/shuffle.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/ptx/wmma.h>

using namespace fagen::device;

struct ConformanceParams {
  const unsigned *in;
  unsigned *out;
  unsigned long long out_words; // the emulator passes parameters of more than 16 bytes only
};

constexpr int kThreads = 128;

/// NVRTC has no memcpy without a header, the emulator no __int_as_float; both read the other member of a union.
union Word {
  unsigned bits;
  float value;
};
__device__ __forceinline__ float as_float(unsigned bits) {
  Word word;
  word.bits = bits;
  return word.value;
}
__device__ __forceinline__ unsigned as_word(float value) {
  Word word;
  word.value = value;
  return word.bits;
}

/// The thread's number in the grid.
__device__ __forceinline__ int element() { return ptx::cta_index() * kThreads + ptx::thread_index(); }

// ---- Functions of numbers: operands of an element stand together, results one after the other.

template <int kOperands, class Function>
__device__ __forceinline__ void each(const ConformanceParams &params, Function function) {
  unsigned operands[kOperands];
  for (int i = 0; i < kOperands; ++i) {
    unsigned word[1];
    ptx::ld_global(word, params.in + element() * kOperands + i);
    operands[i] = word[0];
  }
  ptx::st_global_u32(params.out + element(), function(operands));
}

extern "C" __global__ void conformance_exp2(const __grid_constant__ ConformanceParams params) {
  each<1>(params, [](const unsigned *x) { return as_word(ptx::exp2(as_float(x[0]))); });
}
extern "C" __global__ void conformance_log2(const __grid_constant__ ConformanceParams params) {
  each<1>(params, [](const unsigned *x) { return as_word(ptx::log2(as_float(x[0]))); });
}
extern "C" __global__ void conformance_tanh(const __grid_constant__ ConformanceParams params) {
  each<1>(params, [](const unsigned *x) { return as_word(ptx::tanh(as_float(x[0]))); });
}
extern "C" __global__ void conformance_fma(const __grid_constant__ ConformanceParams params) {
  each<3>(params, [](const unsigned *x) { return as_word(ptx::fma(as_float(x[0]), as_float(x[1]), as_float(x[2]))); });
}
extern "C" __global__ void conformance_mul(const __grid_constant__ ConformanceParams params) {
  each<2>(params, [](const unsigned *x) { return as_word(ptx::mul(as_float(x[0]), as_float(x[1]))); });
}
extern "C" __global__ void conformance_add(const __grid_constant__ ConformanceParams params) {
  each<2>(params, [](const unsigned *x) { return as_word(ptx::add(as_float(x[0]), as_float(x[1]))); });
}
extern "C" __global__ void conformance_div(const __grid_constant__ ConformanceParams params) {
  each<2>(params, [](const unsigned *x) { return as_word(ptx::div(as_float(x[0]), as_float(x[1]))); });
}
extern "C" __global__ void conformance_sqrt(const __grid_constant__ ConformanceParams params) {
  each<1>(params, [](const unsigned *x) { return as_word(ptx::sqrt(as_float(x[0]))); });
}
extern "C" __global__ void conformance_max(const __grid_constant__ ConformanceParams params) {
  each<2>(params, [](const unsigned *x) { return as_word(ptx::max(as_float(x[0]), as_float(x[1]))); });
}
extern "C" __global__ void conformance_max_or_nan(const __grid_constant__ ConformanceParams params) {
  each<2>(params, [](const unsigned *x) { return as_word(ptx::max_or_nan(as_float(x[0]), as_float(x[1]))); });
}
extern "C" __global__ void conformance_min_or_nan(const __grid_constant__ ConformanceParams params) {
  each<2>(params, [](const unsigned *x) { return as_word(ptx::min_or_nan(as_float(x[0]), as_float(x[1]))); });
}
extern "C" __global__ void conformance_negative_infinity(const __grid_constant__ ConformanceParams params) {
  each<1>(params, [](const unsigned *) { return as_word(ptx::negative_infinity()); });
}
extern "C" __global__ void conformance_round_to_f16(const __grid_constant__ ConformanceParams params) {
  each<1>(params, [](const unsigned *x) { return unsigned{ptx::round_to<f16>(as_float(x[0])).bits}; });
}
extern "C" __global__ void conformance_round_to_bf16(const __grid_constant__ ConformanceParams params) {
  each<1>(params, [](const unsigned *x) { return unsigned{ptx::round_to<bf16>(as_float(x[0])).bits}; });
}
extern "C" __global__ void conformance_round_pair_f16(const __grid_constant__ ConformanceParams params) {
  each<2>(params, [](const unsigned *x) { return ptx::round_pair<f16>(as_float(x[0]), as_float(x[1])); });
}
extern "C" __global__ void conformance_round_pair_bf16(const __grid_constant__ ConformanceParams params) {
  each<2>(params, [](const unsigned *x) { return ptx::round_pair<bf16>(as_float(x[0]), as_float(x[1])); });
}
extern "C" __global__ void conformance_to_float_f16(const __grid_constant__ ConformanceParams params) {
  each<1>(params, [](const unsigned *x) { return as_word(ptx::to_float(f16{static_cast<unsigned short>(x[0])})); });
}
extern "C" __global__ void conformance_to_float_bf16(const __grid_constant__ ConformanceParams params) {
  each<1>(params, [](const unsigned *x) { return as_word(ptx::to_float(bf16{static_cast<unsigned short>(x[0])})); });
}
extern "C" __global__ void conformance_recompute(const __grid_constant__ ConformanceParams params) {
  each<1>(params, [](const unsigned *x) { return ptx::recompute(x[0]); });
}

// ---- Who a thread is, and addresses of shared memory.

extern "C" __global__ void conformance_threads(const __grid_constant__ ConformanceParams params) {
  unsigned *out = params.out + element() * 4;
  const int values[4] = {ptx::thread_index(), ptx::cta_index(), ptx::lane_index(), ptx::warp_index()};
  for (int i = 0; i < 4; ++i)
    ptx::st_global_u32(out + i, static_cast<unsigned>(values[i]));
}

// A bit for each that holds: clocks do not go back between two readings, the SM has a number.
extern "C" __global__ void conformance_clocks(const __grid_constant__ ConformanceParams params) {
  const unsigned long long clocks = ptx::clock64(), nanoseconds = ptx::global_nanoseconds();
  const unsigned low = ptx::clock32();
  const unsigned holds = (ptx::clock64() >= clocks ? 1u : 0u) | (ptx::global_nanoseconds() >= nanoseconds ? 2u : 0u) |
                         (ptx::clock32() - low < 0x80000000u ? 4u : 0u) | (ptx::sm_index() < 4096u ? 8u : 0u);
  ptx::st_global_u32(params.out + element(), holds);
}

struct alignas(16) Storage {
  unsigned char bytes[8192];
};

/// Out: the distance of byte x from the first, and what the address of the first leaves when divided by 1024.
extern "C" __global__ void conformance_shared_address(const __grid_constant__ ConformanceParams params) {
  unsigned x[1];
  ptx::ld_global(x, params.in + element());
  Storage &storage = ptx::shared_storage<Storage>();
  const unsigned first = ptx::shared_address(&storage);
  ptx::st_global_u32(params.out + element() * 2, ptx::shared_address(&storage.bytes[x[0]]) - first);
  ptx::st_global_u32(params.out + element() * 2 + 1, first % 1024);
}

// ---- Memory: 16 bytes of a thread go by one width into a slot, and come by another width out of a slot.

/// What a thread is told: where to write, where to read, two more words.
struct Head {
  unsigned words[4];
};

__device__ __forceinline__ Head head_of(const ConformanceParams &params, int stride) {
  Head head;
  ptx::ld_global(head.words, params.in + element() * stride);
  return head;
}

__device__ __forceinline__ unsigned shared_base_address() {
  return ptx::shared_address(&ptx::shared_storage<Storage>());
}

template <int kBytes> __device__ __forceinline__ void put_shared(unsigned address, const unsigned (&data)[4]) {
  if constexpr (kBytes == 2) {
    for (int i = 0; i < 8; ++i)
      ptx::st_shared_u16(address + 2 * i, static_cast<unsigned short>(data[i / 2] >> i % 2 * 16));
  } else {
    constexpr int kWords = kBytes / 4;
    for (int i = 0; i < 4; i += kWords) {
      unsigned part[kWords];
      for (int j = 0; j < kWords; ++j)
        part[j] = data[i + j];
      ptx::st_shared(address + 4 * i, part);
    }
  }
}

template <int kBytes> __device__ __forceinline__ void get_shared(unsigned (&data)[4], unsigned address) {
  if constexpr (kBytes == 2) {
    for (int i = 0; i < 8; i += 2)
      data[i / 2] = ptx::ld_shared_u16(address + 2 * i) | static_cast<unsigned>(ptx::ld_shared_u16(address + 2 * i + 2))
                                                              << 16;
  } else {
    constexpr int kWords = kBytes / 4;
    for (int i = 0; i < 4; i += kWords) {
      unsigned part[kWords];
      ptx::ld_shared(part, address + 4 * i);
      for (int j = 0; j < kWords; ++j)
        data[i + j] = part[j];
    }
  }
}

__device__ __forceinline__ void put_result(const ConformanceParams &params, int index, const unsigned (&data)[4]) {
  for (int i = 0; i < 4; ++i)
    ptx::st_global_u32(params.out + index * 4 + i, data[i]);
}

template <int kStore, int kLoad> __device__ __forceinline__ void exchange(const ConformanceParams &params) {
  const Head head = head_of(params, 8);
  unsigned data[4];
  ptx::ld_global(data, params.in + element() * 8 + 4);
  put_shared<kStore>(shared_base_address() + head.words[0] * 16, data);
  ptx::cta_barrier();
  get_shared<kLoad>(data, shared_base_address() + head.words[1] * 16);
  put_result(params, element(), data);
}

extern "C" __global__ void conformance_ld_shared_u16(const __grid_constant__ ConformanceParams params) {
  exchange<16, 2>(params);
}
extern "C" __global__ void conformance_st_shared_u16(const __grid_constant__ ConformanceParams params) {
  exchange<2, 16>(params);
}
extern "C" __global__ void conformance_ld_shared_4(const __grid_constant__ ConformanceParams params) {
  exchange<8, 4>(params);
}
extern "C" __global__ void conformance_ld_shared_8(const __grid_constant__ ConformanceParams params) {
  exchange<4, 8>(params);
}
extern "C" __global__ void conformance_ld_shared_16(const __grid_constant__ ConformanceParams params) {
  exchange<2, 16>(params);
}
extern "C" __global__ void conformance_st_shared_4(const __grid_constant__ ConformanceParams params) {
  exchange<4, 16>(params);
}
extern "C" __global__ void conformance_st_shared_8(const __grid_constant__ ConformanceParams params) {
  exchange<8, 2>(params);
}
extern "C" __global__ void conformance_st_shared_16(const __grid_constant__ ConformanceParams params) {
  exchange<16, 4>(params);
}

/// Numbers keep their bits, whatever they are.
extern "C" __global__ void conformance_shared_f32(const __grid_constant__ ConformanceParams params) {
  const Head head = head_of(params, 8);
  unsigned data[4];
  ptx::ld_global(data, params.in + element() * 8 + 4);
  for (int i = 0; i < 4; ++i)
    ptx::st_shared_f32(shared_base_address() + head.words[0] * 16 + 4 * i, as_float(data[i]));
  ptx::cta_barrier();
  for (int i = 0; i < 4; ++i)
    data[i] = as_word(ptx::ld_shared_f32(shared_base_address() + head.words[1] * 16 + 4 * i));
  put_result(params, element(), data);
}

/// Pairs of numbers, stored and loaded; and a store by an inactive thread writes nothing.
extern "C" __global__ void conformance_shared_f32x2(const __grid_constant__ ConformanceParams params) {
  const Head head = head_of(params, 8);
  unsigned data[4];
  ptx::ld_global(data, params.in + element() * 8 + 4);
  for (int i = 0; i < 4; i += 2) {
    const float pair[2] = {as_float(data[i]), as_float(data[i + 1])};
    ptx::st_shared_f32x2(shared_base_address() + head.words[0] * 16 + 4 * i, pair);
  }
  for (int i = 0; i < 4; ++i)
    ptx::st_shared_f32(shared_base_address() + head.words[0] * 16 + 4 * i, 1.0f, ptx::Site::here(), false);
  ptx::cta_barrier();
  for (int i = 0; i < 4; i += 2) {
    float pair[2];
    ptx::ld_shared_f32x2(pair, shared_base_address() + head.words[1] * 16 + 4 * i);
    data[i] = as_word(pair[0]);
    data[i + 1] = as_word(pair[1]);
  }
  put_result(params, element(), data);
}

/// A lane that is not active reads nothing.
template <int kBytes> __device__ __forceinline__ void get_global(unsigned (&data)[4], const unsigned *from) {
  const ptx::Site site = ptx::Site::here();
  if constexpr (kBytes == 2) {
    const char *bytes = reinterpret_cast<const char *>(from);
    for (int i = 0; i < 4; ++i)
      data[i] = ptx::ld_global_u16(bytes + 4 * i) | static_cast<unsigned>(ptx::ld_global_u16(bytes + 4 * i + 2)) << 16 |
                ptx::ld_global_u16(nullptr, site, false);
  } else if constexpr (kBytes == 1) {
    const char *bytes = reinterpret_cast<const char *>(from);
    for (int i = 0; i < 4; ++i) {
      data[i] = 0;
      for (int j = 0; j < 4; ++j)
        data[i] |= static_cast<unsigned>(ptx::ld_global_u8(bytes + 4 * i + j) | ptx::ld_global_u8(nullptr, site, false))
                   << 8 * j;
    }
  } else {
    constexpr int kWords = kBytes / 4;
    for (int i = 0; i < 4; i += kWords) {
      unsigned part[kWords];
      ptx::ld_global(part, from + i);
      for (int j = 0; j < kWords; ++j)
        data[i + j] = part[j];
      if (kWords == 1 && i % 2 != 0) // by the other function for one word
        data[i] = ptx::ld_global_u32(from + i) | ptx::ld_global_u32(nullptr, site, false);
    }
  }
}

enum class Store { U16, U32, F32, Words };

/// A thread reads the data of the thread of its CTA that word 1 names, and writes it where word 0 says.
template <int kLoad, Store kStore> __device__ __forceinline__ void copy_global(const ConformanceParams &params) {
  const Head head = head_of(params, 8);
  const int first = ptx::cta_index() * kThreads;
  unsigned data[4];
  get_global<kLoad>(data, params.in + (first + head.words[1]) * 8 + 4);
  unsigned *target = params.out + (first + head.words[0]) * 4;
  if constexpr (kStore == Store::Words)
    return ptx::st_global(target, data);
  for (int i = 0; i < 4; ++i) {
    if constexpr (kStore == Store::U16) {
      char *bytes = reinterpret_cast<char *>(target + i);
      ptx::st_global_u16(bytes, static_cast<unsigned short>(data[i]));
      ptx::st_global_u16(bytes + 2, static_cast<unsigned short>(data[i] >> 16));
    } else if constexpr (kStore == Store::U32) {
      ptx::st_global_u32(target + i, data[i]);
    } else {
      ptx::st_global_f32(reinterpret_cast<float *>(target + i), as_float(data[i]));
    }
  }
}

/// The same by loads and stores of kCount f32.
template <int kCount> __device__ __forceinline__ void copy_global_f32(const ConformanceParams &params) {
  const Head head = head_of(params, 8);
  const int first = ptx::cta_index() * kThreads;
  const float *source = reinterpret_cast<const float *>(params.in + (first + head.words[1]) * 8 + 4);
  float *target = reinterpret_cast<float *>(params.out + (first + head.words[0]) * 4);
  for (int i = 0; i < 4; i += kCount) {
    float part[kCount];
    ptx::ld_global_f32(part, source + i);
    ptx::st_global_f32(target + i, part);
  }
}

/// Three increments of a word of the thread's own, which stands where the last result goes.
extern "C" __global__ void conformance_atomic_inc(const __grid_constant__ ConformanceParams params) {
  const unsigned *in = params.in + element() * 8;
  unsigned *out = params.out + element() * 4;
  unsigned word[2];
  ptx::ld_global(word, in + 4);
  ptx::st_global_u32(out + 3, word[0]);
  for (int i = 0; i < 3; ++i)
    ptx::st_global_u32(out + i, ptx::atomic_inc(out + 3, word[1]));
}

extern "C" __global__ void conformance_st_global_16(const __grid_constant__ ConformanceParams params) {
  copy_global<16, Store::Words>(params);
}
extern "C" __global__ void conformance_ld_global_u8(const __grid_constant__ ConformanceParams params) {
  copy_global<1, Store::U32>(params);
}
extern "C" __global__ void conformance_ld_global_u16(const __grid_constant__ ConformanceParams params) {
  copy_global<2, Store::U32>(params);
}
extern "C" __global__ void conformance_ld_global_4(const __grid_constant__ ConformanceParams params) {
  copy_global<4, Store::U32>(params);
}
extern "C" __global__ void conformance_ld_global_8(const __grid_constant__ ConformanceParams params) {
  copy_global<8, Store::U32>(params);
}
extern "C" __global__ void conformance_ld_global_16(const __grid_constant__ ConformanceParams params) {
  copy_global<16, Store::U32>(params);
}
extern "C" __global__ void conformance_st_global_u16(const __grid_constant__ ConformanceParams params) {
  copy_global<16, Store::U16>(params);
}
extern "C" __global__ void conformance_st_global_u32(const __grid_constant__ ConformanceParams params) {
  copy_global<8, Store::U32>(params);
}
extern "C" __global__ void conformance_global_f32x2(const __grid_constant__ ConformanceParams params) {
  copy_global_f32<2>(params);
}
extern "C" __global__ void conformance_global_f32x4(const __grid_constant__ ConformanceParams params) {
  copy_global_f32<4>(params);
}
extern "C" __global__ void conformance_st_global_f32(const __grid_constant__ ConformanceParams params) {
  copy_global<16, Store::F32>(params);
}

// ---- Asynchronous copies: four stages of 16 bytes a thread, a group each, over shared memory full of other words.

constexpr int kStageBytes = kThreads * 16;

template <int kBytes>
__device__ __forceinline__ void copy_stage(int stage, unsigned slot, unsigned valid, const unsigned *source) {
  for (int byte = 0; byte < 16; byte += kBytes)
    ptx::cp_async<kBytes>(shared_base_address() + stage * kStageBytes + slot * 16 + byte, source + stage * 4 + byte / 4,
                          (valid >> (stage * 4 + byte / 4) & 1) != 0);
  ptx::cp_async_commit();
}

template <int kPending> __device__ __forceinline__ void read_stage(const ConformanceParams &params, unsigned slot) {
  constexpr int kStage = 3 - kPending;
  ptx::cp_async_wait<kPending>();
  ptx::cta_barrier();
  unsigned data[4];
  ptx::ld_shared(data, shared_base_address() + kStage * kStageBytes + slot * 16);
  put_result(params, element() * 4 + kStage, data);
}

template <int kBytes> __device__ __forceinline__ void copy_async(const ConformanceParams &params) {
  const Head head = head_of(params, 20);
  const unsigned other[4] = {head.words[3], ~head.words[3], head.words[3] + 1, head.words[3] + 2};
  for (int stage = 0; stage < 4; ++stage)
    ptx::st_shared(shared_base_address() + stage * kStageBytes + ptx::thread_index() * 16, other);
  ptx::cta_barrier();
  for (int stage = 0; stage < 4; ++stage)
    copy_stage<kBytes>(stage, head.words[0], head.words[2], params.in + element() * 20 + 4);
  read_stage<3>(params, head.words[1]);
  read_stage<2>(params, head.words[1]);
  read_stage<1>(params, head.words[1]);
  read_stage<0>(params, head.words[1]);
}

extern "C" __global__ void conformance_cp_async_4(const __grid_constant__ ConformanceParams params) {
  copy_async<4>(params);
}
extern "C" __global__ void conformance_cp_async_8(const __grid_constant__ ConformanceParams params) {
  copy_async<8>(params);
}
extern "C" __global__ void conformance_cp_async_16(const __grid_constant__ ConformanceParams params) {
  copy_async<16>(params);
}

// ---- Barriers: eight times, each thread's number becomes a function of another's.

__device__ __forceinline__ unsigned stirred(unsigned own, unsigned other) { return (own ^ other) * 2654435761u + 1; }

template <bool kWarp> __device__ __forceinline__ void stir(const ConformanceParams &params) {
  const Head head = head_of(params, 4);
  const unsigned own = shared_base_address() + ptx::thread_index() * 4;
  unsigned value[1] = {head.words[0]};
  for (int round = 0; round < 8; ++round) {
    ptx::st_shared(own, value);
    kWarp ? ptx::warp_barrier() : ptx::cta_barrier();
    unsigned other[1];
    ptx::ld_shared(other, shared_base_address() + head.words[1] * 4);
    value[0] = stirred(value[0], other[0]);
    kWarp ? ptx::warp_barrier() : ptx::cta_barrier();
  }
  ptx::st_global_u32(params.out + element(), value[0]);
}

// The same in halves of the CTA, each with its own barrier.
extern "C" __global__ void conformance_named_barrier(const __grid_constant__ ConformanceParams params) {
  const Head head = head_of(params, 4);
  const int half = ptx::thread_index() / 64;
  const unsigned own = shared_base_address() + ptx::thread_index() * 4;
  unsigned value[1] = {head.words[0]};
  for (int round = 0; round < 8; ++round) {
    ptx::st_shared(own, value);
    ptx::named_barrier(1 + half, 64);
    unsigned other[1];
    ptx::ld_shared(other, shared_base_address() + head.words[1] * 4);
    value[0] = stirred(value[0], other[0]);
    ptx::named_barrier(1 + half, 64);
  }
  ptx::st_global_u32(params.out + element(), value[0]);
}

// The first half hands its numbers to the second one: each side arrives where the other one waits.
extern "C" __global__ void conformance_named_barrier_arrive(const __grid_constant__ ConformanceParams params) {
  const Head head = head_of(params, 4);
  unsigned value[1] = {head.words[0]};
  for (int round = 0; round < 8; ++round) {
    unsigned other[1];
    if (ptx::thread_index() < 64) {
      ptx::st_shared(shared_base_address() + ptx::thread_index() * 4, value);
      ptx::named_barrier_arrive(1, 128);
      other[0] = value[0];
      ptx::named_barrier(2, 128);
    } else {
      ptx::named_barrier(1, 128);
      ptx::ld_shared(other, shared_base_address() + head.words[1] % 64 * 4);
      ptx::named_barrier_arrive(2, 128);
    }
    value[0] = stirred(value[0], other[0] + round);
  }
  ptx::st_global_u32(params.out + element(), value[0]);
}

extern "C" __global__ void conformance_cta_barrier(const __grid_constant__ ConformanceParams params) {
  stir<false>(params);
}
extern "C" __global__ void conformance_warp_barrier(const __grid_constant__ ConformanceParams params) {
  stir<true>(params);
}

// ---- What a warp does together.

extern "C" __global__ void conformance_shuffle_xor(const __grid_constant__ ConformanceParams params) {
  unsigned word[1];
  ptx::ld_global(word, params.in + element());
  for (int mask = 0; mask < 32; ++mask)
    ptx::st_global_u32(params.out + element() * 32 + mask, mask % 2 == 0
                                                               ? as_word(ptx::shuffle_xor(as_float(word[0]), mask))
                                                               : ptx::shuffle_xor(word[0], mask));
}

/// Of each bit of the lane's word.
extern "C" __global__ void conformance_any(const __grid_constant__ ConformanceParams params) {
  unsigned word[1];
  ptx::ld_global(word, params.in + element());
  for (int bit = 0; bit < 32; ++bit)
    ptx::st_global_u32(params.out + element() * 32 + bit, ptx::any((word[0] >> bit & 1) != 0));
}

/// A lane writes row `lane` of its warp's 32 rows, and gives the address of row words[1].
template <bool kTranspose> __device__ __forceinline__ void load_matrices(const ConformanceParams &params) {
  const Head head = head_of(params, 8);
  const unsigned rows = shared_base_address() + ptx::warp_index() * 512;
  unsigned data[4];
  ptx::ld_global(data, params.in + element() * 8 + 4);
  ptx::st_shared(rows + ptx::lane_index() * 16, data);
  ptx::warp_barrier();
  if constexpr (kTranspose)
    ptx::ldmatrix_x4_trans(data, rows + head.words[1] * 16);
  else
    ptx::ldmatrix_x4(data, rows + head.words[1] * 16);
  put_result(params, element(), data);
}

extern "C" __global__ void conformance_ldmatrix_x4(const __grid_constant__ ConformanceParams params) {
  load_matrices<false>(params);
}
extern "C" __global__ void conformance_ldmatrix_x4_trans(const __grid_constant__ ConformanceParams params) {
  load_matrices<true>(params);
}

/// Twelve words a lane: four of A, two of B, two unused, four of the accumulator.
template <class Function> __device__ __forceinline__ void multiply(const ConformanceParams &params, Function function) {
  const unsigned *in = params.in + element() * 12;
  unsigned a[4], b[2], c[4];
  ptx::ld_global(a, in);
  ptx::ld_global(b, in + 4);
  ptx::ld_global(c, in + 8);
  float d[4];
  for (int i = 0; i < 4; ++i)
    d[i] = as_float(c[i]);
  function(d, a, b[0], b[1]);
  for (int i = 0; i < 4; ++i)
    ptx::st_global_u32(params.out + element() * 4 + i, as_word(d[i]));
}

extern "C" __global__ void conformance_mma_m16n8k16_f32_f16(const __grid_constant__ ConformanceParams params) {
  multiply(params, [](float(&d)[4], const unsigned(&a)[4], unsigned b0, unsigned b1) {
    ptx::mma_m16n8k16_f32_f16(d, a, b0, b1);
  });
}
extern "C" __global__ void conformance_mma_m16n8k16_f32_bf16(const __grid_constant__ ConformanceParams params) {
  multiply(params, [](float(&d)[4], const unsigned(&a)[4], unsigned b0, unsigned b1) {
    ptx::mma_m16n8k16_f32_bf16(d, a, b0, b1);
  });
}

// ---- wmma: A of 512 bytes, B of 512, in shared memory; then D over both. A CTA is one warp; 260 words of input: A, B,
// the number with which the accumulator begins; 256 results.

__device__ __forceinline__ void stage_operands(const unsigned *in) {
  for (int i = 0; i < 2; ++i) {
    unsigned data[4];
    ptx::ld_global(data, in + (i * 32 + ptx::lane_index()) * 4);
    ptx::st_shared(shared_base_address() + (i * 32 + ptx::lane_index()) * 16, data);
  }
  ptx::warp_barrier();
}

/// kWords: of a fragment of A or B. Functions: load A, load B, multiply, all of them on the whole warp.
template <int kWords, class LoadA, class LoadB, class Multiply>
__device__ __forceinline__ void multiply_f32(const ConformanceParams &params, LoadA load_a, LoadB load_b,
                                             Multiply multiply) {
  const unsigned *in = params.in + ptx::cta_index() * 260;
  const unsigned shared = shared_base_address();
  stage_operands(in);
  unsigned a[kWords], b[kWords], c[1];
  load_a(a, shared, 16);
  load_b(b, shared + 512, 16);
  ptx::ld_global(c, in + 256);
  float d[8];
  for (int i = 0; i < 8; ++i)
    d[i] = as_float(c[0]);
  multiply(d, a, b);
  ptx::warp_barrier();
  ptx::wmma_store_d_f32(shared, d, 16);
  ptx::warp_barrier();
  for (int i = 0; i < 8; ++i) {
    unsigned result[1];
    ptx::ld_shared(result, shared + (i * 32 + ptx::lane_index()) * 4);
    ptx::st_global_u32(params.out + ptx::cta_index() * 256 + i * 32 + ptx::lane_index(), result[0]);
  }
}

template <class LoadB, class Multiply>
__device__ __forceinline__ void multiply_f16(const ConformanceParams &params, LoadB load_b, Multiply multiply) {
  const unsigned *in = params.in + ptx::cta_index() * 260;
  const unsigned shared = shared_base_address();
  stage_operands(in);
  unsigned a[8], b[8], c[1];
  ptx::wmma_load_a_f16(a, shared, 16);
  load_b(b, shared + 512, 16);
  ptx::ld_global(c, in + 256);
  unsigned d[4];
  for (int i = 0; i < 4; ++i)
    d[i] = c[0] * 0x10001u;
  multiply(d, a, b);
  ptx::warp_barrier();
  ptx::wmma_store_d_f16(shared, d, 16);
  ptx::warp_barrier();
  for (int i = 0; i < 8; ++i) {
    const unsigned result = ptx::ld_shared_u16(shared + (i * 32 + ptx::lane_index()) * 2);
    ptx::st_global_u32(params.out + ptx::cta_index() * 256 + i * 32 + ptx::lane_index(), result);
  }
}

extern "C" __global__ void conformance_wmma_mma_f32_f16_row(const __grid_constant__ ConformanceParams params) {
  multiply_f32<8>(
      params, [](unsigned(&a)[8], unsigned address, unsigned stride) { ptx::wmma_load_a_f16(a, address, stride); },
      [](unsigned(&b)[8], unsigned address, unsigned stride) { ptx::wmma_load_b_f16_row(b, address, stride); },
      [](float(&d)[8], const unsigned(&a)[8], const unsigned(&b)[8]) { ptx::wmma_mma_f32_f16_row(d, a, b); });
}
extern "C" __global__ void conformance_wmma_mma_f32_f16_col(const __grid_constant__ ConformanceParams params) {
  multiply_f32<8>(
      params, [](unsigned(&a)[8], unsigned address, unsigned stride) { ptx::wmma_load_a_f16(a, address, stride); },
      [](unsigned(&b)[8], unsigned address, unsigned stride) { ptx::wmma_load_b_f16_col(b, address, stride); },
      [](float(&d)[8], const unsigned(&a)[8], const unsigned(&b)[8]) { ptx::wmma_mma_f32_f16_col(d, a, b); });
}
extern "C" __global__ void conformance_wmma_mma_f32_bf16_row(const __grid_constant__ ConformanceParams params) {
  multiply_f32<4>(
      params, [](unsigned(&a)[4], unsigned address, unsigned stride) { ptx::wmma_load_a_bf16(a, address, stride); },
      [](unsigned(&b)[4], unsigned address, unsigned stride) { ptx::wmma_load_b_bf16_row(b, address, stride); },
      [](float(&d)[8], const unsigned(&a)[4], const unsigned(&b)[4]) { ptx::wmma_mma_f32_bf16_row(d, a, b); });
}
extern "C" __global__ void conformance_wmma_mma_f32_bf16_col(const __grid_constant__ ConformanceParams params) {
  multiply_f32<4>(
      params, [](unsigned(&a)[4], unsigned address, unsigned stride) { ptx::wmma_load_a_bf16(a, address, stride); },
      [](unsigned(&b)[4], unsigned address, unsigned stride) { ptx::wmma_load_b_bf16_col(b, address, stride); },
      [](float(&d)[8], const unsigned(&a)[4], const unsigned(&b)[4]) { ptx::wmma_mma_f32_bf16_col(d, a, b); });
}
extern "C" __global__ void conformance_wmma_mma_f16_f16_row(const __grid_constant__ ConformanceParams params) {
  multiply_f16(
      params, [](unsigned(&b)[8], unsigned address, unsigned stride) { ptx::wmma_load_b_f16_row(b, address, stride); },
      [](unsigned(&d)[4], const unsigned(&a)[8], const unsigned(&b)[8]) { ptx::wmma_mma_f16_f16_row(d, a, b); });
}
extern "C" __global__ void conformance_wmma_mma_f16_f16_col(const __grid_constant__ ConformanceParams params) {
  multiply_f16(
      params, [](unsigned(&b)[8], unsigned address, unsigned stride) { ptx::wmma_load_b_f16_col(b, address, stride); },
      [](unsigned(&d)[4], const unsigned(&a)[8], const unsigned(&b)[8]) { ptx::wmma_mma_f16_f16_col(d, a, b); });
}
