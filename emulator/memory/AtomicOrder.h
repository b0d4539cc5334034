// fagen: in which order the CTAs of a launch reach atomics of global memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace fagen::emulator {

/// A CTA goes on from an atomic when every other one that runs is at one, too. Which of them it is follows from the
/// seed alone (0: each in turn), so that what an atomic gives does not depend on how fast the workers are.
class AtomicOrder {
public:
  AtomicOrder(unsigned workers, uint64_t seed);
  /// Returns when it is this CTA's turn.
  void enter(unsigned cta);
  /// A worker has no CTA any more.
  void leave();

private:
  void grant();
  uint64_t random();

  static constexpr unsigned kNobody = ~0u;
  std::mutex mutex; ///< guards what follows
  std::condition_variable granted;
  unsigned running; ///< workers that are at no atomic
  std::vector<unsigned> waiting;
  unsigned turn = kNobody, last = kNobody;
  uint64_t seed, state;
};

} // namespace fagen::emulator
