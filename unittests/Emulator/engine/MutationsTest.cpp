// fagen: barriers and waits that are left out, weakened and moved at run time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

namespace fagen::emulator::mutationsTest {
namespace {

const std::string kFile = "mutations.cu";
constexpr size_t kThreads = 64;

/// The kinds of all findings in `count` steps.
std::string kindsOf(const std::vector<Mutation> &mutations, int count, const std::string &symbol = "steps") {
  const std::vector<float> in(kThreads, 1.0f);
  std::vector<float> out(kThreads);
  const Report report = launch({.file = kFile,
                                .symbol = symbol,
                                .threads = kThreads,
                                .sharedBytes = 12 * kThreads,
                                .options = {.mutations = mutations},
                                .count = count},
                               in, out);
  std::string kinds;
  for (const Finding &finding : report.findings)
    if (kinds.find(finding.kind) == std::string::npos)
      kinds += (kinds.empty() ? "" : " ") + finding.kind;
  return kinds;
}

Mutation mutate(Mutation::Action action, const std::string &mark, unsigned pending = 0) {
  return {.action = action,
          .line = lineOf(kFile, mark),
          .call = mark == "wait" ? Mutation::CopyWait : Mutation::CtaBarrier,
          .pending = pending};
}

Mutation move(const std::string &mark, const std::string &over, bool later) {
  Mutation mutation = mutate(Mutation::Move, mark);
  mutation.target = lineOf(kFile, over);
  mutation.later = later;
  return mutation;
}

bool finds(const std::string &kind, const std::vector<Mutation> &mutations, int count) {
  return kindsOf(mutations, count).find(kind) != std::string::npos;
}

TEST(Mutations, NoneChangesNothing) { EXPECT_EQ(kindsOf({}, 4), ""); }

TEST(Mutations, Disabled) {
  EXPECT_TRUE(finds("race", {mutate(Mutation::Disable, "barrier")}, 1));
  EXPECT_EQ(kindsOf({mutate(Mutation::Disable, "end")}, 1), "");
  EXPECT_TRUE(finds("race", {mutate(Mutation::Disable, "end")}, 2));
  EXPECT_TRUE(finds("unfinished-copy", {mutate(Mutation::Disable, "wait")}, 1));
}

TEST(Mutations, Weakened) {
  EXPECT_TRUE(finds("race", {mutate(Mutation::Weaken, "barrier")}, 1)); // reaches no other warp
  EXPECT_TRUE(finds("unfinished-copy", {mutate(Mutation::Weaken, "wait", 1)}, 1));
  EXPECT_EQ(kindsOf({mutate(Mutation::Weaken, "wait", 0)}, 4), "");
}

TEST(Mutations, MovedBefore) {
  EXPECT_EQ(kindsOf({move("barrier", "write", false)}, 1), ""); // nothing is written yet: it stays where it is
  EXPECT_TRUE(finds("race", {move("barrier", "write", false)}, 2));
  EXPECT_EQ(kindsOf({move("end", "read_written", false)}, 3), "");
  EXPECT_TRUE(finds("race", {move("end", "read", false)}, 2));
}

TEST(Mutations, MovedBehind) {
  EXPECT_TRUE(finds("race", {move("barrier", "read", true)}, 1));
  EXPECT_EQ(kindsOf({move("wait", "write", true)}, 4), ""); // after nothing in even steps, yet before the barrier
  EXPECT_TRUE(finds("race", {move("wait", "barrier", true)}, 1));
}

TEST(Mutations, TwoAtOnce) {
  EXPECT_EQ(kindsOf({mutate(Mutation::Weaken, "wait", 0), mutate(Mutation::Disable, "end")}, 1), "");
  EXPECT_TRUE(finds("race", {mutate(Mutation::Weaken, "wait", 0), mutate(Mutation::Disable, "barrier")}, 1));
}

Mutation named(Mutation::Action action, const std::string &mark, unsigned barrier, bool waits) {
  return {.action = action,
          .line = lineOf(kFile, mark),
          .call = waits ? Mutation::NamedBarrier : Mutation::NamedBarrierArrive,
          .barrier = barrier,
          .threads = kThreads};
}

Mutation moveNamed(const std::string &mark, unsigned barrier, bool waits, const std::string &over, bool later) {
  Mutation mutation = named(Mutation::Move, mark, barrier, waits);
  mutation.target = lineOf(kFile, over);
  mutation.later = later;
  return mutation;
}

std::string kindsOfHandOver(const Mutation &mutation, int count = 3) { return kindsOf({mutation}, count, "hand_over"); }

TEST(Mutations, NamedBarrierDisabledAndWeakened) {
  EXPECT_EQ(kindsOf({}, 3, "hand_over"), "");
  EXPECT_EQ(kindsOfHandOver(named(Mutation::Disable, "meet", 3, true)), "never-written race");
  EXPECT_EQ(kindsOfHandOver(named(Mutation::Weaken, "meet", 3, true)), "never-written race"); // reaches no other warp
  EXPECT_EQ(kindsOfHandOver(named(Mutation::Disable, "full", 1, false)), "deadlock");
  EXPECT_EQ(kindsOfHandOver(named(Mutation::Weaken, "full", 1, false)), "deadlock");
}

TEST(Mutations, NamedBarrierMoved) {
  EXPECT_EQ(kindsOfHandOver(moveNamed("meet", 3, true, "give", false)), "never-written race");
  EXPECT_EQ(kindsOfHandOver(moveNamed("meet", 3, true, "get", true)), "never-written race");
  EXPECT_EQ(kindsOfHandOver(moveNamed("wait_full", 1, true, "take", true)), "race");
  EXPECT_EQ(kindsOfHandOver(moveNamed("full", 1, false, "fill", false)), "race"); // says so before it writes
  EXPECT_EQ(kindsOfHandOver(moveNamed("empty", 2, false, "take", false)), "race");
  EXPECT_EQ(kindsOfHandOver(moveNamed("full", 1, false, "aside", true)), ""); // says so a little later
  EXPECT_EQ(kindsOfHandOver(moveNamed("wait_empty", 2, true, "aside", false)), "");
}

} // namespace
} // namespace fagen::emulator::mutationsTest
