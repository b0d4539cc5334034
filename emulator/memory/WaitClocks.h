// fagen: which waits for phases each thread knows the others to have passed, and which phases to be complete.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A wait for a phase of an mbarrier sees a single bit, so the next phase may not complete before every thread that
// waits for this one has passed. Who completes it must know that they have. This is knowledge of how far others are,
// which more things give than knowledge of what they wrote: lanes that execute a collective know it of each other, and
// whoever sees a copy arrive knows it of the thread that asked for the copy.
#pragma once

#include <cstdint>
#include <vector>

namespace fagen::emulator {

/// Vector clocks that count waits. A row has an entry for each thread, how many waits it has passed, then one for each
/// barrier, how many of its phases are complete. All lanes of a warp share what they knew when they last met.
class WaitClocks {
public:
  using Row = std::vector<uint32_t>;

  /// A CTA begins. Until refine() nothing is kept.
  void begin() { threads.clear(); }
  void refine(unsigned count);
  bool isKept() const { return !threads.empty(); }
  unsigned addBarrier() { return columns++; }

  /// The thread passes a wait; returns how many it has passed.
  uint32_t pass(unsigned thread);
  /// All lanes of the warp execute an instruction together.
  void meet(unsigned warp);

  void tell(unsigned thread, Row &row) const;
  void learn(unsigned thread, const Row &row);
  void tellWarp(unsigned warp, Row &row);
  void learnWarp(unsigned warp, const Row &row);

  /// How many phases of the barrier the thread knows to be complete.
  uint32_t phases(unsigned thread, unsigned barrier) const;
  /// The barrier's next phase completes for those who learn the row: then `phases` of it are complete.
  static void complete(Row &row, unsigned barrier, uint32_t phases);
  /// Whether the row says that the thread has passed so many waits.
  static bool tells(const Row &row, unsigned thread, uint32_t passed) {
    return thread < row.size() && row[thread] >= passed;
  }

private:
  static constexpr unsigned kLanes = 32;
  static void raise(Row &row, const Row &other);

  unsigned columns = 0;
  std::vector<Row> warps;    ///< what all lanes know
  std::vector<Row> threads;  ///< what each knows in addition to it, and older things
  std::vector<uint32_t> own; ///< by warp: a bit for each lane that knows more than its warp
};

} // namespace fagen::emulator
