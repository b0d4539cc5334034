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
constexpr int kWritten = 4 * kThreads; ///< behind what was copied

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
