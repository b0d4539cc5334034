// fagen: named barriers order what they should, and nothing else.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

#include <set>

namespace fagen::emulator::barriersTest {
namespace {

const std::string kFile = "barriers.cu";

struct Outcome {
  Report report;
  std::vector<float> out;
};

Outcome run(const std::string &symbol, int count = 0, uint64_t seed = 0, unsigned threads = 64) {
  const std::vector<float> in(1);
  Outcome outcome;
  outcome.out.resize(threads);
  outcome.report = launch({.file = kFile,
                           .symbol = symbol,
                           .threads = threads,
                           .sharedBytes = 4 * threads,
                           .options = {.seed = seed},
                           .count = count},
                          in, outcome.out);
  return outcome;
}

TEST(NamedBarriers, HoldTheWarpsThatShareThem) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Outcome outcome = run("both", 0, seed, 128);
    ASSERT_TRUE(outcome.report.ok) << text(outcome.report);
    for (int t = 0; t < 128; ++t) // an even number of exchanges
      EXPECT_EQ(outcome.out[t], t + (t < 64 ? 4 : 6));
  }
}

TEST(NamedBarriers, ArrivingTellsThoseWhoWait) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Outcome outcome = run("hand_over", 0, seed);
    ASSERT_TRUE(outcome.report.ok) << text(outcome.report);
    EXPECT_EQ(outcome.out[40], 10.0f);
  }
}

// Without the way back warp 0 either comes again too early, or overwrites what was not read yet.
TEST(NamedBarriers, ArrivingTwiceIsFound) {
  std::set<std::string> kinds;
  for (uint64_t seed = 0; seed < 8; ++seed)
    for (const Finding &finding : run("hand_over", 1, seed).report.findings)
      kinds.insert(finding.kind);
  EXPECT_TRUE(kinds.contains("barrier-mismatch") || kinds.contains("race"));
}

/// In every order: a race, of these lines where a second one is given.
void expectRace(const std::string &symbol, int count, const std::string &other = "") {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Report report = run(symbol, count, seed).report;
    ASSERT_FALSE(report.findings.empty()) << symbol << ", seed " << seed;
    EXPECT_EQ(report.findings[0].kind, "race") << text(report);
    if (other.empty())
      continue;
    EXPECT_EQ(std::set({report.findings[0].line, report.findings[0].otherLine}),
              std::set({lineOf(kFile, symbol), lineOf(kFile, other)}))
        << text(report);
  }
}

TEST(NamedBarriers, ArrivingOrdersNothingForTheOneThatArrives) {
  expectRace("arrive_then_read", 0);
  expectRace("arrive_then_read", 1);
  expectRace("write_behind", 0, "write_behind first");
  expectRace("read_around", 0, "read_around first");
}

TEST(NamedBarriers, NumbersThatDoNotFitAreNamed) {
  const std::pair<const char *, const char *> kWrong[] = {
      {"number", "named barriers are 1 to 15, there is no 16"},
      {"threads", "40 threads are not 1 to 2 whole warps"},
      {"too many", "96 threads are not 1 to 2 whole warps"},
      {"other", "it expects 32 threads at barrier 1, those who came before 64"},
      {"twice", "it came to barrier 1 before, and only 32 of 64 threads did since"},
      {"lanes", "its lanes give different numbers"},
  };
  for (int i = 0; i < 6; ++i) {
    const Report report = run("wrong", i).report;
    expectOnly(report, "barrier-mismatch", kFile, kWrong[i].first);
    EXPECT_NE(report.findings[0].message.find(kWrong[i].second), std::string::npos) << text(report);
  }
}

TEST(NamedBarriers, NobodyElseComes) {
  const Report report = run("wrong", 6).report;
  expectOnly(report, "deadlock", kFile, "alone");
  EXPECT_NE(report.findings[0].message.find("warp 0: named_barrier 3 at barriers.cu:"), std::string::npos);
  EXPECT_NE(report.findings[0].message.find("where 32 of 64 threads are"), std::string::npos) << text(report);
}

} // namespace
} // namespace fagen::emulator::barriersTest
