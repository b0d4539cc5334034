// fagen: threads that meet, and threads that don't.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ptx/barrier.h>
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

extern "C" __global__ void shuffle(const __grid_constant__ Arguments arguments) {
  const float own = static_cast<float>(ptx::thread_index());
  const float other = ptx::shuffle_xor(own, arguments.count);
  ptx::st_global_f32(static_cast<float *>(arguments.out) + ptx::thread_index(), other);
}

// Each warp reads what the next one wrote; the barrier is left out when count is 0.
extern "C" __global__ void exchange(const __grid_constant__ Arguments arguments) {
  ptx::st_shared_f32(4 * ptx::thread_index(), static_cast<float>(ptx::thread_index()));
  if (arguments.count != 0)
    ptx::cta_barrier();
  const float other = ptx::ld_shared_f32(4 * ((ptx::thread_index() + 32) % 128)); // [exchange]
  ptx::st_global_f32(static_cast<float *>(arguments.out) + ptx::thread_index(), other);
}

// Each lane reads what the next one wrote.
extern "C" __global__ void warp_exchange(const __grid_constant__ Arguments arguments) {
  ptx::st_shared_f32(4 * ptx::thread_index(), static_cast<float>(ptx::thread_index()));
  if (arguments.count != 0)
    ptx::warp_barrier();
  const float other = ptx::ld_shared_f32(4 * ((ptx::thread_index() + 1) % 32)); // [warp_exchange]
  ptx::st_global_f32(static_cast<float *>(arguments.out) + ptx::thread_index(), other);
}

extern "C" __global__ void mismatch(const __grid_constant__ Arguments arguments) {
  unsigned matrix[4] = {};
  if (ptx::lane_index() < arguments.count)
    ptx::ldmatrix_x4(matrix, 0);
  else
    matrix[0] = ptx::shuffle_xor(1.0f, 1); // [mismatch]
  ptx::st_global_u32(arguments.out, matrix[0]);
}

extern "C" __global__ void other_line(const __grid_constant__ Arguments arguments) {
  float value = 0.0f;
  if (ptx::lane_index() < arguments.count)
    value = ptx::shuffle_xor(1.0f, 1);
  else
    value = ptx::shuffle_xor(2.0f, 1); // [other_line]
  ptx::st_global_f32(static_cast<float *>(arguments.out), value);
}

__device__ __forceinline__ void meet_or_shuffle(bool meet, ptx::Site site = ptx::Site::here()) {
  if (meet)
    ptx::warp_barrier(site);
  else
    ptx::shuffle_xor(1.0f, 1, site);
}
extern "C" __global__ void same_line(const __grid_constant__ Arguments arguments) {
  meet_or_shuffle(ptx::lane_index() < arguments.count); // [same_line]
}

extern "C" __global__ void exited(const __grid_constant__ Arguments arguments) {
  if (ptx::lane_index() >= arguments.count)
    return;
  ptx::st_global_f32(static_cast<float *>(arguments.out), ptx::shuffle_xor(1.0f, 1)); // [exited]
}

// Threads from 64 on return early; the others still meet.
extern "C" __global__ void early_return(const __grid_constant__ Arguments arguments) {
  if (ptx::thread_index() >= 64)
    return;
  ptx::cta_barrier();
  ptx::st_global_f32(static_cast<float *>(arguments.out) + ptx::thread_index(), 1.0f);
}

extern "C" __global__ void deadlock(const __grid_constant__ Arguments arguments) {
  if (ptx::warp_index() == 3)
    return;
  if (ptx::thread_index() < 16)
    ptx::warp_barrier(); // [half_warp]
  else
    ptx::cta_barrier(); // [cta_barrier]
}

// A barrier of the CTA is one instruction for a warp; other warps may come from elsewhere.
extern "C" __global__ void two_barriers(const __grid_constant__ Arguments arguments) {
  if (ptx::thread_index() < arguments.count)
    ptx::cta_barrier(); // [one_barrier]
  else
    ptx::cta_barrier(); // [other_barrier]
}

extern "C" __global__ void endless(const __grid_constant__ Arguments arguments) {
  for (;;)
    ptx::cta_barrier(); // [endless]
}

// Many barriers; each thread counts in its own word and checks a neighbour's.
extern "C" __global__ void rounds(const __grid_constant__ Arguments arguments) {
  const unsigned own = 4 * ptx::thread_index();
  const unsigned other = 4 * ((ptx::thread_index() + 37) % 128);
  float wrong = 0.0f;
  for (int round = 0; round < arguments.count; ++round) {
    ptx::st_shared_f32(own, static_cast<float>(round));
    ptx::cta_barrier();
    wrong += ptx::ld_shared_f32(other) == static_cast<float>(round) ? 0.0f : 1.0f;
    ptx::cta_barrier();
  }
  ptx::st_global_f32(static_cast<float *>(arguments.out) + ptx::thread_index(), wrong);
}
