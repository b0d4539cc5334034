// fagen: what each thread of a CTA or cluster knows to lie behind it: vector clocks of warps that run different roles.
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
// each CTA or named barrier, groups of products of each four warps, and groups of bulk stores of each warp. Of a
// cluster the warps, slots and barriers of all CTAs are numbered one behind the other.
//
// An entry is one number: what is known, and by which ops it came here. Most of an execution's time goes into learning
// entries of other clocks, so there is no branch in that.
#pragma once

#include "fagen/IR/IR.h"

#include <array>

namespace fagen {

enum class Layer : uint8_t { Performed, Executed, AsyncProxy, Initialised };

/// Where each entry of a clock stands. Only what somebody may ask for has an entry of its own.
class ClockShape {
public:
  static constexpr unsigned kBarriers = 16, kGroupWarps = 4; ///< barriers of a CTA

  unsigned of(Layer layer, unsigned agent) const { return agents[unsigned(layer)][agent]; }
  unsigned slot(unsigned number) const { return kFirstEntry + number; }
  unsigned barrier(unsigned id) const { return barriers[id]; }
  bool hasBarrier(unsigned id) const { return barriers[id] != kNobodyAsks; }
  unsigned products(unsigned warp) const { return groups[warp / kGroupWarps]; }
  unsigned stores(unsigned warp) const { return storing[warp]; }
  unsigned size() const { return end; }
  /// All of Layer::Executed lie between.
  unsigned executedBegin() const { return firstExecuted; }
  unsigned executedEnd() const { return lastExecuted; }

  void begin(unsigned warpCount, unsigned slots, unsigned barrierCount) {
    warps = warpCount;
    end = kFirstEntry + slots;
    for (unsigned layer = 0; layer < agents.size(); ++layer)
      agents[layer].assign(2 * warps, layer < unsigned(Layer::AsyncProxy) ? kNobodyAsks : kNever);
    barriers.assign(barrierCount, kNobodyAsks);
    groups.assign(warps / kGroupWarps + 1, kNobodyAsks);
    storing.assign(warps, kNobodyAsks);
  }
  void add(Layer layer, unsigned agent) { add(agents[unsigned(layer)][agent]); }
  void addBarrier(unsigned id) { add(barriers[id]); }
  void addProducts(unsigned warp) { add(groups[warp / kGroupWarps]); }
  void addStores(unsigned warp) { add(storing[warp]); }
  void beginExecuted() { firstExecuted = end; }
  void endExecuted() { lastExecuted = end; }

  unsigned warps = 0;

private:
  /// kNever is always 0: where a warp has no fence, it showed nothing.
  static constexpr unsigned kNever = 0, kNobodyAsks = 1, kFirstEntry = 2;
  void add(unsigned &place) { place = place < kFirstEntry ? end++ : place; }

  std::array<std::vector<unsigned>, 4> agents; ///< by layer
  std::vector<unsigned> barriers, groups, storing;
  unsigned end = 0, firstExecuted = 0, lastExecuted = 0;
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
    const uint64_t taken = (other.bits & mask) | acquire, takes = 0 - uint64_t(value() < other.value());
    bits = (bits & ~takes) | (taken & takes);
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
