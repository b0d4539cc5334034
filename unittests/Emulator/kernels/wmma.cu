// fagen: wmma: two 16 x 16 matrices through shared memory into fragments, D = A B + A B, and out again.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/ops/wmma.h>
#include <fagen/device/ptx/barrier.h>

using namespace fagen::device;

struct Arguments {
  const void *in;
  void *out;
  int count;
};

struct Storage {
  unsigned short a[16][24]; // rows 48 bytes apart
  unsigned short b[16][24];
  unsigned d[16][20]; // rows 80 bytes apart
};

// in: A then B as 16-bit elements, line by line; a line of B is a column if kByColumns. out: D by rows, f32. `count` is
// added to the address of A.
template <class T, class Accumulator, bool kByColumns, bool kMultipliedByColumns = kByColumns>
__device__ __forceinline__ void product(const Arguments &arguments) {
  Storage &storage = ptx::shared_storage<Storage>();
  const unsigned a_address = ptx::shared_address(storage.a), b_address = ptx::shared_address(storage.b);
  const unsigned d_address = ptx::shared_address(storage.d);
  const int lane = ptx::lane_index();
  for (int i = lane; i < 512; i += 32) {
    const unsigned short element = ptx::ld_global_u16(static_cast<const unsigned short *>(arguments.in) + i);
    ptx::st_shared_u16((i < 256 ? a_address : b_address) + i % 256 / 16 * 48 + i % 16 * 2, element);
  }
  ptx::warp_barrier();
  unsigned a[Wmma<T>::kWords], b[Wmma<T>::kWords];
  WmmaBlock<Accumulator> d;
  Wmma<T>::load_a(a, a_address + arguments.count, 24, ptx::Site::here()); // [load]
  Wmma<T>::template load_b<kByColumns>(b, b_address, 24, ptx::Site::here());
  Wmma<T>::template multiply<kMultipliedByColumns>(d.value, a, b, ptx::Site::here());
  Wmma<T>::template multiply<kMultipliedByColumns>(d.value, a, b, ptx::Site::here());
  d.store(d_address, 80 / sizeof(Accumulator), ptx::Site::here());
  ptx::warp_barrier();
  for (int i = lane; i < 256; i += 32)
    ptx::st_global_f32(
        static_cast<float *>(arguments.out) + i,
        load_as_float<Accumulator>(d_address + i / 16 * 80 + i % 16 * sizeof(Accumulator), ptx::Site::here()));
}

extern "C" __global__ void f32_f16_row(const __grid_constant__ Arguments arguments) {
  product<f16, float, false>(arguments);
}
extern "C" __global__ void f32_f16_col(const __grid_constant__ Arguments arguments) {
  product<f16, float, true>(arguments);
}
extern "C" __global__ void f32_bf16_row(const __grid_constant__ Arguments arguments) {
  product<bf16, float, false>(arguments);
}
extern "C" __global__ void f32_bf16_col(const __grid_constant__ Arguments arguments) {
  product<bf16, float, true>(arguments);
}
extern "C" __global__ void f16_f16_row(const __grid_constant__ Arguments arguments) {
  product<f16, f16, false>(arguments);
}
extern "C" __global__ void f16_f16_col(const __grid_constant__ Arguments arguments) {
  product<f16, f16, true>(arguments);
}

// B is loaded by columns and multiplied as if by rows: nobody says what that gives.
extern "C" __global__ void mixed_layouts(const __grid_constant__ Arguments arguments) {
  product<f16, float, true, false>(arguments);
}

// Stores zeros, at an address and with a stride that need not be right: lane 5's address is `count` bytes further.
extern "C" __global__ void store_apart(const __grid_constant__ Arguments arguments) {
  const float zeros[8] = {};
  ptx::wmma_store_d_f32(ptx::lane_index() == 5 ? arguments.count : 0, zeros, 16); // [store]
}
extern "C" __global__ void store_stride(const __grid_constant__ Arguments arguments) {
  const float zeros[8] = {};
  ptx::wmma_store_d_f32(0, zeros, arguments.count); // [stride]
}
