// fagen: barriers in shared memory, bulk copies and products of warp groups: what is right, and each finding.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Boxes.h"
#include "../Kernels.h"

#include <cmath>
#include <set>

namespace fagen::emulator::hopperTest {
namespace {

const std::string kFile = "hopper.cu";
constexpr unsigned kRows = 64, kColumns = kRowElements, kTensorRows = 250;

struct HopperArguments {
  device::TensorMap in, out;
  void *result;
  int wrong;
};

struct HopperRun {
  std::string symbol;
  int wrong = 0;
  unsigned threads = 128;
  Options options{};
  unsigned columns = kColumns; ///< of the tensor
};

struct Outcome {
  Report report;
  std::vector<uint16_t> in, out;
  std::vector<float> result;
};

/// Elements of `in` are small: 0 to 7, as f16 or, where the kernel only adds bits, as integers.
Outcome run(const HopperRun &run, bool isHalf = false) {
  static constexpr uint16_t kHalves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
  Outcome outcome;
  outcome.in.resize(size_t(kTensorRows) * kColumns);
  for (size_t i = 0; i < outcome.in.size(); ++i) {
    const auto value = static_cast<uint16_t>((i * 2654435761u >> 7) % 8);
    outcome.in[i] = isHalf ? kHalves[value] : value;
  }
  outcome.out.resize(size_t(kTensorRows) * kColumns);
  outcome.result.resize(2 * kRows * kColumns);
  Launch launch = {run.symbol,
                   1,
                   run.threads,
                   3 * kRows * kColumns * 2 + 1024,
                   {{outcome.in.data(), outcome.in.size() * 2, false, "in"},
                    {outcome.out.data(), outcome.out.size() * 2, true, "out"},
                    {outcome.result.data(), outcome.result.size() * 4, true, "result"}}};
  launch.roles = {{"math", 0, 4}, {"load", 4, 1}};
  launch.names = {{"full", 24576, 8, 2}, {"empty", 24592, 8, 2}};
  const HopperArguments arguments = {mapOf(outcome.in.data(), kTensorRows, run.columns, kRows),
                                     mapOf(outcome.out.data(), 80, run.columns, kRows), outcome.result.data(),
                                     run.wrong};
  outcome.report = kernels(kFile).launch(launch, &arguments, sizeof(arguments), run.options);
  return outcome;
}

constexpr Options::Landing kLandings[] = {Options::Latest, Options::Earliest, Options::Random};

/// In every order and at every moment of landing: a finding of this kind at the marked line.
void expectFinding(HopperRun hopper, const std::string &kind, const std::string &mark, const std::string &part = "") {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    hopper.options.seed = seed;
    hopper.options.landing = kLandings[seed % 3];
    const Report report = run(hopper).report;
    bool found = false;
    for (const Finding &finding : report.findings)
      found |= finding.kind == kind && finding.line == lineOf(kFile, mark) &&
               finding.message.find(part) != std::string::npos;
    EXPECT_TRUE(found) << hopper.symbol << " " << hopper.wrong << " seed " << seed << ": no " << kind << " at [" << mark
                       << "] with '" << part << "' in\n"
                       << text(report);
  }
}

TEST(Hopper, PipelineAddsTiles) {
  for (unsigned columns : {64u, 40u})
    for (uint64_t seed = 0; seed < 9; ++seed) {
      const Outcome outcome = run({.symbol = "pipeline",
                                   .threads = 160,
                                   .options = {.landing = kLandings[seed % 3], .seed = seed},
                                   .columns = columns});
      ASSERT_TRUE(outcome.report.ok) << text(outcome.report);
      for (unsigned row = 0; row < kRows; ++row)
        for (unsigned column = 0; column < kColumns; ++column) {
          float sum = 0;
          for (unsigned r = row; r < kTensorRows; r += kRows)
            sum += column < columns ? outcome.in[r * kColumns + column] : 0;
          ASSERT_EQ(outcome.result[row * kColumns + column], sum) << row << " " << column;
        }
    }
}

HopperRun pipeline(int wrong) { return {.symbol = "pipeline", .wrong = wrong, .threads = 160}; }

TEST(Hopper, BarrierInitNeedsItsFence) { expectFinding(pipeline(1), "missing-fence", "load", "mbarrier_init_fence"); }
TEST(Hopper, SlotIsNotFree) { expectFinding(pipeline(3), "race", "load"); }
TEST(Hopper, TooFewBytesHang) { expectFinding(pipeline(4), "deadlock", "full", "and -16 bytes"); }
TEST(Hopper, TooManyBytesHang) { expectFinding(pipeline(5), "deadlock", "full", "and 16 bytes"); }

/// A barrier that nobody made, or that was made without telling: whichever comes first.
TEST(Hopper, BarrierIsNotKnown) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    HopperRun hopper = pipeline(2);
    hopper.options.seed = seed;
    std::set<std::string> kinds;
    for (const Finding &finding : run(hopper).report.findings)
      kinds.insert(finding.kind);
    EXPECT_TRUE(kinds.contains("race") || kinds.contains("mbarrier"));
  }
}

TEST(Hopper, DataIsNotWaitedFor) {
  for (int wrong : {6, 7})
    for (uint64_t seed = 0; seed < 6; ++seed) {
      HopperRun hopper = pipeline(wrong);
      hopper.options = {.landing = kLandings[seed % 3], .seed = seed};
      std::set<std::string> kinds;
      for (const Finding &finding : run(hopper).report.findings)
        if (finding.line == lineOf(kFile, "use"))
          kinds.insert(finding.kind);
      EXPECT_TRUE(kinds.contains("race") || kinds.contains("unfinished-copy") || kinds.contains("never-written"));
    }
}

TEST(Hopper, DeadlockNamesRoleAndPhase) {
  const Report report = run(pipeline(8)).report;
  ASSERT_FALSE(report.ok);
  const std::string message = text(report);
  EXPECT_NE(message.find("deadlock"), std::string::npos) << message;
  EXPECT_NE(message.find("warp 4 lane 0: load: mbarrier_wait for phase 0 of empty[0] at hopper.cu:"), std::string::npos)
      << message;
  EXPECT_NE(message.find("which lacks 1 of 128 arrivals"), std::string::npos) << message;
  EXPECT_NE(message.find("math: mbarrier_wait for phase 1 of full[0]"), std::string::npos) << message;
}

TEST(Hopper, StoreClips) {
  const Outcome outcome = run({.symbol = "store", .columns = 56});
  ASSERT_TRUE(outcome.report.ok) << text(outcome.report);
  for (unsigned row = 0; row < kTensorRows; ++row)
    for (unsigned column = 0; column < kColumns; ++column)
      ASSERT_EQ(outcome.out[row * kColumns + column],
                row >= 32 && row < 80 && column < 56 ? (row - 32) * kColumns + column : 0)
          << row << " " << column;
}

TEST(Hopper, StoreNeedsFenceBarrierAndWait) {
  expectFinding({.symbol = "store", .wrong = 1}, "missing-fence", "store", "fence_proxy_async");
  for (uint64_t seed = 0; seed < 6; ++seed) // of the writes before it, or of those still to come
    EXPECT_NE(text(run({.symbol = "store", .wrong = 2, .options = {.seed = seed}}).report).find(": race: "),
              std::string::npos);
  expectFinding({.symbol = "store", .wrong = 3}, "copy-never-waited", "store");
  expectFinding({.symbol = "store", .wrong = 4}, "race", "overwrite", "WAR");
  expectFinding({.symbol = "store", .wrong = 5}, "race", "overwrite", "WAR");
}

/// On the GPU the one is an illegal instruction, the other undefined.
TEST(Hopper, BoxesBeginAtWholeChunksOfTheTensor) {
  expectOnly(run({.symbol = "store", .wrong = 6}).report, "misaligned", kFile, "store");
  expectOnly(run({.symbol = "store", .wrong = 7}).report, "out-of-bounds", kFile, "store");
}

float halfOf(uint16_t bits) {
  return bits == 0 ? 0.0f : std::ldexp(1.0f + static_cast<float>(bits & 0x3ff) / 1024.0f, (bits >> 10) - 15);
}

TEST(Hopper, ProductsFindTheirOperands) {
  for (const char *symbol : {"product_shared", "product_registers"})
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const Outcome outcome = run({.symbol = symbol, .options = {.landing = kLandings[seed % 3], .seed = seed}}, true);
      ASSERT_TRUE(outcome.report.ok) << text(outcome.report);
      const auto a = [&](unsigned row, unsigned column) { return halfOf(outcome.in[row * kColumns + column]); };
      const auto b = [&](unsigned row, unsigned column) { return a(row + kRows, column); };
      for (unsigned row = 0; row < 64; ++row)
        for (unsigned column = 0; column < 64; ++column) {
          float abt = 0, ab = 0;
          for (unsigned k = 0; k < 64; ++k) {
            abt += a(row, k) * b(column, k);
            ab += a(row, k) * b(k, column);
          }
          ASSERT_EQ(outcome.result[row * 64 + column], abt) << row << " " << column;
          ASSERT_EQ(outcome.result[4096 + row * 64 + column], ab) << row << " " << column;
        }
    }
}

/// The phase completes with the first of two copies.
TEST(Hopper, PhaseCompletesTooEarly) {
  const Report report = run({.symbol = "product_shared", .wrong = 8}).report;
  ASSERT_FALSE(report.ok);
  EXPECT_NE(text(report).find("byte-count: phase 0 of full[0] completed while this copy was on its way"),
            std::string::npos)
      << text(report);
}

TEST(Hopper, ProductsNeedTheirData) {
  for (const char *symbol : {"product_shared", "product_registers"}) {
    const std::string mark = symbol == std::string("product_shared") ? "product" : "from registers";
    const Report report = run({.symbol = symbol, .wrong = 1}).report;
    EXPECT_FALSE(report.ok);
    expectFinding({.symbol = symbol, .wrong = 2}, "missing-fence", mark, "called no wgmma_fence since");
    expectFinding({.symbol = symbol, .wrong = 5}, "race", "too early", "WAR");
    expectFinding({.symbol = symbol, .wrong = 7}, "missing-fence", "again", "called no wgmma_fence since");
  }
}

TEST(Hopper, RegistersInFlightAreLeftAlone) {
  HopperRun hopper = {.symbol = "product_shared", .wrong = 3};
  const Report accumulators = run(hopper).report;
  expectOnly(accumulators, "registers-in-flight", kFile, "wait");
  hopper = {.symbol = "product_registers", .wrong = 4};
  EXPECT_EQ(run(hopper).report.findings.at(0).kind, "registers-in-flight");
  hopper = {.symbol = "product_shared", .wrong = 6};
  const Report unwaited = run(hopper).report;
  ASSERT_FALSE(unwaited.ok);
  EXPECT_EQ(unwaited.findings[0].kind, "uninitialised") << text(unwaited);
  EXPECT_EQ(unwaited.findings[0].line, lineOf(kFile, "result"));
}

TEST(Hopper, StoredOperand) {
  const Outcome outcome = run({.symbol = "product_of_stored"});
  ASSERT_TRUE(outcome.report.ok) << text(outcome.report);
  for (unsigned row = 0; row < 64; ++row)
    for (unsigned column = 0; column < 64; ++column)
      ASSERT_EQ(outcome.result[row * 64 + column], row == column ? 1.0f : 0.0f);
  expectFinding({.symbol = "product_of_stored", .wrong = 1}, "missing-fence", "stored", "fence_proxy_async");
  expectFinding({.symbol = "product_of_stored", .wrong = 2}, "race", "stored", "RAW");
}

TEST(Hopper, RegistersMoveBetweenGroups) {
  HopperRun hopper = {.symbol = "move_registers", .threads = 384};
  hopper.options.seed = 3;
  EXPECT_TRUE(run(hopper).report.ok) << text(run(hopper).report);
  hopper.wrong = 1;
  const std::string hang = text(run(hopper).report);
  EXPECT_NE(hang.find("deadlock"), std::string::npos) << hang;
  EXPECT_NE(hang.find("setmaxnreg_inc<240> at hopper.cu:"), std::string::npos) << hang;
  EXPECT_NE(hang.find("needs 72 more registers a thread; 0 are free for a warp"), std::string::npos) << hang;
  hopper.wrong = 2;
  expectOnly(run(hopper).report, "setmaxnreg", kFile, "down");
}

} // namespace
} // namespace fagen::emulator::hopperTest
