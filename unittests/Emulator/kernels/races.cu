// fagen: pairs of accesses to the same bytes, ordered and not.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/cp_async.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/ldmatrix.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/shuffle.h>
#include <fagen/device/ptx/threads.h>

using namespace fagen::device;

struct Arguments {
  const void *in;
  void *out;
  int count;
};

constexpr int kThreads = 64;

__device__ __forceinline__ int own() { return 4 * ptx::thread_index(); }
/// A word of the other warp.
__device__ __forceinline__ int far() { return 4 * ((ptx::thread_index() + kThreads / 2) % kThreads); }
/// A word of another lane of this warp.
__device__ __forceinline__ int near() { return 4 * (ptx::thread_index() ^ 5); }

__device__ __forceinline__ void keep(const Arguments &arguments, float value, ptx::Site site = ptx::Site::here()) {
  ptx::st_global_f32(static_cast<float *>(arguments.out) + ptx::thread_index(), value, site);
}
__device__ __forceinline__ void copy(const Arguments &arguments, int target, ptx::Site site = ptx::Site::here()) {
  ptx::cp_async<4>(target, static_cast<const float *>(arguments.in) + ptx::thread_index(), true, site);
}

extern "C" __global__ void ordered(const __grid_constant__ Arguments arguments) {
  ptx::st_shared_f32(own(), 1.0f);
  ptx::cta_barrier();
  const float value = ptx::ld_shared_f32(far());
  ptx::cta_barrier();
  ptx::st_shared_f32(own(), value);
  ptx::warp_barrier();
  keep(arguments, ptx::ld_shared_f32(near()));
}

extern "C" __global__ void read_after_write(const __grid_constant__ Arguments arguments) {
  ptx::st_shared_f32(own(), 1.0f);            // [read_after_write first]
  ptx::warp_barrier();                        // reaches no other warp
  keep(arguments, ptx::ld_shared_f32(far())); // [read_after_write]
}

extern "C" __global__ void write_after_read(const __grid_constant__ Arguments arguments) {
  ptx::st_shared_f32(own(), 1.0f);
  ptx::cta_barrier();
  keep(arguments, ptx::ld_shared_f32(far())); // [write_after_read first]
  ptx::st_shared_f32(own(), 2.0f);            // [write_after_read]
}

extern "C" __global__ void write_after_write(const __grid_constant__ Arguments arguments) {
  ptx::st_shared_f32(own(), 1.0f); // [write_after_write first]
  ptx::st_shared_f32(far(), 1.0f); // [write_after_write]
}

// Shuffles bring the lanes of a warp together and order no memory.
extern "C" __global__ void shuffled(const __grid_constant__ Arguments arguments) {
  ptx::st_shared_f32(own(), 1.0f);
  const float other = ptx::shuffle_xor(1.0f, 1);
  keep(arguments, other + ptx::ld_shared_f32(near())); // [shuffled]
}

// ldmatrix reads for all lanes: the lane that gave the address is not the only reader.
extern "C" __global__ void matrix_then_write(const __grid_constant__ Arguments arguments) {
  if (ptx::warp_index() == 0)
    for (int word = ptx::lane_index(); word < 128; word += 32)
      ptx::st_shared_f32(4 * word, 1.0f);
  ptx::cta_barrier();
  if (ptx::warp_index() != 0)
    return;
  unsigned matrix[4];
  ptx::ldmatrix_x4(matrix, 16 * ptx::lane_index());
  ptx::st_shared_f32(16 * ptx::lane_index(), 2.0f); // [matrix_then_write]
}

extern "C" __global__ void copied(const __grid_constant__ Arguments arguments) {
  copy(arguments, own());
  ptx::cp_async_commit();
  ptx::cp_async_wait<0>();
  ptx::cta_barrier();
  keep(arguments, ptx::ld_shared_f32(far()));
}

// Waiting tells the waiting thread only.
extern "C" __global__ void wait_without_barrier(const __grid_constant__ Arguments arguments) {
  copy(arguments, own());
  ptx::cp_async_commit();
  ptx::cp_async_wait<0>();
  ptx::warp_barrier();
  keep(arguments, ptx::ld_shared_f32(far()));
}

// The barrier comes before the wait: it publishes nothing.
extern "C" __global__ void barrier_before_wait(const __grid_constant__ Arguments arguments) {
  copy(arguments, own());
  ptx::cp_async_commit();
  ptx::cta_barrier();
  ptx::cp_async_wait<0>();
  keep(arguments, ptx::ld_shared_f32(far()));
}

// The copy may land before the other warp has read.
extern "C" __global__ void copy_after_read(const __grid_constant__ Arguments arguments) {
  ptx::st_shared_f32(own(), 1.0f);
  ptx::cta_barrier();
  keep(arguments, ptx::ld_shared_f32(far()));
  copy(arguments, own()); // [copy_after_read]
  ptx::cp_async_commit();
  ptx::cp_async_wait<0>();
}

// Every CTA writes the same words.
extern "C" __global__ void same_output(const __grid_constant__ Arguments arguments) {
  keep(arguments, 1.0f); // [same_output]
}

// A CTA reads what another one writes.
extern "C" __global__ void others_output(const __grid_constant__ Arguments arguments) {
  float *const out = static_cast<float *>(arguments.out);
  ptx::st_global_f32(out + ptx::cta_index() * kThreads + ptx::thread_index(), 1.0f);
  unsigned word[1];
  ptx::ld_global(word, out + (1 - ptx::cta_index()) * kThreads + ptx::thread_index());
}

// Threads of a CTA exchange through global memory, with a barrier or without.
extern "C" __global__ void global_exchange(const __grid_constant__ Arguments arguments) {
  float *const out = static_cast<float *>(arguments.out);
  ptx::st_global_f32(out + ptx::thread_index(), 1.0f);
  if (arguments.count)
    ptx::cta_barrier();
  unsigned word[1];
  ptx::ld_global(word, out + (ptx::thread_index() + 33) % kThreads); // [global_exchange]
}

// All CTAs read; the last one, which has also read last, writes.
extern "C" __global__ void read_by_all(const __grid_constant__ Arguments arguments) {
  float *const out = static_cast<float *>(arguments.out);
  unsigned word[1];
  ptx::ld_global(word, out + ptx::thread_index()); // [read_by_all first]
  if (ptx::cta_index() == arguments.count)
    keep(arguments, 1.0f); // [read_by_all]
}
