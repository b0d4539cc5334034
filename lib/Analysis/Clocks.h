// fagen: what each thread of a CTA knows to lie behind it: vector clocks of warps that run different roles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The agents are, of each warp, its first lane and the other lanes. A clock says of each agent up to which of its
// events everything happens before now, in four senses:
//
//   Performed    its memory accesses are done and seen
//   Executed     it went past the event; nothing is said of memory
//   AsyncProxy   accesses that a fence showed the async proxy
//   Initialised  mbarriers that a fence showed the async proxy
//
// The other lanes of a warp know of each other only what a barrier told them: their own entry is not raised by program
// order. Beside agents a clock counts what runs without them: complete phases of each mbarrier's slots, generations of
// each CTA or named barrier, groups of products of each four warps, and groups of bulk stores of each warp.
#pragma once

#include "fagen/IR/IR.h"

namespace fagen {

enum class Layer : uint8_t { Performed, Executed, AsyncProxy, Initialised };

/// Where each entry of a clock stands.
struct ClockShape {
  static constexpr unsigned kLayers = 4, kBarriers = 16, kGroupWarps = 4;
  unsigned warps = 0, slots = 0;

  unsigned agents() const { return 2 * warps; }
  unsigned of(Layer layer, unsigned agent) const { return unsigned(layer) * agents() + agent; }
  unsigned slot(unsigned number) const { return kLayers * agents() + number; }
  unsigned barrier(unsigned id) const { return slot(slots) + id; }
  unsigned products(unsigned warp) const { return barrier(kBarriers) + warp / kGroupWarps; }
  unsigned stores(unsigned warp) const { return products(warps + kGroupWarps) + warp; }
  unsigned size() const { return stores(warps); }
};

/// An entry, and by which ops it came here: the first release, and the last acquisition.
struct Known {
  unsigned value = 0;
  const ir::Op *release = nullptr, *acquire = nullptr;
};

class Clock {
public:
  explicit Clock(unsigned size = 0) : entries(size) {}
  const Known &operator[](unsigned entry) const { return entries[entry]; }
  void raise(unsigned entry, unsigned value, const ir::Op *release, const ir::Op *acquire = nullptr) {
    if (entries[entry].value < value)
      entries[entry] = {value, release, acquire};
  }
  /// Learns what `other` knows of entries [begin, end); by `acquire`, unless null.
  void join(const Clock &other, unsigned begin, unsigned end, const ir::Op *acquire = nullptr) {
    for (unsigned i = begin; i < end; ++i)
      if (entries[i].value < other.entries[i].value) {
        entries[i] = other.entries[i];
        if (acquire)
          entries[i].acquire = acquire;
      }
  }
  void join(const Clock &other, const ir::Op *acquire = nullptr) { join(other, 0, entries.size(), acquire); }

private:
  std::vector<Known> entries;
};

} // namespace fagen
