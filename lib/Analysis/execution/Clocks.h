// fagen: what each thread of a CTA or cluster knows to have happened: vector clocks of warps that run different roles.
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
// order. In addition to agents a clock counts what runs without them: complete phases of each mbarrier's slots,
// generations of each CTA or named barrier, groups of products of each four warps, and groups of bulk stores of each
// warp. Of a cluster the warps, slots and barriers of all CTAs are numbered one after the other.
//
// An entry is what is known, and by which ops it came here. Most of an execution's time goes into learning entries of
// other clocks, so there is no branch in that (ClockLearn.cpp).
#pragma once

#include "fagen/IR/IR.h"

#include <array>
#include <optional>

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
  Known(unsigned value, uint32_t way) : known(value), way(way) {}
  unsigned value() const { return known; }
  unsigned release() const { return way >> 16; }
  unsigned acquire() const { return way & 0xffff; }

private:
  unsigned known = 0;
  uint32_t way = 0; ///< both ops
};

/// Values and ways of neighbouring entries.
template <typename T> struct Entries {
  T *values, *ways;
};
/// Takes each of the `count` entries whose value is larger, and of its way the part that is kept, with `more`.
void learn(Entries<int32_t> mine, Entries<const int32_t> its, unsigned count, int32_t kept, int32_t more);

/// All values stand before all ways: joining takes several entries at a time, even with the oldest vector units, which
/// compare signed numbers of 32 bits. Values are places in timelines, far below 2^31.
class Clock {
public:
  explicit Clock(unsigned size = 0) : size(size), entries(2 * size) {}
  unsigned value(unsigned entry) const { return unsigned(entries[entry]); }
  Known operator[](unsigned entry) const { return {value(entry), uint32_t(entries[size + entry])}; }
  void raise(unsigned entry, unsigned value, uint16_t release, uint16_t acquire = 0) {
    if (entries[entry] >= int32_t(value))
      return;
    entries[entry] = int32_t(value);
    entries[size + entry] = wayOf(release, acquire);
  }
  /// Learns what `other` knows of entries [begin, end); by `acquire`, unless that is 0.
  void join(const Clock &other, unsigned begin, unsigned end, uint16_t acquire) {
    learn({entries.data() + begin, entries.data() + size + begin},
          {other.entries.data() + begin, other.entries.data() + size + begin}, end - begin,
          acquire ? wayOf(0xffff, 0) : -1, acquire);
  }
  void join(const Clock &other, uint16_t acquire = 0) { join(other, 0, size, acquire); }
  void clear() { std::fill(entries.begin(), entries.end(), 0); }
  bool operator==(const Clock &) const = default;

private:
  static int32_t wayOf(uint16_t release, uint16_t acquire) { return int32_t(uint32_t(release) << 16 | acquire); }

  unsigned size;
  std::vector<int32_t> entries;
};

/// What the first lane of a warp knows, and what the others know: one clock as long as that is the same, as it mostly
/// is.
class LaneClocks {
public:
  LaneClocks() = default;
  explicit LaneClocks(unsigned size) : first(size) {}
  bool areOne() const { return !others; }
  const Clock &operator[](unsigned lane) const { return lane == 0 || areOne() ? first : *others; }
  /// To be told what the other lanes may not know.
  Clock &apart(unsigned lane) {
    if (areOne())
      others = first;
    return lane == 0 ? first : *others;
  }
  /// Calls `tell` with each clock: all lanes learn the same.
  template <typename Tell> void forEach(Tell tell) {
    tell(first);
    if (!areOne())
      tell(*others);
  }
  /// One clock again if both say the same.
  void unite() {
    if (!areOne() && first == *others)
      others.reset();
  }

private:
  Clock first;
  std::optional<Clock> others;
};

} // namespace fagen
