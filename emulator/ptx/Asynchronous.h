// fagen: what runs while the threads of a CTA do: barriers that count bytes, bulk copies, products of warp groups.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "emulator/engine/Findings.h"
#include "emulator/memory/Clocks.h"

#include <array>
#include <deque>
#include <fagen/device/ptx/engine.h>
#include <fagen/device/tensor_map.h>
#include <vector>

namespace fagen::emulator {

/// A thread's wait for the phase of a barrier that completed last.
struct PassedWait {
  unsigned thread;
  uint32_t passed; ///< its waits, with this one
  Site site;
};

/// A barrier in shared memory. Its phases are the entries of a queue: that of the copies that it counts.
struct MBarrier {
  unsigned arrivals = 0; ///< in each phase
  unsigned missing = 0;  ///< arrivals of the open phase
  int64_t bytes = 0;     ///< expected and not landed; negative when more landed than were expected so far
  uint32_t phase = 0;    ///< the open one
  uint32_t waited = 0;   ///< phases before it were waited for
  unsigned queue = 0;
  Clocks::Joined open, completed; ///< what those know who wait for the open phase, and for the one before
  unsigned column = 0;            ///< its place in WaitClocks
  std::vector<PassedWait> passed; ///< since the last phase completed
  unsigned completedFrom = 0;     ///< the thread whose arrival or copy completed the last phase
  Site completedBy{};             ///< and where that stands
  unsigned maker = 0;             ///< the thread, and when
  uint32_t madeAt = 0;
  bool isFenced = false; ///< by its maker
  Site site{};
};

/// A box between issue and landing.
struct BulkCopy {
  device::TensorMapDescription map;
  int at[device::kMapRank];
  unsigned address; ///< in shared memory
  unsigned thread;
  Site site;
  bool landed = false;
  unsigned barrier = 0; ///< loads: its address,
  uint32_t phase = 0;   ///< and the phase that counts it
};

/// Registers of one thread that products were given. An array that a fence saw may not change before the product.
struct KnownRegisters {
  const void *where;
  unsigned words;
  uint64_t doneAt = 0; ///< when the last product that had them was waited for
  std::vector<uint32_t> fenced = {};
};

/// Accumulators between the first product that has them and the wait for the last one.
struct Flight {
  unsigned registers;             ///< of a thread
  std::array<float *, 128> d{};   ///< of the group's threads
  std::vector<float> values = {}; ///< by thread, then register: as computed so far
  uint64_t lastProduct = 0;
  unsigned open = 0; ///< a bit for each warp of the group that has not waited for lastProduct
};

struct Product64 {
  device::ptx::WgmmaForm form;
  uint64_t aDescriptor, bDescriptor;
  std::array<const unsigned *, 128> a{};      ///< registers; null: shared memory
  std::vector<std::array<unsigned, 4>> given; ///< what they held
  Flight *flight;
  Site site;
  unsigned window = 0; ///< where the shared memory of its CTA begins
};

/// Four warps. Products are numbered from 0; those before firstProduct are computed and forgotten.
struct WarpGroup {
  unsigned come = 0; ///< a bit for each warp that waits for the others with its part of a product
  std::deque<Product64> products;
  uint64_t firstProduct = 0;
  std::deque<Flight> flights;
  unsigned registersSet = 0; ///< a bit for each warp that has come to the open setmaxnreg
  WaitClocks::Row waits;     ///< that the group's warps had passed when they came to the last product
  uint64_t next() const { return firstProduct + products.size(); }
};

/// A closed group: its products are those before `end`, and after its wait all four warps are known to have issued
/// them.
struct ProductGroup {
  uint64_t end;
  WaitClocks::Row waits;
};

/// A warp's groups of products: commit closes one.
struct WarpProducts {
  std::deque<ProductGroup> groups; ///< that were not waited for
  uint64_t committed = 0;          ///< products in closed groups
  uint64_t done = 0;               ///< products that were waited for
};

} // namespace fagen::emulator
