// fagen: CTAs of a cluster: copies to all of them, arrivals in each other, their barrier, and each finding.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Boxes.h"
#include "../Kernels.h"

#include <set>

namespace fagen::emulator::clustersTest {
namespace {

const std::string kFile = "clusters.cu";
constexpr unsigned kRows = 16, kColumns = kRowElements, kSteps = 4, kShare = 8;

struct ClusterArguments {
  device::TensorMap in;
  void *result;
  int wrong;
};

constexpr Options::Landing kLandings[] = {Options::Latest, Options::Earliest, Options::Random};

struct Outcome {
  Report report;
  std::vector<uint16_t> in;
  std::vector<float> result;
};

struct ClusterRun {
  const char *symbol = "pair";
  int wrong = 0;
  uint64_t seed = 0;
  unsigned grid = 4, cluster = 2, threads = 160;
};

/// In orders and moments of landing that follow from the seed.
Outcome run(const ClusterRun &run) {
  Outcome outcome;
  outcome.in.resize(size_t(kRows) * kSteps * kColumns);
  for (size_t i = 0; i < outcome.in.size(); ++i)
    outcome.in[i] = static_cast<uint16_t>((i * 2654435761u >> 7) % 8);
  outcome.result.resize(size_t(4) * kRows * kColumns);
  Launch launch = {run.symbol,
                   run.grid,
                   run.threads,
                   2 * kRows * kColumns * 2 + 1024,
                   {{outcome.in.data(), outcome.in.size() * 2, false, "in"},
                    {outcome.result.data(), outcome.result.size() * 4, true, "result"}}};
  launch.roles = {{"math", 0, 4}, {"load", 4, 1}};
  launch.names = {{"full", 4096, 8, 2}, {"empty", 4112, 8, 2}};
  launch.cluster = run.cluster;
  const ClusterArguments arguments = {mapOf(outcome.in.data(), kRows * kSteps, kColumns, kShare), outcome.result.data(),
                                      run.wrong};
  Options options;
  options.seed = run.seed;
  options.landing = kLandings[run.seed % 3];
  outcome.report = kernels(kFile).launch(launch, &arguments, sizeof(arguments), options);
  return outcome;
}

/// In every order: a finding of one of these kinds at the marked line, with these words.
void expectFinding(int wrong, const std::set<std::string> &kinds, const std::string &mark, const std::string &part = "",
                   const char *symbol = "pair") {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Report report = run({.symbol = symbol, .wrong = wrong, .seed = seed}).report;
    bool found = false;
    for (const Finding &finding : report.findings)
      found |= kinds.contains(finding.kind) && finding.line == lineOf(kFile, mark) &&
               finding.message.find(part) != std::string::npos;
    EXPECT_TRUE(found) << wrong << " seed " << seed << ": nothing at [" << mark << "] with '" << part << "' in\n"
                       << text(report);
  }
}

TEST(Clusters, EachBringsHalfToBoth) {
  for (uint64_t seed = 0; seed < 9; ++seed) {
    const Outcome outcome = run({.seed = seed});
    ASSERT_TRUE(outcome.report.ok) << text(outcome.report);
    for (unsigned cta = 0; cta < 4; ++cta)
      for (unsigned i = 0; i < kRows * kColumns; ++i) {
        float sum = 0;
        for (unsigned step = 0; step < kSteps; ++step)
          sum += outcome.in[step * kRows * kColumns + i];
        ASSERT_EQ(outcome.result[cta * kRows * kColumns + i], sum) << cta << " " << i;
      }
  }
}

TEST(Clusters, EachHasItsMemoryAndItsNumbers) {
  const Outcome outcome = run({.symbol = "apart", .threads = 32});
  ASSERT_TRUE(outcome.report.ok) << text(outcome.report);
  for (unsigned cta = 0; cta < 4; ++cta)
    EXPECT_EQ(outcome.result[cta * 64], cta % 2 + 16 * 2 + 256 * cta);
}

/// Nobody knows that the other CTA has begun: its mbarriers are not there, or nothing says so.
TEST(Clusters, TheOtherHasNotBegun) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    std::set<std::string> kinds;
    for (const Finding &finding : run({.wrong = 1, .seed = seed}).report.findings)
      kinds.insert(finding.kind);
    EXPECT_TRUE(kinds.contains("race") || kinds.contains("mbarrier")) << seed;
  }
}

TEST(Clusters, DeadlockNamesRolePhaseAndCta) {
  const Report report = run({.wrong = 2}).report;
  ASSERT_FALSE(report.ok);
  const std::string message = text(report);
  EXPECT_NE(message.find("deadlock: CTAs 0 to 1: nobody can go on"), std::string::npos) << message;
  EXPECT_NE(message.find("warp 4 lane 0 of CTA 1: load: mbarrier_wait for phase 0 of empty[0] of CTA 1"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("which lacks 4 of 8 arrivals"), std::string::npos) << message;
}

/// A copy that one CTA issues writes where the other one still reads.
TEST(Clusters, RaceOfCopyAndOtherReader) {
  expectFinding(3, {"race"}, "load", "read at clusters.cu:" + std::to_string(lineOf(kFile, "use")));
}

TEST(Clusters, ArrivalBehindTheEndOfACta) {
  expectFinding(4, {"exited-cta"}, "release", "which may have ended by then: none of its threads is told of it");
}

TEST(Clusters, CtasThatThereAreNot) {
  expectFinding(5, {"multicast"}, "load", "copies to CTAs of mask 0x4; its cluster has 2");
  expectFinding(6, {"mbarrier"}, "release", "arrives in CTA 2 of its cluster, which has 2");
}

TEST(Clusters, ArrivalsAndWaitsAlternate) {
  for (int wrong : {7, 8}) {
    const Report report = run({.symbol = "apart", .wrong = wrong, .threads = 32}).report;
    expectOnly({report.ok, {report.findings.at(0)}, 0}, "barrier-mismatch", kFile, wrong == 7 ? "twice" : "alone");
  }
}

TEST(Clusters, GridsAreWholeClusters) {
  EXPECT_EQ(run({.grid = 3}).report.findings.at(0).message,
            "3 CTAs of 160 threads in clusters of 2: a grid has whole clusters, and a cluster of several CTAs at most "
            "1024 threads, whole warps");
  EXPECT_FALSE(run({.threads = 520}).report.ok);
  EXPECT_FALSE(run({.cluster = 0}).report.ok);
}

} // namespace
} // namespace fagen::emulator::clustersTest
