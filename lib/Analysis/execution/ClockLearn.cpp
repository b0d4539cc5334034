// fagen: what a clock learns from another one: the hottest loop of an execution.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled twice where the oldest processor that the compiler runs on has narrower vectors than most have.

#include "Clocks.h"

using namespace fagen;

[[gnu::always_inline]] static inline void learnEach(Entries<int32_t> mine, Entries<const int32_t> its, unsigned count,
                                                    int32_t kept, int32_t more) {
  int32_t *__restrict values = mine.values, *__restrict ways = mine.ways;
  for (unsigned i = 0; i < count; ++i) {
    // All is read first: a compiler that need not ask which of these is read makes no branch of them.
    const int32_t mineNow = values[i], wayNow = ways[i], itsNow = its.values[i], itsWay = (its.ways[i] & kept) | more;
    ways[i] = mineNow < itsNow ? itsWay : wayNow;
    values[i] = mineNow < itsNow ? itsNow : mineNow;
  }
}

#ifdef __x86_64__
[[gnu::target("avx2")]] static void learnWide(Entries<int32_t> mine, Entries<const int32_t> its, unsigned count,
                                              int32_t kept, int32_t more) {
  learnEach(mine, its, count, kept, more);
}

void fagen::learn(Entries<int32_t> mine, Entries<const int32_t> its, unsigned count, int32_t kept, int32_t more) {
  if (__builtin_cpu_supports("avx2"))
    learnWide(mine, its, count, kept, more);
  else
    learnEach(mine, its, count, kept, more);
}
#else
void fagen::learn(Entries<int32_t> mine, Entries<const int32_t> its, unsigned count, int32_t kept, int32_t more) {
  learnEach(mine, its, count, kept, more);
}
#endif
