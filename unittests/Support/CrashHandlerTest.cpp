// fagen: a crash is told and ends the process, wherever it comes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/CrashHandler.h"

#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#if !defined(__SANITIZE_ADDRESS__) // which has a handler of its own

namespace {

constexpr auto kSaid = "tool: this is a mistake of fagen's own; please report it with the input and what follows";

volatile bool goesOn = true; // the compiler must not know that nothing ends

[[gnu::noinline]] void overflow(volatile char *above) {
  volatile char frame[64];
  frame[0] = *above;
  free(malloc(size_t(1) << 20)); // so that many of the crashes come within malloc, which then holds its lock
  if (goesOn)
    overflow(frame);
  frame[1] = frame[0]; // not a tail call
}

TEST(CrashHandler, AnExhaustedStackIsTold) {
  const auto crash = [] {
    const rlimit small{256 << 10, 256 << 10};
    setrlimit(RLIMIT_STACK, &small);
    fagen::reportCrashes("tool");
    char first = 0;
    overflow(&first);
  };
  EXPECT_EXIT(crash(), testing::KilledBySignal(SIGSEGV), kSaid);
}

/// Takes malloc's lock and keeps it: what allocates afterwards waits for ever.
TEST(CrashHandler, DoesNotAllocate) {
  const auto crash = [] {
    fagen::reportCrashes("tool");
    std::signal(SIGUSR1, [](int) { std::raise(SIGSEGV); });
    pid_t parent = getpid();
    if (fork() == 0) { // interrupts it where it is, which is nearly always within malloc
      for (int i = 0; i < 50; ++i)
        usleep(1000);
      kill(parent, SIGUSR1);
      _exit(0);
    }
    for (void *volatile memory;;) {
      memory = malloc(1 << 16);
      free(memory);
    }
  };
  for (int attempt = 0; attempt < 5; ++attempt)
    EXPECT_EXIT(crash(), testing::KilledBySignal(SIGSEGV), kSaid);
}

TEST(CrashHandler, AbortIsTold) {
  EXPECT_EXIT((fagen::reportCrashes("tool"), std::abort()), testing::KilledBySignal(SIGABRT), kSaid);
}

} // namespace

#endif
