// fagen: in which order the CTAs of a launch reach atomics of global memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "AtomicOrder.h"

#include <algorithm>

namespace fagen::emulator {

AtomicOrder::AtomicOrder(unsigned workers, uint64_t seed)
    : running(workers), seed(seed), state((seed + 1) * 0x9e3779b97f4a7c15u) {}

void AtomicOrder::enter(unsigned cta) {
  std::unique_lock lock(mutex);
  waiting.insert(std::upper_bound(waiting.begin(), waiting.end(), cta), cta);
  --running;
  grant();
  granted.wait(lock, [&] { return turn == cta; });
  turn = kNobody;
}

void AtomicOrder::leave() {
  const std::lock_guard lock(mutex);
  --running;
  grant();
}

void AtomicOrder::grant() {
  if (running > 0 || waiting.empty())
    return;
  auto next = seed == 0 ? std::upper_bound(waiting.begin(), waiting.end(), last)
                        : waiting.begin() + static_cast<std::ptrdiff_t>(random() % waiting.size());
  if (next == waiting.end())
    next = waiting.begin();
  turn = last = *next;
  waiting.erase(next);
  ++running;
  granted.notify_all();
}

uint64_t AtomicOrder::random() { // xorshift64*
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1du >> 32;
}

} // namespace fagen::emulator
