// fagen: two CTAs that share copies of tiles and count each other's readers, right and wrong.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel's `wrong` names what it leaves out or does otherwise; 0: nothing.
#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/cluster.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/mbarrier.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/ptx/tma.h>
#include <fagen/device/ptx/warpgroup.h>
#include <fagen/device/tile/shared_tile.h>
#include <fagen/device/types.h>

using namespace fagen::device;

struct Arguments {
  TensorMap in;
  void *result;
  int wrong;
};

constexpr int kRows = 16, kColumns = 64, kSteps = 4, kStages = 2, kCtas = 2, kReaders = 4;
constexpr int kShare = kRows / kCtas, kTileBytes = 2 * kRows * kColumns;
using Tile = SharedTile<f16, kRows, kColumns, Swizzle::kXor>;

struct Storage {
  alignas(1024) Tile ring[kStages];
  alignas(8) unsigned long long full[kStages], empty[kStages];
};

__device__ __forceinline__ Storage &storage() { return ptx::shared_storage<Storage>(); }
__device__ __forceinline__ unsigned at(const void *object) { return ptx::shared_address(object); }

__device__ __forceinline__ void meet() {
  ptx::warp_barrier();
  ptx::cluster_arrive(); // [arrive]
  ptx::cluster_wait();   // [wait]
}

__device__ __forceinline__ void make_barriers(int wrong) {
  if (ptx::thread_index() == 0) {
    for (int s = 0; s < kStages; ++s) {
      ptx::mbarrier_init(at(&storage().full[s]), 1);
      ptx::mbarrier_init(at(&storage().empty[s]), wrong == 3 ? kCtas * kReaders - 1 : kCtas * kReaders);
    }
    ptx::mbarrier_init_fence();
  }
  if (wrong == 1)
    ptx::cta_barrier();
  else
    meet();
}

__device__ __forceinline__ void bring(const Arguments &arguments) {
  const int wrong = arguments.wrong, first = static_cast<int>(ptx::cluster_rank()) * kShare;
  for (int step = 0; step < kSteps; ++step) {
    const int s = step % kStages;
    const unsigned full = at(&storage().full[s]), target = storage().ring[s].address(first, 0);
    const unsigned short ctas = wrong == 5 ? 4 : 3;
    ptx::mbarrier_wait(at(&storage().empty[s]), step / kStages % 2 ^ 1); // [empty]
    ptx::mbarrier_arrive_expect(full, kTileBytes);
    ptx::tma_load_multicast(target, arguments.in, {0, kRows * step + first}, full, ctas); // [load]
  }
}

__device__ __forceinline__ void release(int slot, int wrong) {
  const unsigned lane = ptx::lane_index();
  const bool isAlone = wrong == 2 || (wrong == 3 && ptx::warp_index() == 3); // tells its own CTA only
  if (lane < (wrong == 6 ? 3 : kCtas) && (!isAlone || lane == ptx::cluster_rank()))
    ptx::mbarrier_arrive_at(at(&storage().empty[slot]), lane); // [release]
}

// In each CTA a warp brings half of kSteps tiles to both; kReaders warps add them up.
extern "C" __global__ void pair(const __grid_constant__ Arguments arguments) {
  const int wrong = arguments.wrong;
  make_barriers(wrong);
  if (ptx::warp_index() == kReaders) {
    if (ptx::elect_one())
      bring(arguments);
  } else {
    float sum[8] = {};
    const int row = ptx::thread_index() / 8, column = ptx::thread_index() % 8 * 8;
    for (int step = 0; step < kSteps; ++step) {
      const int s = step % kStages;
      ptx::mbarrier_wait(at(&storage().full[s]), step / kStages % 2); // [full]
      for (int i = 0; i < 8; ++i)
        sum[i] += ptx::ld_shared_u16(storage().ring[s].address(row, column + i)); // [use]
      ptx::warp_barrier();
      release(s, wrong);
    }
    float *const result = static_cast<float *>(arguments.result) + ptx::cta_index() * kRows * kColumns;
    for (int i = 0; i < 8; ++i)
      ptx::st_global_f32(result + row * kColumns + column + i, sum[i]);
  }
  if (wrong != 4)
    meet();
}

// A warp of CTA 0 writes what one of CTA 1 wrote before: each to its own memory, so there is no race.
extern "C" __global__ void apart(const __grid_constant__ Arguments arguments) {
  const unsigned words[1] = {ptx::cluster_rank() + 16 * ptx::cluster_size() + 256 * ptx::cta_index()};
  const unsigned address = at(&storage().ring[0]) + 4 * ptx::thread_index();
  ptx::st_shared(address, words);
  if (arguments.wrong == 7)
    ptx::cluster_arrive();
  ptx::cluster_arrive(); // [twice]
  ptx::cluster_wait();
  if (arguments.wrong == 8)
    ptx::cluster_wait(); // [alone]
  unsigned back[1];
  ptx::ld_shared(back, address);
  ptx::st_global_f32(static_cast<float *>(arguments.result) + ptx::cta_index() * ptx::cta_count() * 16 +
                         ptx::thread_index(),
                     static_cast<float>(back[0]));
}
