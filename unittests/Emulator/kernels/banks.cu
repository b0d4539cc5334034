// fagen: accesses to shared memory whose wavefronts can be counted by hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/cp_async.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/ldmatrix.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/threads.h>

using namespace fagen::device;

struct Arguments {
  const void *in;
  void *out;
  int count;
};

// Lane i writes the word at i * count bytes, and reads it.
extern "C" __global__ void strided(const __grid_constant__ Arguments arguments) {
  const unsigned own = ptx::lane_index() * arguments.count;
  ptx::st_shared_f32(own, 1.0f);               // [store]
  const float value = ptx::ld_shared_f32(own); // [load]
  ptx::st_global_f32(static_cast<float *>(arguments.out) + ptx::thread_index() % 32, value);
}

// On one line: every lane writes, and every fourth writes once more, `count` times.
extern "C" __global__ void predicated(const __grid_constant__ Arguments arguments) {
  const unsigned lane = ptx::lane_index();
  const auto write = [&](unsigned i, ptx::Site site) {
    ptx::st_shared_f32(4 * lane, 1.0f, site);
    if (lane % 4 == 0)
      ptx::st_shared_f32(128 * lane + 4 * i, 1.0f, site);
  };
#pragma GCC unroll 1
  for (int i = 0; i < arguments.count; ++i)
    write(i, ptx::Site::here()); // [write]
}

// The lower half of the warp writes twice and the upper once, then the other way round.
extern "C" __global__ void uneven(const __grid_constant__ Arguments arguments) {
  const int lane = ptx::lane_index();
#pragma GCC unroll 1
  for (int turn = 0; turn < 2; ++turn) {
    const int times = 1 + (arguments.count - 1) * (lane / 16 == turn); // no branch for a compiler to copy the loop for
#pragma GCC unroll 1
    for (int i = 0; i < times; ++i)
      ptx::st_shared_f32(4 * lane, 1.0f); // [uneven]
    ptx::warp_barrier();
  }
}

// Rows of matrices and targets of copies `count` bytes apart.
extern "C" __global__ void matrices(const __grid_constant__ Arguments arguments) {
  const unsigned row = ptx::lane_index() * arguments.count;
  ptx::cp_async<16>(row, arguments.in, true); // [copy]
  ptx::cp_async_commit();
  ptx::cp_async_wait<0>();
  ptx::warp_barrier();
  unsigned words[4];
  ptx::ldmatrix_x4(words, row); // [ldmatrix]
  ptx::st_global_u32(static_cast<unsigned *>(arguments.out) + ptx::thread_index(), words[0]);
}
