// fagen: what each warp, and where it matters each thread, has been told of the others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vector clocks (Lamport; Mattern): each access is an epoch of its warp, and each warp knows up to which epoch of every
// other warp it has been synchronised. Where all that synchronises takes a warp's lanes together, clocks of warps are
// enough: a meeting ends the warp's epoch. Between two such meetings nothing orders two lanes of a warp, and a lane's
// own accesses are in program order.
//
// Barriers in shared memory are come to by single threads, and asynchronous engines (bulk copies, products of warp
// groups) read and write on their own. From the first of these on, refine() keeps a clock for each thread, with a
// column for each engine's queue next to those of the threads; the clocks of warps stay as the quick first answer, and
// are never ahead of them.
#pragma once

#include "WaitClocks.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fagen::emulator {

/// Who accesses: one lane, or lanes of which it is unknown which one touches which byte; or, numbered from
/// kFirstQueue on, a queue of an asynchronous engine.
struct Agent {
  unsigned warp;
  uint32_t lanes; ///< a bit each; of a queue 1
};

/// The clocks of a CTA's warps.
class Clocks {
public:
  static constexpr unsigned kWarps = 32;
  static constexpr unsigned kFirstQueue = kWarps; ///< Agent::warp of the first queue
  /// A CTA of so many warps begins. What older CTAs did is forgotten: their epochs lie before all of this one's.
  void begin(unsigned warps);
  /// Those who come to a barrier leave there what they know.
  struct Joined {
    uint32_t epochs[kWarps] = {};
    std::vector<uint32_t> fine = {}; ///< by thread, then by queue, as far as anybody knew of them
    WaitClocks::Row waits = {};
  };
  /// The warp comes: what it did so far is seen by whoever waits.
  void arrive(unsigned warp, Joined &joined);
  /// The warp, which came before, waited until all had.
  void learn(unsigned warp, const Joined &joined);
  /// The lanes of a warp wait for each other.
  void warpBarrier(unsigned warp);

  /// How far the threads know each other to be; all that synchronises tells of it, too.
  WaitClocks waits;

  uint32_t epoch(unsigned warp) const { return epochs[warp]; }
  uint32_t first() const { return firstEpoch; }
  /// Whether `agent`, lanes of a warp, comes after what `other` did in its epoch `epoch`.
  bool isAfter(Agent agent, Agent other, uint32_t epoch) const {
    if (other.warp < kWarps &&
        (known[agent.warp * kWarps + other.warp] >= epoch ||
         (agent.warp == other.warp && agent.lanes == other.lanes && (agent.lanes & (agent.lanes - 1)) == 0))) [[likely]]
      return true;
    return isFine() && isAfterFine(agent, other, epoch);
  }
  /// Up to which epoch of its own warp every lane comes after every other.
  uint32_t met(unsigned warp) const { return known[warp * kWarps + warp]; }

  // ---- Threads and queues ----

  bool isFine() const { return !rows.empty(); }
  /// From now on each thread has a clock; `threads` are the CTA's. Nothing when it was done before.
  void refine(unsigned threads);
  /// One thread comes, on its own: its own accesses, and what it knows, are seen by whoever waits.
  void arriveAlone(unsigned thread, Joined &joined);
  void learnAlone(unsigned thread, const Joined &joined);
  /// A queue's entries are its epochs, 0, 1, 2, ... from epochOf(0) on.
  uint32_t epochOf(uint32_t entry);
  /// The thread waited for this entry of queue `queue` and all before it.
  void learnQueue(unsigned thread, unsigned queue, uint32_t entry);
  /// Who waits there also waits for the entry: a barrier passes on what a queue did.
  void joinQueue(Joined &joined, unsigned queue, uint32_t entry);

private:
  using Row = std::vector<uint32_t>;
  bool isAfterFine(Agent agent, Agent other, uint32_t epoch) const;
  static void raise(Row &row, const Row &other);
  static uint32_t at(const Row &row, size_t column) { return column < row.size() ? row[column] : 0; }
  void learnRow(unsigned thread, const Joined &joined);

  uint32_t firstEpoch = 1;
  uint32_t lastQueueEpoch = 0;
  uint32_t epochs[kWarps] = {};
  /// [w][v]: the last epoch of v that all of w comes after; with clocks of threads, at least up to there.
  mutable uint32_t known[kWarps * kWarps] = {};
  std::vector<Row> rows; ///< by thread; [u]: up to which epoch of its warp u's accesses come before
};

} // namespace fagen::emulator
