// fagen: the check loop on a device that computes right, or wrong in one chosen way.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../FakeSet.h"
#include "FakeDevice.h"
#include "lab/check/check_report.h"

using namespace fagen::lab;

namespace {

/// Checks the fake set on one case; the criteria that failed, each once, in the order of the results.
struct Outcome {
  std::vector<std::unique_ptr<KernelSet>> sets; // the report points into them
  CheckReport report;
  std::vector<std::string> criteria;
  int runs = 0;
};
Outcome check(FakeSet &fake, Plant plant, const std::string &text) {
  Outcome outcome;
  outcome.sets.push_back(fake.load());
  FakeDevice device(plant);
  CpuReference engine;
  CheckOptions options;
  options.deviceFlag = "cpu";
  if (!text.empty())
    options.cases = {parseCase(text)};
  outcome.report = runCheck(outcome.sets, device, engine, options, [](size_t, size_t, const std::string &) {});
  outcome.runs = device.runs;
  auto note = [&](const std::vector<Failure> &failures) {
    for (const Failure &failure : failures)
      if (std::find(outcome.criteria.begin(), outcome.criteria.end(), failure.criterion) == outcome.criteria.end())
        outcome.criteria.push_back(failure.criterion);
  };
  note(outcome.report.failures);
  for (const CaseResult &result : outcome.report.results)
    note(result.measured.failures);
  EXPECT_EQ(outcome.report.passed(), outcome.criteria.empty()) << checkFailures(outcome.report, options);
  return outcome;
}

constexpr const char *kPlain = "1,2,1,9,12,16 mask=causal";
using Names = std::vector<std::string>;

TEST(Check, rightResultsPassTheSmokeSuite) {
  FakeSet fake;
  Outcome outcome = check(fake, Plant::None, "");
  EXPECT_EQ(outcome.criteria, Names{}) << checkFailures(outcome.report, CheckOptions());
  EXPECT_GT(outcome.report.results.size(), 20u);
  EXPECT_EQ(outcome.runs, static_cast<int>(outcome.report.results.size()) * 3);
  EXPECT_EQ(outcome.report.skipped, 1); // the aligned row on layout=odd
}

TEST(Check, everyLayoutPasses) {
  FakeSet fake;
  for (const char *layout : {"bhsd", "bshd", "padded", "odd", "offset", "junk"})
    EXPECT_EQ(check(fake, Plant::None, std::string("2,4,2,9,12,16 mask=causal layout=") + layout).criteria, Names{});
}

TEST(Check, wrongElement) {
  FakeSet fake;
  Outcome outcome = check(fake, Plant::WrongElement, kPlain);
  EXPECT_EQ(outcome.criteria.at(0), "error");
}
TEST(Check, unwrittenElement) {
  FakeSet fake;
  EXPECT_EQ(check(fake, Plant::Unwritten, kPlain).criteria, Names{"unwritten"});
}
TEST(Check, guardBeforeTheTensor) {
  FakeSet fake;
  EXPECT_EQ(check(fake, Plant::Guard, kPlain).criteria, Names{"guard"});
}
TEST(Check, gapBetweenRows) {
  FakeSet fake;
  EXPECT_EQ(check(fake, Plant::Gap, std::string(kPlain) + " layout=padded").criteria, Names{"guard"});
}
TEST(Check, lseOff) {
  FakeSet fake;
  EXPECT_EQ(check(fake, Plant::Lse, kPlain).criteria, Names{"lse"});
}
/// What tensor cores may lose is allowed where the manifest says that they multiply, and nowhere else.
TEST(Check, lseIsJudgedByTheKernelsInstructions) {
  FakeSet fake;
  const std::string text = "8,8,8,1,1,16 mask=causal inputs=large scale=64";
  EXPECT_EQ(check(fake, Plant::LseLoss, text).criteria, Names{"lse"});
  for (auto &row : fake.manifest["rows"])
    row["plan"]["schedule"]["mma"] = "wgmma";
  EXPECT_EQ(check(fake, Plant::LseLoss, text).criteria, Names{});
  EXPECT_EQ(check(fake, Plant::Lse, text).criteria, Names{"lse"});
}
TEST(Check, thirdRunDiffers) {
  FakeSet fake;
  EXPECT_EQ(check(fake, Plant::Nondeterminism, kPlain).criteria, Names{"determinism"});
}
TEST(Check, inputChanged) {
  FakeSet fake;
  Names criteria = check(fake, Plant::Input, kPlain).criteria;
  EXPECT_NE(std::find(criteria.begin(), criteria.end(), "input"), criteria.end());
}
TEST(Check, failedLaunch) {
  FakeSet fake;
  EXPECT_EQ(check(fake, Plant::Launch, kPlain).criteria, Names{"launch"});
}
TEST(Check, lostDeviceEndsTheCheck) {
  FakeSet fake;
  Outcome outcome = check(fake, Plant::Lost, kPlain);
  EXPECT_EQ(outcome.criteria, Names{"device"});
  EXPECT_EQ(outcome.runs, 1);
}

TEST(Check, caseThatNoRowFits) {
  FakeSet fake;
  fake.manifest["rows"].erase(1); // no fallback for odd strides
  EXPECT_EQ(check(fake, Plant::None, std::string(kPlain) + " layout=odd").criteria, Names{"fit"});
}

TEST(Check, caseTooLargeForTheDevice) {
  FakeSet fake;
  Outcome outcome = check(fake, Plant::None, "");
  EXPECT_TRUE(outcome.report.tooLarge.empty());
  std::vector<std::unique_ptr<KernelSet>> sets;
  sets.push_back(fake.load());
  FakeDevice device;
  CpuReference engine;
  CheckOptions options;
  options.cases = {parseCase("2,2,1,9,12,16 mask=causal layout=far"), parseCase(kPlain)};
  CheckReport report = runCheck(sets, device, engine, options, [](size_t, size_t, const std::string &) {});
  EXPECT_EQ(report.tooLarge, Names{"2,2,1,9,12,16 mask=causal layout=far"});
  EXPECT_EQ(report.results.size(), 2u);
  EXPECT_TRUE(report.passed());
}

/// The reason that requireRuns() gives, or nothing.
std::string whyNothingRan(const CheckReport &report, const CheckOptions &options) {
  try {
    requireRuns(report, options);
  } catch (const UserError &error) {
    return error.what();
  }
  return "";
}

TEST(Check, nothingRanByTheUsersChoice) {
  CheckReport report;
  CheckOptions suite, chosen;
  chosen.cases = {parseCase(kPlain)};
  EXPECT_EQ(whyNothingRan(report, suite), ""); // a set that no case of a suite fits has failed
  EXPECT_NE(whyNothingRan(report, chosen).find("no case fits a chosen variant"), std::string::npos);
  report.tooLarge = {"1,1,1,1,1,16"};
  EXPECT_NE(whyNothingRan(report, chosen).find("too large"), std::string::npos);
  report.failures = {{"fit", "no variant fits"}};
  EXPECT_EQ(whyNothingRan(report, chosen), "no variant fits");
  EXPECT_EQ(whyNothingRan(report, suite), "");
  report.failures = {{"device", "lost"}};
  EXPECT_EQ(whyNothingRan(report, chosen), "");
  report.failures.clear();
  report.results.emplace_back();
  EXPECT_EQ(whyNothingRan(report, chosen), "");
}

TEST(Check, caseOfAnotherProblem) {
  FakeSet fake;
  EXPECT_THROW(check(fake, Plant::None, "1,2,1,9,12,32 mask=causal"), UserError);
}

TEST(Check, reproLineNamesTheCase) {
  FakeSet fake;
  Outcome outcome = check(fake, Plant::Lse, std::string(kPlain) + " scale=0.5");
  CheckOptions options;
  options.deviceFlag = "cpu";
  std::string line = reproLine(outcome.report.results[0], options);
  EXPECT_NE(line.find("--variant fake_f16_d16_causal --case \"1,2,1,9,12,16 mask=causal scale=0.5\" --seed 1"),
            std::string::npos)
      << line;
}

} // namespace
