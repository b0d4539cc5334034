// fagen: races are found whatever the order in which threads run, and nothing else is called a race.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

#include <set>

namespace fagen::emulator::racesTest {
namespace {

const std::string kFile = "races.cu";
constexpr size_t kThreads = 64;

Report run(const std::string &symbol, Options options = {}, unsigned grid = 1, int count = 0) {
  const std::vector<float> in(kThreads, 1.0f);
  std::vector<float> out(2 * kThreads);
  const KernelRun run{.file = kFile,
                      .symbol = symbol,
                      .grid = grid,
                      .threads = kThreads,
                      .sharedBytes = 512,
                      .options = options,
                      .count = count};
  return launch(run, in, out);
}

/// All findings are races at the marked line, of this kind, in every order.
void expectRace(const std::string &symbol, const std::string &kind, unsigned grid = 1) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Report report = run(symbol, {.seed = seed}, grid);
    ASSERT_FALSE(report.ok) << symbol << ", seed " << seed;
    for (const Finding &finding : report.findings) {
      EXPECT_EQ(finding.kind, "race") << text(report);
      EXPECT_EQ(finding.line, lineOf(kFile, symbol)) << text(report);
      EXPECT_TRUE(finding.message.starts_with(kind)) << text(report);
    }
  }
}

bool hasRace(const Report &report) {
  for (const Finding &finding : report.findings)
    if (finding.kind == "race")
      return true;
  return false;
}

TEST(Races, NoneWhereBarriersOrder) {
  for (const char *symbol : {"ordered", "copied"})
    for (uint64_t seed = 0; seed < 8; ++seed)
      for (const Options::Landing landing : {Options::Earliest, Options::Latest, Options::Random}) {
        const Report report = run(symbol, {.landing = landing, .seed = seed});
        EXPECT_TRUE(report.ok) << text(report);
      }
}

// Which of the two accesses comes first depends on the order of threads, and with it the kind.
TEST(Races, BetweenWarps) {
  for (uint64_t seed = 0; seed < 8; ++seed)
    for (const char *symbol : {"read_after_write", "write_after_read", "write_after_write"}) {
      const Report report = run(symbol, {.seed = seed});
      ASSERT_TRUE(hasRace(report)) << symbol << ", seed " << seed;
      const int later = lineOf(kFile, symbol), first = lineOf(kFile, std::string(symbol) + " first");
      for (const Finding &finding : report.findings) {
        if (finding.kind != "race")
          continue;
        EXPECT_EQ(std::set({finding.line, finding.otherLine}), std::set({later, first})) << text(report);
        EXPECT_NE(finding.thread / 32, finding.otherThread / 32) << text(report);
      }
    }
}

TEST(Races, WithinAWarp) { expectRace("shuffled", "RAW"); }

TEST(Races, OfAllLanesWithLdmatrix) { expectRace("matrix_then_write", "WAR"); }

TEST(Races, BetweenCtas) {
  expectRace("same_output", "WAW", 2);
  EXPECT_TRUE(run("same_output").ok);
  EXPECT_TRUE(hasRace(run("others_output", {}, 2)));
}

TEST(Races, WithAnyReaderOfAnotherCta) {
  const Report report = run("read_by_all", {}, 3, 2);
  ASSERT_TRUE(hasRace(report));
  EXPECT_EQ(std::set({report.findings[0].line, report.findings[0].otherLine}),
            std::set({lineOf(kFile, "read_by_all"), lineOf(kFile, "read_by_all first")}))
      << text(report);
  EXPECT_TRUE(run("read_by_all", {}, 1, 0).ok);
}

TEST(Races, ThroughGlobalMemory) {
  EXPECT_TRUE(hasRace(run("global_exchange", {}, 1, 0)));
  EXPECT_TRUE(run("global_exchange", {}, 1, 1).ok);
}

TEST(Races, OfCopies) {
  for (const Options::Landing landing : {Options::Earliest, Options::Latest, Options::Random}) {
    EXPECT_TRUE(hasRace(run("wait_without_barrier", {.landing = landing})));
    EXPECT_TRUE(hasRace(run("copy_after_read", {.landing = landing})));
    EXPECT_FALSE(run("barrier_before_wait", {.landing = landing}).ok);
  }
}

TEST(Races, CanBeLeftOut) { EXPECT_FALSE(hasRace(run("read_after_write", {.races = false}))); }

// The message names both threads and lines; with a line map the ops and the spec's lines too.
TEST(Races, AreDescribed) {
  const int second = lineOf(kFile, "read_after_write"), first = lineOf(kFile, "read_after_write first");
  const std::vector<float> in(kThreads);
  std::vector<float> out(kThreads);
  const Arguments arguments{in.data(), out.data(), 0};
  const Launch launch{"read_after_write",
                      1,
                      kThreads,
                      512,
                      {{in.data(), 4 * kThreads, false, "in"}, {out.data(), 4 * kThreads, true, "out"}},
                      1,
                      {{first, "copy_issue@3", "k.fa:4"}, {second, "mma@7", "k.fa:5"}}};
  const Report report = kernels(kFile).launch(launch, &arguments, sizeof(arguments), {});
  for (const Finding &finding : report.findings) {
    if (finding.kind != "race" || finding.line != second)
      continue;
    EXPECT_EQ(finding.op, "mma@7");
    EXPECT_EQ(finding.spec, "k.fa:5");
    EXPECT_EQ(finding.otherOp, "copy_issue@3");
    EXPECT_EQ(finding.otherSpec, "k.fa:4");
    EXPECT_EQ(finding.message, "RAW: thread 63 (warp 1 lane 31) of CTA 0 reads shared byte 124, which thread 31 "
                               "(warp 0 lane 31) wrote at races.cu:" +
                                   std::to_string(first) +
                                   ", and nothing orders the two; this is mma@7 of k.fa:5, the other copy_issue@3 of "
                                   "k.fa:4 (the first of 32 at this place)");
    return;
  }
  FAIL() << text(report);
}

TEST(Coverage, ListsTheLinesThatRan) {
  const Report report = run("ordered", {.coverage = true});
  EXPECT_EQ(report.lines.size(), 7u);
  EXPECT_TRUE(run("ordered").lines.empty());
}

} // namespace
} // namespace fagen::emulator::racesTest
