// fagen: asynchronous copies, waited for rightly and wrongly.
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

__device__ __forceinline__ void issue(const Arguments &arguments, int slot, int word, bool valid,
                                      ptx::Site site = ptx::Site::here()) {
  const unsigned *in = static_cast<const unsigned *>(arguments.in);
  ptx::cp_async<4>(4 * (slot * kThreads + ptx::thread_index()), in + word * kThreads + ptx::thread_index(), valid,
                   site);
}

__device__ __forceinline__ void store(const Arguments &arguments, int row, float value) {
  ptx::st_global_f32(static_cast<float *>(arguments.out) + row * kThreads + ptx::thread_index(), value);
}

// Two groups; the first is used while the second is outstanding. A neighbour's word is read after a barrier.
extern "C" __global__ void two_groups(const __grid_constant__ Arguments arguments) {
  const unsigned neighbour = 4 * ((ptx::thread_index() + 33) % kThreads);
  issue(arguments, 0, 0, true);
  ptx::cp_async_commit();
  issue(arguments, 1, 1, true);
  ptx::cp_async_commit();
  ptx::cp_async_wait<1>();
  ptx::cta_barrier();
  store(arguments, 0, ptx::ld_shared_f32(neighbour));
  ptx::cp_async_wait<0>();
  ptx::cta_barrier();
  store(arguments, 1, ptx::ld_shared_f32(4 * kThreads + neighbour));
}

// The wait leaves one group too many outstanding.
extern "C" __global__ void weak_wait(const __grid_constant__ Arguments arguments) {
  issue(arguments, 0, 0, true);
  ptx::cp_async_commit();
  ptx::cp_async_wait<1>();
  ptx::cta_barrier();
  store(arguments, 0, ptx::ld_shared_f32(4 * ptx::thread_index())); // [weak_wait]
  ptx::cp_async_wait<0>();
}

// Of two groups the wait completes the older one only.
extern "C" __global__ void newer_group(const __grid_constant__ Arguments arguments) {
  issue(arguments, 0, 0, true);
  ptx::cp_async_commit();
  issue(arguments, 1, 1, true);
  ptx::cp_async_commit();
  ptx::cp_async_wait<1>();
  store(arguments, 0, ptx::ld_shared_f32(4 * ptx::thread_index()));
  store(arguments, 0, ptx::ld_shared_f32(4 * (kThreads + ptx::thread_index()))); // [newer_group]
  ptx::cp_async_wait<0>();
}

// A copy belongs to the group that is closed next; one issued after the commit is not waited for.
extern "C" __global__ void late_issue(const __grid_constant__ Arguments arguments) {
  ptx::cp_async_commit();
  issue(arguments, 0, 0, arguments.count != 0); // [late_issue]
  ptx::cp_async_wait<0>();
}

// Rows that are not valid are zero.
extern "C" __global__ void zero_fill(const __grid_constant__ Arguments arguments) {
  issue(arguments, 0, 1000, false);
  ptx::cp_async_commit();
  ptx::cp_async_wait<0>();
  store(arguments, 0, ptx::ld_shared_f32(4 * ptx::thread_index()));
}

// The second copy overwrites words that the neighbour may still have to read.
extern "C" __global__ void reused_slot(const __grid_constant__ Arguments arguments) {
  const unsigned neighbour = 4 * ((ptx::thread_index() + 33) % kThreads);
  issue(arguments, 0, 0, true);
  ptx::cp_async_commit();
  ptx::cp_async_wait<0>();
  ptx::cta_barrier();
  store(arguments, 0, ptx::ld_shared_f32(neighbour)); // [reused_slot]
  if (arguments.count != 0)
    ptx::cta_barrier();
  issue(arguments, 0, 1, true);
  ptx::cp_async_commit();
  ptx::cp_async_wait<0>();
}

extern "C" __global__ void copy_beyond(const __grid_constant__ Arguments arguments) {
  issue(arguments, 0, arguments.count, true); // [copy_beyond]
  ptx::cp_async_commit();
  ptx::cp_async_wait<0>();
  store(arguments, 0, ptx::ld_shared_f32(4 * ptx::thread_index()));
}

// More groups than the list of copies keeps: each step waits for the one before.
extern "C" __global__ void many_groups(const __grid_constant__ Arguments arguments) {
  float sum = 0.0f;
  issue(arguments, 0, 0, true);
  ptx::cp_async_commit();
  for (int step = 0; step < arguments.count; ++step) {
    issue(arguments, (step + 1) % 2, (step + 1) % 2, true);
    ptx::cp_async_commit();
    ptx::cp_async_wait<1>();
    sum += ptx::ld_shared_f32(4 * (step % 2 * kThreads + ptx::thread_index()));
  }
  ptx::cp_async_wait<0>();
  store(arguments, 0, sum);
}
