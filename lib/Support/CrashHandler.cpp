// fagen: what a tool says when it crashes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A crash may come anywhere, also while malloc holds its lock: a handler that allocates then waits for ever, as LLVM's
// does, which looks symbols up. This one only makes calls that signal handlers may make, or that take no lock on the
// crashed thread; should one of them wait after all, an alarm ends the process.

#include "fagen/Support/CrashHandler.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#ifdef __GLIBC__
#include <execinfo.h>
#endif

namespace fagen {

static constexpr unsigned kMostSeconds = 5;
static constexpr size_t kStackBytes = 64 << 10; ///< of the handler: the tool's own may be exhausted
static constexpr int kMostFrames = 48;
static constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};

static const char *crashingTool;

static void say(const char *text) {
  if (write(STDERR_FILENO, text, strlen(text)) < 0) // there is nobody left to tell
    return;
}

static void endAfter(unsigned seconds) {
  signal(SIGALRM, SIG_DFL);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
  alarm(seconds);
}

static void onCrash(int signalNumber) {
  endAfter(kMostSeconds);
  for (int crash : kCrashes) // a second one ends the process
    signal(crash, SIG_DFL);
  say(crashingTool);
  say(": this is a mistake of fagen's own; please report it with the input and what follows\n");
#ifdef __GLIBC__
  void *frames[kMostFrames];
  backtrace_symbols_fd(frames, backtrace(frames, kMostFrames), STDERR_FILENO);
#endif
  raise(signalNumber); // it is blocked until the handler returns
}

void reportCrashes(const char *tool) {
  crashingTool = tool;
#ifdef __GLIBC__
  void *frame;
  backtrace(&frame, 1); // its first call loads a library
#endif
  stack_t stack = {};
  stack.ss_sp = malloc(kStackBytes); // for as long as the process lives
  stack.ss_size = kStackBytes;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = onCrash;
  action.sa_flags = SA_ONSTACK;
  for (int crash : kCrashes)
    sigaction(crash, &action, nullptr);
}

} // namespace fagen
