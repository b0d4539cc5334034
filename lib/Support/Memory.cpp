// fagen: how the driver takes memory from the system.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/Memory.h"

#include <cstdint>
#include <cstdlib>
#include <utility>

#ifdef __GLIBC__
#include <linux/mman.h>
#include <malloc.h>
#include <sys/mman.h>
#endif

void fagen::keepMemory() {
#ifdef __GLIBC__
  mallopt(M_TOP_PAD, 16 << 20);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

void fagen::takeLargePages() {
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE) && defined(MADV_COLLAPSE)
  static thread_local bool isDone = false;
  if (std::exchange(isDone, true))
    return;
  // All that a thread allocates lies in one heap, which begins at a multiple of its size and is reserved as a whole.
  constexpr uintptr_t kHeapBytes = uintptr_t(64) << 20, kPageBytes = uintptr_t(2) << 20;
  void *piece = malloc(kPageBytes / 8); // the first thread has a little already, which is to grow
  char *heap = reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(piece) / kHeapBytes * kHeapBytes);
  madvise(heap, kHeapBytes, MADV_HUGEPAGE);
  madvise(heap, kPageBytes, MADV_COLLAPSE); // which has small pages already
  free(piece);
#endif
}
