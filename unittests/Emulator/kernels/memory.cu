// fagen: one wrong access a kernel.
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

// out[thread] = in[thread + count]
extern "C" __global__ void copy_words(const __grid_constant__ Arguments arguments) {
  const unsigned *in = static_cast<const unsigned *>(arguments.in);
  unsigned *out = static_cast<unsigned *>(arguments.out);
  unsigned word[1];
  ptx::ld_global(word, in + ptx::thread_index() + arguments.count); // [load]
  ptx::st_global_u32(out + ptx::thread_index(), word[0]);           // [store]
}

extern "C" __global__ void store_beyond(const __grid_constant__ Arguments arguments) {
  ptx::st_global_u32(static_cast<unsigned *>(arguments.out) + arguments.count, 7); // [store_beyond]
}

extern "C" __global__ void store_input(const __grid_constant__ Arguments arguments) {
  ptx::st_global_u16(const_cast<void *>(arguments.in), 7); // [store_input]
}

// Draws as persistent CTAs do, until a number is beyond `count` tiles.
extern "C" __global__ void draw_from_input(const __grid_constant__ Arguments arguments) {
  unsigned *const counter = static_cast<unsigned *>(const_cast<void *>(arguments.in));
  for (int tile = 0; tile < arguments.count;)
    tile = static_cast<int>(16 + ptx::atomic_inc(counter, arguments.count - 1)); // [draw]
}

extern "C" __global__ void load_misaligned(const __grid_constant__ Arguments arguments) {
  unsigned words[4];
  ptx::ld_global(words, static_cast<const char *>(arguments.in) + arguments.count); // [load_misaligned]
  ptx::st_global_u32(arguments.out, words[0]);
}

// Thread i writes the word at 4i and reads the one at 4i + count.
extern "C" __global__ void shared_words(const __grid_constant__ Arguments arguments) {
  const unsigned own = 4 * ptx::thread_index();
  ptx::st_shared_f32(own, 1.0f); // [shared_store]
  ptx::cta_barrier();
  const float value = ptx::ld_shared_f32(own + arguments.count); // [shared_load]
  ptx::st_global_f32(static_cast<float *>(arguments.out) + ptx::thread_index(), value);
}

extern "C" __global__ void shared_store_beyond(const __grid_constant__ Arguments arguments) {
  const unsigned words[2] = {1, 2};
  ptx::st_shared(arguments.count, words); // [shared_store_beyond]
}

// A wrong access inside a function of the kernel's own, which passes the caller's place on.
__device__ __forceinline__ float load_for(unsigned address, ptx::Site site = ptx::Site::here()) {
  return ptx::ld_shared_f32(address, site);
}
extern "C" __global__ void nested(const __grid_constant__ Arguments arguments) {
  const float value = load_for(arguments.count); // [nested]
  ptx::st_global_f32(static_cast<float *>(arguments.out), value);
}

// What a thread leaves uninitialised must not look like a value.
extern "C" __global__ void uninitialised(const __grid_constant__ Arguments arguments) {
  volatile float value[4];
  ptx::st_global_f32(static_cast<float *>(arguments.out), value[arguments.count]);
}
