// fagen: named barriers, right and wrong. CTAs have 64 threads but for `both`, which has 128.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/threads.h>

using namespace fagen::device;

struct Arguments {
  const void *in;
  void *out;
  int count;
};

__device__ __forceinline__ int own() { return 4 * ptx::thread_index(); }
__device__ __forceinline__ int far() { return 4 * (ptx::thread_index() ^ 33); }
__device__ __forceinline__ int near() { return 4 * (ptx::thread_index() ^ 5); }

__device__ __forceinline__ void keep(const Arguments &arguments, float value, ptx::Site site = ptx::Site::here()) {
  ptx::st_global_f32(static_cast<float *>(arguments.out) + ptx::thread_index(), value, site);
}

// Warps 0 and 1 exchange their numbers four times, and so do warps 2 and 3; no pair waits for the other.
extern "C" __global__ void both(const __grid_constant__ Arguments arguments) {
  const int pair = ptx::warp_index() / 2;
  float value = ptx::thread_index();
  for (int step = 0; step < 4 + 2 * pair; ++step) {
    ptx::st_shared_f32(own(), value);
    ptx::named_barrier(1 + pair, 64);
    value = ptx::ld_shared_f32(far()) + 1.0f;
    ptx::named_barrier(1 + pair, 64);
  }
  keep(arguments, value);
}

// Warp 0 writes and says so, warp 1 reads and says so: four times, without warp 0 waiting for what it wrote.
extern "C" __global__ void hand_over(const __grid_constant__ Arguments arguments) {
  float sum = 0.0f;
  for (int step = 0; step < 4; ++step) {
    if (ptx::warp_index() == 0) {
      ptx::st_shared_f32(own(), 1.0f + step);
      ptx::named_barrier_arrive(1, 64);
      if (arguments.count == 0 || step == 3)
        ptx::named_barrier(2, 64);
    } else {
      ptx::named_barrier(1, 64);
      sum += ptx::ld_shared_f32(far());
      if (arguments.count == 0 || step == 3)
        ptx::named_barrier_arrive(2, 64);
    }
  }
  keep(arguments, sum);
}

// Who only arrives has not waited for the other warp, nor for its own lanes.
extern "C" __global__ void arrive_then_read(const __grid_constant__ Arguments arguments) {
  ptx::st_shared_f32(own(), 0.0f);
  ptx::cta_barrier();
  ptx::st_shared_f32(own(), 1.0f);
  if (ptx::warp_index() == 0) {
    ptx::named_barrier_arrive(1, 64);
    keep(arguments, ptx::ld_shared_f32(arguments.count ? near() : far())); // [arrive_then_read]
  } else {
    ptx::named_barrier(1, 64);
    keep(arguments, ptx::ld_shared_f32(far()));
  }
}

// What comes after the arrival is not seen by those that waited.
extern "C" __global__ void write_behind(const __grid_constant__ Arguments arguments) {
  if (ptx::warp_index() == 0) {
    ptx::named_barrier_arrive(1, 64);
    ptx::st_shared_f32(own(), 1.0f); // [write_behind first]
  } else {
    ptx::named_barrier(1, 64);
    ptx::st_shared_f32(far(), 1.0f); // [write_behind]
  }
}

// Two lanes read, one before and one after the arrival; then the second one writes.
extern "C" __global__ void read_around(const __grid_constant__ Arguments arguments) {
  if (ptx::warp_index() == 0)
    ptx::st_shared_f32(own(), 1.0f);
  ptx::cta_barrier();
  if (ptx::warp_index() == 1) {
    ptx::named_barrier(1, 64);
    return;
  }
  float sum = 0.0f;
  for (int lane = 3; lane < 5; ++lane) {
    if (ptx::lane_index() == lane)
      sum += ptx::ld_shared_f32(0); // [read_around first]
    if (lane == 3)
      ptx::named_barrier_arrive(1, 64);
  }
  if (ptx::lane_index() == 4)
    ptx::st_shared_f32(0, sum); // [read_around]
}

// count: 0 number, 1 threads, 2 too many threads, 3 other threads, 4 comes twice, 5 lanes differ, 6 nobody else comes.
extern "C" __global__ void wrong(const __grid_constant__ Arguments arguments) {
  const bool first = ptx::warp_index() == 0;
  switch (arguments.count) {
  case 0:
    return ptx::named_barrier(16, 64); // [number]
  case 1:
    return ptx::named_barrier(1, 40); // [threads]
  case 2:
    return ptx::named_barrier(1, 96); // [too many]
  case 3:
    return ptx::named_barrier(1, first ? 64 : 32); // [other]
  case 4:
    ptx::named_barrier_arrive(1, 64);
    return ptx::named_barrier_arrive(1, 64); // [twice]
  case 5:
    return ptx::named_barrier(1 + ptx::lane_index() / 31, 64); // [lanes]
  default:
    if (first)
      ptx::named_barrier(3, 64); // [alone]
  }
}
