// fagen: phases of barriers in shared memory that complete before a thread that waits has seen the one before.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

#include "emulator/memory/WaitClocks.h"

#include <algorithm>

namespace fagen::emulator::phasesTest {
namespace {

const std::string kFile = "phases.cu";
constexpr uint64_t kSeeds = 12;

Report run(const std::string &symbol, int wrong = 0, uint64_t seed = 0, unsigned threads = 64) {
  std::vector<float> in(1), out(1);
  return launch({.file = kFile,
                 .symbol = symbol,
                 .threads = threads,
                 .sharedBytes = 64,
                 .options = {.seed = seed},
                 .count = wrong},
                in, out);
}

const Finding *find(const Report &report, const std::string &kind, const std::string &mark) {
  const auto found = std::find_if(report.findings.begin(), report.findings.end(), [&](const Finding &finding) {
    return finding.kind == kind && finding.line == lineOf(kFile, mark);
  });
  return found == report.findings.end() ? nullptr : &*found;
}

TEST(Phases, WaitsThatAreAcknowledged) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_TRUE(run("hand_over", 0, seed).ok) << text(run("hand_over", 0, seed));
}

/// In every order of the threads, whether or not the run comes to its end.
void expectUnseen(int wrong, const std::string &mark) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Report report = run("hand_over", wrong, seed);
    EXPECT_TRUE(find(report, "phase-unseen", mark)) << wrong << " seed " << seed << "\n" << text(report);
  }
}

TEST(Phases, NobodyWaitsForTheAnswer) { expectUnseen(1, "seen"); }
TEST(Phases, AnAnswerTooEarly) { expectUnseen(2, "heard"); }
TEST(Phases, OneLaneAnswersForOthers) { expectUnseen(3, "seen"); }

TEST(Phases, FindingNamesBothSides) {
  const Report report = run("hand_over", 1);
  const Finding *finding = find(report, "phase-unseen", "seen");
  ASSERT_TRUE(finding) << text(report);
  EXPECT_EQ(finding->otherLine, lineOf(kFile, "complete"));
  EXPECT_LT(finding->thread, 32);
  EXPECT_EQ(finding->otherThread, 32);
  EXPECT_NE(finding->message.find("waits for phase "), std::string::npos) << finding->message;
  EXPECT_NE(finding->message.find("thread 32 completes it at phases.cu:"), std::string::npos) << finding->message;
}

/// Who resumes late is told of the phase that it waited for, and of nothing after it.
TEST(Phases, AWaitTellsOfItsOwnPhase) {
  const Report report = run("latest", 0, 0, 96);
  EXPECT_TRUE(find(report, "race", "read")) << text(report);
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_TRUE(find(run("latest", 0, seed, 96), "phase-unseen", "first"));
}

TEST(WaitClocks, LanesLearnFromEachOtherWhenTheyMeet) {
  WaitClocks waits;
  waits.refine(64);
  EXPECT_EQ(waits.pass(3), 1u);
  EXPECT_EQ(waits.pass(3), 2u);
  WaitClocks::Row before, after;
  waits.tell(0, before);
  EXPECT_FALSE(WaitClocks::tells(before, 3, 1));
  waits.meet(0);
  waits.tell(0, after);
  EXPECT_TRUE(WaitClocks::tells(after, 3, 2));
  EXPECT_FALSE(WaitClocks::tells(after, 3, 3));
}

TEST(WaitClocks, PhasesAreToldOf) {
  WaitClocks waits;
  waits.refine(64);
  const unsigned barrier = waits.addBarrier();
  WaitClocks::Row row;
  WaitClocks::complete(row, barrier, 2);
  waits.learn(40, row);
  EXPECT_EQ(waits.phases(40, barrier), 2u);
  EXPECT_EQ(waits.phases(41, barrier), 0u);
  waits.meet(1);
  EXPECT_EQ(waits.phases(41, barrier), 2u);
  EXPECT_EQ(waits.phases(0, barrier), 0u);
}

} // namespace
} // namespace fagen::emulator::phasesTest
