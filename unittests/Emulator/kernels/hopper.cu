// fagen: barriers in shared memory, bulk copies and products of warp groups, right and wrong.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel's `wrong` names what it leaves out or does too early; 0: nothing.
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/mbarrier.h>
#include <fagen/device/ptx/stmatrix.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/ptx/tma.h>
#include <fagen/device/ptx/warpgroup.h>
#include <fagen/device/ptx/wgmma.h>
#include <fagen/device/tile/fragment.h>
#include <fagen/device/tile/operand.h>
#include <fagen/device/types.h>

using namespace fagen::device;

struct Arguments {
  TensorMap in, out;
  void *result;
  int wrong;
};

constexpr int kRows = 64, kColumns = 64, kSteps = 4, kStages = 2;
using Tile = SharedTile<f16, kRows, kColumns, Swizzle::kXor>;

struct Storage {
  alignas(1024) Tile ring[kStages];
  alignas(1024) Tile staging;
  alignas(8) unsigned long long full[kStages], empty[kStages];
};

__device__ __forceinline__ Storage &storage() { return ptx::shared_storage<Storage>(); }
__device__ __forceinline__ unsigned at(const void *object) { return ptx::shared_address(object); }

__device__ __forceinline__ void make_barriers(int wrong, int arrivals) {
  if (ptx::thread_index() == 0) {
    for (int s = 0; s < kStages; ++s) {
      ptx::mbarrier_init(at(&storage().full[s]), 1);
      ptx::mbarrier_init(at(&storage().empty[s]), arrivals);
    }
    if (wrong != 1)
      ptx::mbarrier_init_fence();
  }
  if (wrong != 2)
    ptx::cta_barrier();
}

// A producer warp brings kSteps tiles through a ring; 128 threads add them up.
extern "C" __global__ void pipeline(const __grid_constant__ Arguments arguments) {
  const int wrong = arguments.wrong;
  make_barriers(wrong, 128);
  if (ptx::warp_index() == 4) {
    if (ptx::elect_one())
      for (int step = 0; step < kSteps; ++step) {
        const int s = step % kStages;
        if (wrong != 3 || step < kStages)
          ptx::mbarrier_wait(at(&storage().empty[s]), step / kStages % 2 ^ 1); // [empty]
        ptx::mbarrier_arrive_expect(at(&storage().full[s]), wrong == 4   ? 2 * kRows * kColumns - 16
                                                            : wrong == 5 ? 2 * kRows * kColumns + 16
                                                                         : 2 * kRows * kColumns);
        ptx::tma_load(at(&storage().ring[s]), arguments.in, {0, kRows * step}, at(&storage().full[s])); // [load]
      }
    return;
  }
  float sum[kColumns / 2] = {};
  const int row = ptx::thread_index() / 2, column = ptx::thread_index() % 2 * (kColumns / 2);
  for (int step = 0; step < kSteps; ++step) {
    const int s = step % kStages;
    if (wrong != 6)
      ptx::mbarrier_wait(at(&storage().full[wrong == 7 ? 1 - s : s]), step / kStages % 2); // [full]
    for (int i = 0; i < kColumns / 2; ++i)
      sum[i] += ptx::ld_shared_u16(storage().ring[s].address(row, column + i)); // [use]
    if (wrong != 8 || ptx::thread_index() != 5)
      ptx::mbarrier_arrive(at(&storage().empty[s])); // [release]
  }
  for (int i = 0; i < kColumns / 2; ++i)
    ptx::st_global_f32(static_cast<float *>(arguments.result) + row * kColumns + column + i, sum[i]);
}

// 128 threads write a tile; one of them stores it to `out`.
extern "C" __global__ void store(const __grid_constant__ Arguments arguments) {
  const int wrong = arguments.wrong, row = ptx::thread_index() / 2, column = ptx::thread_index() % 2 * (kColumns / 2);
  for (int i = 0; i < kColumns / 2; ++i)
    ptx::st_shared_u16(storage().staging.address(row, column + i), row * kColumns + column + i);
  if (wrong != 1)
    ptx::fence_proxy_async();
  if (wrong != 2)
    ptx::cta_barrier();
  if (ptx::thread_index() == 0) {
    const int column = wrong == 6 ? 4 : wrong == 7 ? -8 : 0;
    ptx::tma_store(arguments.out, {column, 32}, at(&storage().staging)); // [store]
    if (wrong != 3)
      ptx::tma_commit();
    if (wrong != 4)
      ptx::tma_wait_read<0>();
  }
  if (wrong != 5)
    ptx::cta_barrier();
  ptx::st_shared_u16(storage().staging.address(row, column), 0); // [overwrite]
}

// result = A B^T and A B of the first two tiles of `in`, A from shared memory or from registers.
template <bool kFromRegisters> __device__ __forceinline__ void product(const Arguments &arguments) {
  const int wrong = arguments.wrong;
  make_barriers(0, 1);
  const Tile &a = storage().ring[0], &b = storage().ring[1];
  if (ptx::thread_index() == 0) {
    ptx::mbarrier_arrive_expect(at(&storage().full[0]), (wrong == 8 ? 2 : 4) * kRows * kColumns);
    ptx::tma_load(at(&a), arguments.in, {0, 0}, at(&storage().full[0]));
    ptx::tma_load(at(&b), arguments.in, {0, kRows}, at(&storage().full[0])); // [bring]
  }
  if (wrong != 1)
    ptx::mbarrier_wait(at(&storage().full[0]), 0);
  Accumulator<64, 64> d, e;
  float(&d_registers)[32] = reinterpret_cast<float(&)[32]>(d.value);
  float(&e_registers)[32] = reinterpret_cast<float(&)[32]>(e.value);
  unsigned fragment[kColumns / 16][4];
  if (kFromRegisters)
    for (int slice = 0; slice < kColumns / 16; ++slice)
      for (int i = 0; i < 4; ++i) {
        const int row = ptx::thread_index() / 32 * 16 + ptx::lane_index() / 4 + i % 2 * 8;
        const int column = 16 * slice + ptx::lane_index() % 4 * 2 + i / 2 * 8;
        fragment[slice][i] = ptx::ld_shared_u16(a.address(row, column)) |
                             static_cast<unsigned>(ptx::ld_shared_u16(a.address(row, column + 1))) << 16;
      }
  if (wrong != 2)
    ptx::wgmma_fence();
  for (int slice = 0; slice < kColumns / 16; ++slice) {
    const auto k = ptx::advance(k_major_operand(b), k_major_step<Tile>(slice));
    const auto v = ptx::advance(mn_major_operand(b), mn_major_step<Tile>(slice));
    if (kFromRegisters) {
      ptx::wgmma_f32_f16<ptx::Major::kK>(d_registers, fragment[slice], k, slice > 0); // [from registers]
      ptx::wgmma_f32_f16<ptx::Major::kMn>(e_registers, fragment[slice], v, slice > 0);
    } else {
      const auto q = ptx::advance(k_major_operand(a), k_major_step<Tile>(slice));
      ptx::wgmma_f32_f16<ptx::Major::kK, ptx::Major::kK>(d_registers, q, k, slice > 0); // [product]
      ptx::wgmma_f32_f16<ptx::Major::kK, ptx::Major::kMn>(e_registers, q, v, slice > 0);
    }
  }
  ptx::wgmma_commit();
  if (wrong == 3)
    d_registers[5] = 0.0f;
  if (wrong == 4)
    fragment[1][2] = 0;
  if (wrong == 5)                                                 // B belongs to the products until the wait
    ptx::st_shared_u16(b.address(ptx::thread_index() / 2, 0), 0); // [too early]
  if (wrong != 6)
    ptx::wgmma_wait<0>(); // [wait]
  float *result = static_cast<float *>(arguments.result);
  for (int i = 0; i < 32; ++i) {
    const int row = ptx::thread_index() / 32 * 16 + ptx::lane_index() / 4 + i / 2 % 2 * 8;
    const int column = i / 4 * 8 + ptx::lane_index() % 4 * 2 + i % 2;
    ptx::st_global_f32(result + row * 64 + column, d_registers[i]); // [result]
    ptx::st_global_f32(result + 64 * 64 + row * 64 + column, e_registers[i]);
  }
  if (wrong == 7) { // accumulators that the thread has written, without a fence
    d_registers[0] = 1.0f;
    const auto q = k_major_operand(a), k = k_major_operand(b);
    ptx::wgmma_f32_f16<ptx::Major::kK, ptx::Major::kK>(d_registers, q, k, true); // [again]
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
  }
}
extern "C" __global__ void product_shared(const __grid_constant__ Arguments arguments) { product<false>(arguments); }
extern "C" __global__ void product_registers(const __grid_constant__ Arguments arguments) { product<true>(arguments); }

// A written by stmatrix, as its own rows' warp may read it after a proxy fence and a warp barrier.
extern "C" __global__ void product_of_stored(const __grid_constant__ Arguments arguments) {
  const int wrong = arguments.wrong, warp = ptx::warp_index(), lane = ptx::lane_index();
  const Tile &tile = storage().staging;
  for (int slice = 0; slice < kColumns / 16; ++slice) {
    unsigned words[4];
    for (int i = 0; i < 4; ++i) // element (r, c) is 1 where r = c
      for (int half = 0, row = 16 * warp + lane / 4 + i % 2 * 8, column = 16 * slice + lane % 4 * 2 + i / 2 * 8;
           half < 2; ++half)
        words[i] = (half ? words[i] : 0) | (row == column + half ? 0x3c00u << 16 * half : 0);
    ptx::stmatrix_x4(tile.address(16 * warp + lane % 16, 16 * slice + lane / 16 * 8), words);
  }
  if (wrong != 1)
    ptx::fence_proxy_async();
  if (wrong != 2)
    ptx::cta_barrier();
  Accumulator<64, 64> d;
  float(&registers)[32] = reinterpret_cast<float(&)[32]>(d.value);
  ptx::wgmma_fence();
  for (int slice = 0; slice < kColumns / 16; ++slice) {
    const auto q = ptx::advance(k_major_operand(tile), k_major_step<Tile>(slice));
    ptx::wgmma_f32_f16<ptx::Major::kK, ptx::Major::kK>(registers, q, q, slice > 0); // [stored]
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  float *result = static_cast<float *>(arguments.result);
  for (int i = 0; i < 32; ++i) {
    const int row = ptx::thread_index() / 32 * 16 + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    ptx::st_global_f32(result + row * 64 + column, registers[i]);
  }
}

// Registers move from group 0 to groups 1 and 2; 384 threads begin with 168 each.
extern "C" __global__ void move_registers(const __grid_constant__ Arguments arguments) {
  if (ptx::warp_group_index() == 0) {
    if (arguments.wrong == 1)
      return;
    ptx::setmaxnreg_dec<24>();
  } else if (arguments.wrong == 2) {
    ptx::setmaxnreg_dec<240>(); // [down]
  } else {
    ptx::setmaxnreg_inc<240>(); // [up]
  }
}
