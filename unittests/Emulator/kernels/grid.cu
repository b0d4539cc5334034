// fagen: many CTAs.
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

// Each CTA turns its 128 words around by way of shared memory.
extern "C" __global__ __launch_bounds__(128, 2) void reverse(const __grid_constant__ Arguments arguments) {
  const int first = 128 * ptx::cta_index();
  unsigned word[1];
  ptx::ld_global(word, static_cast<const unsigned *>(arguments.in) + first + ptx::thread_index());
  ptx::st_shared(4 * ptx::thread_index(), word);
  ptx::cta_barrier();
  ptx::ld_shared(word, 4 * (127 - ptx::thread_index()));
  ptx::st_global_u32(static_cast<unsigned *>(arguments.out) + first + ptx::thread_index(), word[0]);
}

// CTA count reads what another CTA wrote to its own shared memory.
extern "C" __global__ void stale(const __grid_constant__ Arguments arguments) {
  if (ptx::cta_index() != arguments.count)
    ptx::st_shared_f32(0, 1.0f);
  else
    ptx::st_global_f32(static_cast<float *>(arguments.out), ptx::ld_shared_f32(0)); // [stale]
}

// The first thread of each CTA draws numbers until none of `count` is left, and leaves its own number next to each.
extern "C" __global__ void draw(const __grid_constant__ Arguments arguments) {
  if (ptx::thread_index() != 0)
    return;
  unsigned *out = static_cast<unsigned *>(arguments.out);
  for (;;) {
    const unsigned last = arguments.count + ptx::cta_count() - 1;
    const unsigned drawn = ptx::atomic_inc(out, last); // [draw]
    if (drawn >= static_cast<unsigned>(arguments.count))
      return;
    ptx::st_global_u32(out + 1 + drawn, ptx::cta_index());
  }
}
