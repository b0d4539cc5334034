// fagen: asynchronous copies land when told to, and a missing wait is found whenever they land.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

#include <cmath>
#include <numeric>

namespace fagen::emulator::copiesTest {
namespace {

const std::string kFile = "copies.cu";
constexpr size_t kThreads = 64;
constexpr Options::Landing kLandings[] = {Options::Earliest, Options::Latest, Options::Random};

std::vector<float> numbers() {
  std::vector<float> values(2 * kThreads);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

KernelRun runOf(const std::string &symbol, Options::Landing landing, uint64_t seed = 0) {
  return {.file = kFile,
          .symbol = symbol,
          .threads = kThreads,
          .sharedBytes = 8 * kThreads,
          .options = {.landing = landing, .seed = seed}};
}

TEST(Copies, TwoGroups) {
  const std::vector<float> in = numbers();
  for (const Options::Landing landing : kLandings)
    for (uint64_t seed = 0; seed < 8; ++seed) {
      std::vector<float> out(2 * kThreads);
      const Report report = launch(runOf("two_groups", landing, seed), in, out);
      ASSERT_TRUE(report.ok) << text(report);
      for (size_t i = 0; i < 2 * kThreads; ++i)
        ASSERT_EQ(out[i], in[i / kThreads * kThreads + (i + 33) % kThreads]);
    }
}

TEST(Copies, WeakWaitIsFoundWheneverTheCopyLands) {
  const std::vector<float> in = numbers();
  for (const Options::Landing landing : kLandings) {
    std::vector<float> out(kThreads);
    const Report report = launch(runOf("weak_wait", landing), in, out);
    expectOnly(report, "unfinished-copy", kFile, "weak_wait");
    EXPECT_NE(report.findings[0].message.find("issued a copy at copies.cu:"), std::string::npos)
        << report.findings[0].message;
  }
}

TEST(Copies, WeakWaitShowsInTheDataAsTheLandingSays) {
  const std::vector<float> in = numbers();
  std::vector<float> early(kThreads), late(kThreads);
  launch(runOf("weak_wait", Options::Earliest), in, early);
  EXPECT_TRUE(std::equal(early.begin(), early.end(), in.begin()));
  launch(runOf("weak_wait", Options::Latest), in, late);
  for (const float value : late)
    EXPECT_TRUE(std::isnan(value));
  std::vector<float> drawn(kThreads);
  launch(runOf("weak_wait", Options::Random, 3), in, drawn);
  const auto landed = std::count_if(drawn.begin(), drawn.end(), [](float value) { return !std::isnan(value); });
  EXPECT_GT(landed, 0);
  EXPECT_LT(landed, static_cast<long>(kThreads));
}

TEST(Copies, WaitLeavesTheNewestGroupsOutstanding) {
  const std::vector<float> in = numbers();
  std::vector<float> out(kThreads);
  for (const Options::Landing landing : kLandings)
    expectOnly(launch(runOf("newer_group", landing), in, out), "unfinished-copy", kFile, "newer_group");
}

TEST(Copies, NeverWaited) {
  const std::vector<float> in = numbers();
  std::vector<float> out(kThreads);
  KernelRun run = runOf("late_issue", Options::Latest);
  EXPECT_TRUE(launch(run, in, out).ok); // nothing is fetched
  run.count = 1;
  expectOnly(launch(run, in, out), "copy-never-waited", kFile, "late_issue");
}

TEST(Copies, NotValidFillsWithZeroAndReadsNothing) {
  const std::vector<float> in = numbers();
  for (const Options::Landing landing : kLandings) {
    std::vector<float> out(kThreads, 5.0f);
    const Report report = launch(runOf("zero_fill", landing), in, out);
    EXPECT_TRUE(report.ok) << text(report);
    EXPECT_EQ(out, std::vector<float>(kThreads, 0.0f));
  }
}

TEST(Copies, SlotReusedWithoutBarrier) {
  const std::vector<float> in = numbers();
  std::vector<float> out(kThreads);
  for (const Options::Landing landing : kLandings) {
    KernelRun run = runOf("reused_slot", landing);
    run.count = 1;
    EXPECT_TRUE(launch(run, in, out).ok);
    run.count = 0;
    bool found = false;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      run.options.seed = seed;
      const Report report = launch(run, in, out);
      bool wrong = !report.ok;
      for (size_t i = 0; i < kThreads; ++i)
        wrong |= out[i] != in[(i + 33) % kThreads];
      found |= wrong;
    }
    EXPECT_TRUE(found);
  }
}

TEST(Copies, SourceBeyondTheEnd) {
  const std::vector<float> in = numbers();
  std::vector<float> out(kThreads);
  KernelRun run = runOf("copy_beyond", Options::Latest);
  run.count = 2;
  expectOnly(launch(run, in, out), "out-of-bounds", kFile, "copy_beyond");
  EXPECT_TRUE(std::isnan(out[0]));
}

TEST(Copies, ManyGroups) {
  const std::vector<float> in = numbers();
  for (const Options::Landing landing : kLandings) {
    std::vector<float> out(kThreads);
    KernelRun run = runOf("many_groups", landing);
    run.count = 1000;
    const Report report = launch(run, in, out);
    EXPECT_TRUE(report.ok) << text(report);
    for (size_t i = 0; i < kThreads; ++i)
      EXPECT_EQ(out[i], 500.0f * (in[i] + in[kThreads + i]));
  }
}

} // namespace
} // namespace fagen::emulator::copiesTest
