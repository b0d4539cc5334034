// fagen: running other programs: lines, exit codes, signals, time limits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/support/child_process.h"

#include <chrono>
#include <csignal>
#include <gtest/gtest.h>

using namespace fagen::lab;

namespace {

struct Ran {
  ChildOutcome outcome;
  std::vector<std::string> lines;
};
Ran shell(const std::string &script, double seconds = 0) {
  Ran ran;
  ran.outcome = runChild({"sh", "-c", script}, seconds, [&](const std::string &line) { ran.lines.push_back(line); });
  return ran;
}

TEST(ChildProcess, linesComeWholeAndInOrder) {
  Ran ran = shell("printf 'one\\ntw'; sleep 0.05; printf 'o\\nlast'");
  EXPECT_EQ(ran.lines, (std::vector<std::string>{"one", "two", "last"}));
  EXPECT_TRUE(ran.outcome.succeeded());
}

TEST(ChildProcess, exitCodeAndErrorsAreKept) {
  Ran ran = shell("echo why >&2; exit 3");
  EXPECT_EQ(ran.outcome.exitCode, 3);
  EXPECT_EQ(ran.outcome.errors, "why\n");
  EXPECT_FALSE(ran.outcome.succeeded());
}

TEST(ChildProcess, onlyTheEndOfManyErrorsIsKept) {
  Ran ran = shell("head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2");
  EXPECT_LE(ran.outcome.errors.size(), 8192u);
  EXPECT_TRUE(ran.outcome.errors.ends_with("xend\n"));
}

TEST(ChildProcess, aSignalIsTold) { EXPECT_EQ(shell("kill -SEGV $$").outcome.signal, SIGSEGV); }

TEST(ChildProcess, whatCannotBeStartedIs127) {
  EXPECT_EQ(runChild({"/nowhere/tool"}, 0, [](const std::string &) {}).exitCode, 127);
}

TEST(ChildProcess, itIsKilledAtItsLimit) {
  auto begin = std::chrono::steady_clock::now();
  Ran ran = shell("echo begun; exec sleep 60", 0.2);
  EXPECT_TRUE(ran.outcome.timedOut);
  EXPECT_EQ(ran.outcome.signal, SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

} // namespace
