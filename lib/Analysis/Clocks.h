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
//
// An entry is one number: what is known, and by which ops it came here. Most of an execution's time goes into learning
// entries of other clocks, so there is no branch in that.
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

/// An entry: a value, and the numbers of the ops that brought it here, 0 where none did: the first release, and the
/// last acquisition.
class Known {
public:
  Known() = default;
  Known(unsigned value, uint16_t release, uint16_t acquire)
      : bits(uint64_t(value) << 32 | uint64_t(release) << 16 | acquire) {}
  unsigned value() const { return unsigned(bits >> 32); }
  unsigned release() const { return bits >> 16 & 0xffff; }
  unsigned acquire() const { return bits & 0xffff; }
  /// Takes the other if that knows more; `mask` leaves of it what `acquire` does not replace.
  void join(Known other, uint64_t mask, uint16_t acquire) {
    bits = value() < other.value() ? (other.bits & mask) | acquire : bits;
  }

private:
  uint64_t bits = 0;
};

class Clock {
public:
  explicit Clock(unsigned size = 0) : entries(size) {}
  Known operator[](unsigned entry) const { return entries[entry]; }
  void raise(unsigned entry, unsigned value, uint16_t release, uint16_t acquire = 0) {
    if (entries[entry].value() < value)
      entries[entry] = Known(value, release, acquire);
  }
  /// Learns what `other` knows of entries [begin, end); by `acquire`, unless that is 0.
  void join(const Clock &other, unsigned begin, unsigned end, uint16_t acquire) {
    const uint64_t mask = acquire ? ~uint64_t(0xffff) : ~uint64_t(0);
    Known *mine = entries.data();
    const Known *its = other.entries.data();
    for (unsigned i = begin; i < end; ++i)
      mine[i].join(its[i], mask, acquire);
  }
  void join(const Clock &other, uint16_t acquire = 0) { join(other, 0, entries.size(), acquire); }
  void clear() { std::fill(entries.begin(), entries.end(), Known()); }

private:
  std::vector<Known> entries;
};

} // namespace fagen
