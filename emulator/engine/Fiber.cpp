// fagen: stacks for emulated threads, and the switch from one to another.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FAGEN_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FAGEN_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef FAGEN_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

namespace fagen::emulator {

#ifdef FAGEN_ADDRESS_SANITIZER
constexpr size_t kStackBytes = 512 << 10;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif
constexpr size_t kGuardBytes = 4096;
constexpr size_t kStride = kStackBytes + kGuardBytes;

Stacks::~Stacks() {
  if (memory)
    munmap(memory, stackCount * kStride);
}

bool Stacks::reserve(unsigned count) {
  if (count <= stackCount)
    return true;
  void *mapping = mmap(nullptr, count * kStride, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED)
    return false;
  if (memory)
    munmap(memory, stackCount * kStride);
  memory = static_cast<char *>(mapping);
  stackCount = count;
  for (unsigned i = 0; i < count; ++i)
    mprotect(memory + i * kStride, kGuardBytes, PROT_NONE);
  return true;
}

void *Stacks::bottom(unsigned index) const { return memory + index * kStride + kGuardBytes; }

size_t Stacks::size() const { return kStackBytes; }

namespace {

void arrive(transfer_t transfer) { static_cast<Fiber *>(transfer.data)->context = transfer.fctx; }

#ifdef FAGEN_ADDRESS_SANITIZER
void announceSwitch(const Fiber &to, void **fakeStack) {
  __sanitizer_start_switch_fiber(fakeStack, to.stackBottom, to.stackSize);
}
void announceArrival(Fiber *from, void *fakeStack) {
  const void *bottom;
  size_t size;
  __sanitizer_finish_switch_fiber(fakeStack, &bottom, &size);
  if (!from->stackBottom) {
    from->stackBottom = bottom;
    from->stackSize = size;
  }
}
void forgetFrames(void *bottom, size_t size) { ASAN_UNPOISON_MEMORY_REGION(bottom, size); }
#else
void announceSwitch(const Fiber &, void **) {}
void announceArrival(Fiber *, void *) {}
void forgetFrames(void *, size_t) {}
#endif

thread_local void (*fiberEntry)() = nullptr;

void begin(transfer_t transfer) {
  announceArrival(static_cast<Fiber *>(transfer.data), nullptr);
  arrive(transfer);
  fiberEntry();
}

} // namespace

void prepare(Fiber &fiber, const Stacks &stacks, unsigned index, void (*entry)()) {
  // Stacks that begin at equal offsets would compete for the same lines of the cache.
  const size_t colour = index * 1088 % (kStackBytes / 8);
  char *bottom = static_cast<char *>(stacks.bottom(index));
  forgetFrames(bottom, kStackBytes);
  fiberEntry = entry;
  fiber.stackBottom = bottom;
  fiber.stackSize = kStackBytes;
  fiber.context = make_fcontext(bottom + kStackBytes - colour, kStackBytes - colour, begin);
}

void switchFibers(Fiber &from, Fiber &to) {
  void *fakeStack = nullptr;
  announceSwitch(to, &fakeStack);
  const transfer_t transfer = jump_fcontext(to.context, &from);
  announceArrival(static_cast<Fiber *>(transfer.data), fakeStack);
  arrive(transfer);
}

} // namespace fagen::emulator
