// fagen: collectives and barriers, and what is reported when threads do not meet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

#include <cstring>

namespace fagen::emulator::warpTest {
namespace {

const std::string kFile = "warp.cu";
const std::vector<unsigned> kNothing(1);

KernelRun runOf(const std::string &symbol, unsigned threads, int count, uint64_t seed = 0) {
  return {.file = kFile,
          .symbol = symbol,
          .threads = threads,
          .sharedBytes = 512,
          .options = {.seed = seed, .races = false},
          .count = count};
}

TEST(Warp, ShuffleXor) {
  for (const int mask : {1, 2, 4, 8, 16, 31}) {
    std::vector<float> out(64);
    EXPECT_TRUE(launch(runOf("shuffle", 64, mask), kNothing, out).ok);
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(out[i], static_cast<float>(i ^ mask));
  }
}

TEST(Warp, BarrierOrdersWarps) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    std::vector<float> out(128);
    const Report report = launch(runOf("exchange", 128, 1, seed), kNothing, out);
    EXPECT_TRUE(report.ok) << text(report);
    for (int i = 0; i < 128; ++i)
      ASSERT_EQ(out[i], static_cast<float>((i + 32) % 128));
  }
}

TEST(Warp, MissingBarrierIsFound) {
  std::vector<float> out(128);
  expectOnly(launch(runOf("exchange", 128, 0), kNothing, out), "never-written", kFile, "exchange");
}

TEST(Warp, MissingWarpBarrierIsFound) {
  std::vector<float> out(32);
  EXPECT_TRUE(launch(runOf("warp_exchange", 32, 1), kNothing, out).ok);
  expectOnly(launch(runOf("warp_exchange", 32, 0), kNothing, out), "never-written", kFile, "warp_exchange");
}

/// Without their barrier these show which thread came first.
class Order : public testing::TestWithParam<std::pair<const char *, unsigned>> {};

TEST_P(Order, IsDrawnFromTheSeed) {
  const auto [symbol, threads] = GetParam();
  std::vector<float> natural(threads);
  launch(runOf(symbol, threads, 0), kNothing, natural);
  bool differs = false;
  for (uint64_t seed = 1; seed < 8; ++seed) {
    std::vector<float> out(threads), again(threads);
    launch(runOf(symbol, threads, 0, seed), kNothing, out);
    launch(runOf(symbol, threads, 0, seed), kNothing, again);
    EXPECT_EQ(0, std::memcmp(out.data(), again.data(), 4 * threads)) << "a seed stands for one order";
    differs |= std::memcmp(out.data(), natural.data(), 4 * threads) != 0;
  }
  EXPECT_TRUE(differs);
}

INSTANTIATE_TEST_SUITE_P(Warps, Order, testing::Values(std::pair{"exchange", 128u}));
INSTANTIATE_TEST_SUITE_P(Lanes, Order, testing::Values(std::pair{"warp_exchange", 32u}));

TEST(Warp, LaneMismatch) {
  std::vector<unsigned> out(1);
  const Report report = launch(runOf("mismatch", 32, 5), kNothing, out);
  expectOnly(report, "lane-mismatch", kFile, "mismatch");
  EXPECT_EQ(report.findings[0].message,
            "thread 5 (warp 0 lane 5) of CTA 0 comes to shuffle_xor, but other lanes of its "
            "warp wait in ldmatrix at warp.cu:" +
                std::to_string(lineOf(kFile, "mismatch") - 2));
}

TEST(Warp, MismatchOfPlaceOrOfKindAlone) {
  std::vector<float> out(1);
  expectOnly(launch(runOf("other_line", 32, 5), kNothing, out), "lane-mismatch", kFile, "other_line");
  EXPECT_TRUE(launch(runOf("other_line", 32, 32), kNothing, out).ok);
  expectOnly(launch(runOf("same_line", 32, 5), kNothing, out), "lane-mismatch", kFile, "same_line");
  EXPECT_TRUE(launch(runOf("same_line", 32, 32), kNothing, out).ok);
}

TEST(Warp, LanesThatReturned) {
  std::vector<float> out(1);
  expectOnly(launch(runOf("exited", 32, 5), kNothing, out), "exited-lane", kFile, "exited");
  expectOnly(launch(runOf("exited", 40, 32), kNothing, out), "exited-lane", kFile, "exited");
}

TEST(Warp, ReturnedThreadsLeaveTheBarriersCount) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<float> out(64);
    const Report report = launch(runOf("early_return", 128, 0, seed), kNothing, out);
    EXPECT_TRUE(report.ok) << text(report);
    EXPECT_EQ(out, std::vector<float>(64, 1.0f));
  }
}

TEST(Warp, DeadlockNamesWhoWaitsWhere) {
  std::vector<float> out(1);
  const Report report = launch(runOf("deadlock", 128, 0), kNothing, out);
  ASSERT_NO_FATAL_FAILURE(expectOnly(report, "deadlock", kFile, "half_warp"));
  const int half = lineOf(kFile, "half_warp"), barrier = lineOf(kFile, "cta_barrier");
  const auto expected = [&](const std::string &opOfHalf, const std::string &opOfBarrier) {
    const std::string atBarrier =
        "cta_barrier at warp.cu:" + std::to_string(barrier) + opOfBarrier + ", where 80 of 96 threads are\n";
    return "CTA 0: nobody can go on; 96 of 128 threads wait\n"
           "  warp 0 lanes 0-15: warp_barrier at warp.cu:" +
           std::to_string(half) + opOfHalf + ", which needs all 32 lanes\n  warp 0 lanes 16-31: " + atBarrier +
           "  warps 1-2: " + atBarrier + "  warp 3: returned";
  };
  EXPECT_EQ(report.findings[0].message, expected("", ""));
  EXPECT_EQ(report.findings[0].thread, 0);
  EXPECT_EQ(report.findings[0].otherLine, barrier);
  EXPECT_EQ(report.findings[0].otherThread, 16);

  KernelRun told = runOf("deadlock", 128, 0);
  told.lines = {{half, "barrier@3", "a.fa:7"}, {barrier, "barrier@9", ""}};
  const Finding finding = launch(told, kNothing, out).findings.at(0);
  EXPECT_EQ(finding.message, expected(" (barrier@3 of a.fa:7)", " (barrier@9)"));
  EXPECT_EQ(finding.op + finding.spec + finding.otherOp, "barrier@3a.fa:7barrier@9");
}

TEST(Warp, LanesOfAWarpAtDifferentBarriersOfTheCta) {
  std::vector<float> out(1);
  const Report report = launch(runOf("two_barriers", 64, 7), kNothing, out);
  ASSERT_NO_FATAL_FAILURE(expectOnly(report, "lane-mismatch", kFile, "other_barrier"));
  EXPECT_EQ(report.findings[0].thread, 7);
  EXPECT_EQ(report.findings[0].otherLine, lineOf(kFile, "one_barrier"));
  EXPECT_TRUE(launch(runOf("two_barriers", 64, 32), kNothing, out).ok); // whole warps may
}

TEST(Warp, EndlessKernelIsStopped) {
  std::vector<float> out(1);
  KernelRun run = runOf("endless", 32, 0);
  run.options.maxInstructions = 10000;
  expectOnly(launch(run, kNothing, out), "instruction-limit", kFile, "endless");
}

TEST(Warp, ManyBarriers) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<float> out(128, 1.0f);
    EXPECT_TRUE(launch(runOf("rounds", 128, 200, seed), kNothing, out).ok);
    EXPECT_EQ(out, std::vector<float>(128, 0.0f));
  }
}

} // namespace
} // namespace fagen::emulator::warpTest
