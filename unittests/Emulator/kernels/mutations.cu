// fagen: steps in which each thread gets the values of one in another warp; every other step does a little more.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/cp_async.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/threads.h>

using namespace fagen::device;

struct Arguments {
  const void *in;
  void *out;
  int count;
};

constexpr int kThreads = 64;
constexpr int kWritten = 4 * kThreads; ///< after what was copied

extern "C" __global__ void steps(const __grid_constant__ Arguments arguments) {
  const int own = 4 * ptx::thread_index(), far = 4 * ((ptx::thread_index() + kThreads / 2) % kThreads);
  for (int step = 0; step < arguments.count; ++step) {
    ptx::cp_async<4>(own, static_cast<const float *>(arguments.in) + ptx::thread_index(), true);
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>(); // [wait]
    if (step % 2)
      ptx::st_shared_f32(kWritten + own, 1.0f); // [write]
    ptx::cta_barrier();                         // [barrier]
    float sum = ptx::ld_shared_f32(far);        // [read]
    if (step % 2)
      sum += ptx::ld_shared_f32(kWritten + far); // [read_written]
    ptx::cta_barrier();                          // [end]
    ptx::st_global_f32(static_cast<float *>(arguments.out) + ptx::thread_index(), sum);
  }
}

// Warp 0 writes a number, warp 1 reads it, by barriers 1 (full) and 2 (empty); both then meet at barrier 3.
extern "C" __global__ void hand_over(const __grid_constant__ Arguments arguments) {
  const int own = 4 * ptx::lane_index();
  float sum = 0.0f;
  for (int step = 0; step < arguments.count; ++step) {
    if (ptx::warp_index() == 0) {
      ptx::st_shared_f32(own, 1.0f + step);   // [fill]
      ptx::named_barrier_arrive(1, 64);       // [full]
      ptx::st_shared_f32(4 * 32 + own, 2.0f); // [aside]
      ptx::named_barrier(2, 64);              // [wait_empty]
    } else {
      ptx::named_barrier(1, 64);          // [wait_full]
      sum += ptx::ld_shared_f32(own ^ 4); // [take]
      ptx::named_barrier_arrive(2, 64);   // [empty]
    }
  }
  ptx::st_shared_f32(4 * 64 + 4 * ptx::thread_index(), sum);                 // [give]
  ptx::named_barrier(3, 64);                                                 // [meet]
  sum += ptx::ld_shared_f32(4 * 64 + 4 * ((ptx::thread_index() + 32) % 64)); // [get]
  ptx::st_global_f32(static_cast<float *>(arguments.out) + ptx::thread_index(), sum);
}
