// fagen: threads that complete phases of a barrier and threads that wait for them by parity, right and wrong.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `count` names what a kernel leaves out; 0: nothing.
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/mbarrier.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/threads.h>

using namespace fagen::device;

struct Arguments {
  const void *in;
  void *out;
  int count;
};

constexpr int kSteps = 5;

struct Storage {
  alignas(8) unsigned long long full, empty;
  float word;
};

__device__ __forceinline__ Storage &storage() { return ptx::shared_storage<Storage>(); }
__device__ __forceinline__ unsigned at(const void *object) { return ptx::shared_address(object); }

__device__ __forceinline__ void make_barriers() {
  if (ptx::thread_index() == 0) {
    ptx::mbarrier_init(at(&storage().full), 1);
    ptx::mbarrier_init(at(&storage().empty), 1);
    ptx::mbarrier_init_fence();
  }
  ptx::cta_barrier();
}

// Thread 32 completes phases of `full`, all of warp 0 sees them, and its first lane says so. There is no data.
extern "C" __global__ void hand_over(const __grid_constant__ Arguments arguments) {
  const int wrong = arguments.count;
  make_barriers();
  const int thread = ptx::thread_index();
  for (int step = 0; step < kSteps; ++step)
    if (thread < 32) {
      if (wrong != 2 || step != 1)
        ptx::mbarrier_wait(at(&storage().full), step % 2); // [seen]
      if (wrong != 3)
        ptx::warp_barrier();
      if (thread == 0)
        ptx::mbarrier_arrive(at(&storage().empty));
    } else if (thread == 32) {
      if (wrong != 1)
        ptx::mbarrier_wait(at(&storage().empty), step % 2 ^ 1); // [heard]
      ptx::mbarrier_arrive(at(&storage().full));                // [complete]
    }
}

// Thread 32 completes a phase and thread 64 the next one, after it wrote a word. Thread 0 waits for the first one
// only and reads the word.
extern "C" __global__ void latest(const __grid_constant__ Arguments arguments) {
  make_barriers();
  const int thread = ptx::thread_index();
  if (thread == 0) {
    ptx::mbarrier_wait(at(&storage().full), 0);                 // [first]
    const float word = ptx::ld_shared_f32(at(&storage().word)); // [read]
    ptx::st_global_f32(static_cast<float *>(arguments.out), word);
  } else if (thread == 32) {
    ptx::mbarrier_arrive(at(&storage().full));
    ptx::mbarrier_arrive(at(&storage().empty));
  } else if (thread == 64) {
    ptx::mbarrier_wait(at(&storage().empty), 0);
    ptx::st_shared_f32(at(&storage().word), 7.0f);
    ptx::mbarrier_arrive(at(&storage().full));
  }
}
