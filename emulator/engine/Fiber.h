// fagen: stacks for emulated threads, and the switch from one to another.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lowest layer of Boost.Context is used, since the emulator needs two things that its fiber class withholds: a
// switch straight from thread to thread without a scheduler between, and to give up a thread in mid-flight (after a
// deadlock) without unwinding the kernel's frames.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

namespace fagen::emulator {

/// Stacks of equal size in one mapping, each with a guard page below. They are kept for the next CTA.
class Stacks {
public:
  Stacks() = default;
  ~Stacks();
  Stacks(const Stacks &) = delete;
  Stacks &operator=(const Stacks &) = delete;

  /// Room for `count` stacks. False when the system gives no memory.
  bool reserve(unsigned count);
  unsigned count() const { return stackCount; }
  void *bottom(unsigned index) const;
  size_t size() const;

private:
  char *memory = nullptr;
  unsigned stackCount = 0;
};

/// A suspended flow of control: a thread of the kernel, or the worker that started them.
struct Fiber {
  boost::context::detail::fcontext_t context = nullptr;
  const void *stackBottom = nullptr; ///< what AddressSanitizer must know; null until known
  size_t stackSize = 0;
};

/// Makes `fiber` begin at `entry` on stack `index` when it is first switched to.
void prepare(Fiber &fiber, const Stacks &stacks, unsigned index, void (*entry)());

/// Suspends `from`, which is running, and continues `to`; returns when somebody switches back.
void switchFibers(Fiber &from, Fiber &to);

} // namespace fagen::emulator
