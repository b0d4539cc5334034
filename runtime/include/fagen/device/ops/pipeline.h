// fagen: how roles hand each other the slots of a ring: mbarriers, and bulk copies that signal them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is handed over has a position 0, 1, 2, ...; position p is phase p / kSlots of slot p % kSlots.
#pragma once

#include <fagen/device/ptx/barrier.h>
#include <fagen/device/ptx/cluster.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/mbarrier.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/ptx/tma.h>
#include <fagen/device/tile/cta.h>
#include <fagen/device/tile/integer.h>
#include <fagen/device/tile/operand.h>

namespace fagen::device {

/// An mbarrier for each slot of a ring.
template <int kRingSlots> struct Mbarriers {
  static constexpr int kSlots = kRingSlots;
  alignas(128) unsigned long long slots[kSlots];

  __device__ __forceinline__ unsigned address(int position) const {
    return ptx::shared_address(&slots[static_cast<unsigned>(position) % kSlots]);
  }
};

/// Each phase of each slot takes so many arrivals; as ptx::mbarrier_init has it, one thread does it.
template <int kSlots>
__device__ __forceinline__ void mbarrier_init(const Mbarriers<kSlots> &barriers, int arrivals,
                                              ptx::Site site = ptx::Site::here()) {
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot)
    ptx::mbarrier_init(barriers.address(slot), arrivals, site);
}

/// Returns when the phase of `position` is complete; positions from -kSlots on are, before the first one.
template <int kSlots>
__device__ __forceinline__ void wait_for(const Mbarriers<kSlots> &barriers, int position,
                                         ptx::Site site = ptx::Site::here()) {
  const unsigned from_before = static_cast<unsigned>(position + kSlots);
  ptx::mbarrier_wait(barriers.address(position + kSlots), (from_before / kSlots + 1) % 2, site);
}

template <int kSlots>
__device__ __forceinline__ void arrive(const Mbarriers<kSlots> &barriers, int position,
                                       ptx::Site site = ptx::Site::here()) {
  ptx::mbarrier_arrive(barriers.address(position), site);
}

/// One thread of each group of four warps arrives.
template <int kSlots>
__device__ __forceinline__ void arrive_by_group(const Mbarriers<kSlots> &barriers, int position,
                                                ptx::Site site = ptx::Site::here()) {
  if (ptx::thread_index() % 128 == 0)
    ptx::mbarrier_arrive(barriers.address(position), site);
}

/// One thread of each warp arrives.
template <int kSlots>
__device__ __forceinline__ void arrive_by_warp(const Mbarriers<kSlots> &barriers, int position,
                                               ptx::Site site = ptx::Site::here()) {
  if (ptx::lane_index() == 0)
    ptx::mbarrier_arrive(barriers.address(position), site);
}

/// In each of the kCtas CTAs of the cluster one thread of each group of four warps arrives.
template <int kCtas, int kSlots>
__device__ __forceinline__ void arrive_in_cluster_by_group(const Mbarriers<kSlots> &barriers, int position,
                                                           ptx::Site site = ptx::Site::here()) {
  const int cta = ptx::thread_index() % 128;
  if (cta < kCtas)
    ptx::mbarrier_arrive_at(barriers.address(position), cta, site);
}

/// In each of the kCtas CTAs of the cluster one thread of each warp arrives. What the warp has read itself (settle.h)
/// is in registers by then.
template <int kCtas, int kSlots>
__device__ __forceinline__ void arrive_in_cluster_by_warp(const Mbarriers<kSlots> &barriers, int position,
                                                          ptx::Site site = ptx::Site::here()) {
  const int cta = ptx::lane_index();
  if (cta < kCtas)
    ptx::mbarrier_arrive_at(barriers.address(position), cta, site);
}

/// All threads of the cluster; those of a warp come together first.
__device__ __forceinline__ void cluster_barrier(ptx::Site site = ptx::Site::here()) {
  ptx::warp_barrier(site);
  ptx::cluster_arrive(site);
  ptx::cluster_wait(site);
}

template <int kSlots>
__device__ __forceinline__ void arrive_expecting(const Mbarriers<kSlots> &barriers, int position, int bytes,
                                                 ptx::Site site = ptx::Site::here()) {
  ptx::mbarrier_arrive_expect(barriers.address(position), bytes, site);
}

/// Rows [row, row + Tile::kRows) of a head, all panels in one box: each box has its price. Rows outside the tensor
/// become zeros.
template <class Tile, int kSlots>
__device__ __forceinline__ void copy_tile_box(Tile &tile, const TensorMap &map, int row, int head, int batch,
                                              const Mbarriers<kSlots> &barriers, int position, ptx::CacheHint hint,
                                              ptx::Site site = ptx::Site::here()) {
  if constexpr (Tile::kColumns == panel_columns<Tile>())
    ptx::tma_load(tile.base(), map, {0, row, head, batch}, barriers.address(position), hint, site);
  else
    ptx::tma_load(tile.base(), map, {0, row, 0, head, batch}, barriers.address(position), hint, site);
}

/// This CTA's share of those rows, to the same place in all kCtas CTAs of its cluster: together they bring the tile. A
/// share is panels, in one box, where there are enough of them, else rows of each panel.
template <int kCtas, class Tile, int kSlots>
__device__ __forceinline__ void copy_share(Tile &tile, const TensorMap &map, int row, int head, int batch,
                                           const Mbarriers<kSlots> &barriers, int position, ptx::CacheHint hint,
                                           ptx::Site site = ptx::Site::here()) {
  constexpr int kPanels = Tile::kColumns / panel_columns<Tile>(), kPanelOfTile = Tile::kRows * Tile::kPanelBytes;
  constexpr unsigned short kAll = (1 << kCtas) - 1;
  const int cta = static_cast<int>(ptx::cluster_rank());
  if constexpr (kPanels % kCtas == 0) {
    const int first = cta * (kPanels / kCtas);
    ptx::tma_load_multicast(tile.base() + first * kPanelOfTile, map, {0, row, first, head, batch},
                            barriers.address(position), kAll, hint, site);
  } else {
    constexpr int kRows = Tile::kRows / kCtas;
    static_assert(kRows * kCtas == Tile::kRows && kRows % 8 == 0, "a share is whole groups of the swizzle's 8 rows");
    const int first = cta * kRows;
    for (int panel = 0; panel < kPanels; ++panel)
      ptx::tma_load_multicast(tile.base() + panel * kPanelOfTile + first * Tile::kPanelBytes, map,
                              {panel * panel_columns<Tile>(), row + first, head, batch}, barriers.address(position),
                              kAll, hint, site);
  }
}

/// kGroups warp groups take turns. Each has a named barrier, where it waits for the one before it to pass the turn on.
/// `row` is the group's first one in the tile.
template <int kGroups>
__device__ __forceinline__ void await_turn(int first_barrier, int row, ptx::Site site = ptx::Site::here()) {
  ptx::named_barrier(first_barrier + row / kGroupRows, 256, site);
}

template <int kGroups>
__device__ __forceinline__ void pass_turn(int first_barrier, int row, ptx::Site site = ptx::Site::here()) {
  const int next = row / kGroupRows + 1;
  ptx::named_barrier_arrive(first_barrier + (next == kGroups ? 0 : next), 256, site);
}

/// The number of the next tile, on its way from the thread that loads to all others.
struct alignas(128) NextTile {
  unsigned number;
};

/// One thread draws for its CTA. The counter is 0 again when each CTA has drawn once more than there are tiles for it.
template <int kTileRows>
__device__ __forceinline__ unsigned draw(const AttentionParams &params, ptx::Site site = ptx::Site::here()) {
  return ptx::atomic_inc(static_cast<unsigned *>(params.workspace), tile_count<kTileRows>(params) - 1, site);
}

/// The ticket that goes with what was drawn: a CTA's first one is its own number. What is drawn takes its time, so it
/// is looked at no earlier than here.
template <int kTileRows> __device__ __forceinline__ int ticket_of(const AttentionParams &params, unsigned drawn) {
  const int tiles = tile_count<kTileRows>(params), ctas = ptx::cta_count();
  const int number = static_cast<int>(ptx::recompute(drawn));
  return number < tiles - ctas ? ctas + number : tiles;
}

/// The same of a counter and tiles of a program's own.
__device__ __forceinline__ unsigned draw(unsigned *counter, int tiles, ptx::Site site = ptx::Site::here()) {
  return ptx::atomic_inc(counter, tiles - 1, site);
}
__device__ __forceinline__ int ticket_of(unsigned drawn, int tiles) {
  const int ctas = ptx::cta_count(), number = static_cast<int>(ptx::recompute(drawn));
  return number < tiles - ctas ? ctas + number : tiles;
}

__device__ __forceinline__ void hand_tile(NextTile &next, int number, ptx::Site site = ptx::Site::here()) {
  const unsigned words[1] = {static_cast<unsigned>(number)};
  ptx::st_shared(ptx::shared_address(&next.number), words, site);
}

__device__ __forceinline__ int take_tile(const NextTile &next, ptx::Site site = ptx::Site::here()) {
  unsigned words[1];
  ptx::ld_shared(words, ptx::shared_address(&next.number), site);
  return static_cast<int>(words[0]);
}

/// The rows of a group of four warps to the tensor, panel by panel; rows outside it are left out. The tile has at least
/// kColumns columns, which go to those from kFirst on, and its rows from group_row on to rows row + group_row and so
/// on. Where they end within a panel, the tensor ends there, too: what the panel has beyond is left out like rows. The
/// group's first thread asks for it.
template <int kColumns, int kFirst = 0, class Tile>
__device__ __forceinline__ void store_boxes_by_group(const Tile &tile, int group_row, const TensorMap &map, int row,
                                                     int head, int batch, ptx::Site site = ptx::Site::here()) {
  static_assert(kColumns <= Tile::kColumns && kFirst % panel_columns<Tile>() == 0, "panels of the tile");
  if (ptx::thread_index() % 128 != 0)
    return;
  for (int panel = 0; panel < ceil_div(kColumns, panel_columns<Tile>()); ++panel)
    ptx::tma_store(map, {kFirst + panel * panel_columns<Tile>(), row + group_row, head, batch},
                   tile.base() + (panel * Tile::kRows + group_row) * Tile::kPanelBytes, site);
}

__device__ __forceinline__ void commit_boxes_by_group(ptx::Site site = ptx::Site::here()) {
  if (ptx::thread_index() % 128 == 0)
    ptx::tma_commit(site);
}

/// The thread that asked goes on when at most kPending of its newest groups of stores still read their tile.
template <int kPending> __device__ __forceinline__ void wait_for_boxes_by_group(ptx::Site site = ptx::Site::here()) {
  if (ptx::thread_index() % 128 == 0)
    ptx::tma_wait_read<kPending>(site);
}

} // namespace fagen::device
