// fagen: a soak on a device that computes right, or wrong in one chosen way.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/check/soak.h"
#include "../FakeSet.h"
#include "FakeDevice.h"

#include <gmock/gmock.h>
#include <set>

using namespace fagen::lab;

namespace {

struct Soaked {
  std::vector<std::unique_ptr<KernelSet>> sets; // the report points into them
  SoakReport report;
  int timesLost = 0;
};
Soaked soak(FakeSet &fake, Plant plant, int64_t repeats, int64_t launches, int otherAttempt = 2) {
  Soaked soaked;
  soaked.sets.push_back(fake.load());
  FakeDevice device(plant);
  device.otherAttempt = otherAttempt;
  CpuReference engine;
  SoakOptions options;
  options.repeats = repeats;
  options.launches = launches;
  options.limits = {2, 3, 70};
  options.repeated = {1, 2, 1, 9, 12, 0, 0};
  options.deviceFlag = "cpu";
  options.onDeviceLost = [&](const SoakReport &) { ++soaked.timesLost; };
  soaked.report = runSoak(soaked.sets, device, engine, options, [](size_t, size_t, const std::string &) {});
  return soaked;
}

TEST(Soak, rightResultsPass) {
  FakeSet fake;
  const Soaked soaked = soak(fake, Plant::None, 7, 30);
  EXPECT_TRUE(soaked.report.passed()) << soakFailures(soaked.report);
  ASSERT_EQ(soaked.report.variants.size(), 2u);
  for (const SoakedVariant &variant : soaked.report.variants) {
    EXPECT_EQ(variant.repeats, 7);
    EXPECT_EQ(variant.different, 0);
  }
  EXPECT_EQ(soaked.report.variants[0].launches + soaked.report.variants[1].launches, 30);
  EXPECT_FALSE(soaked.report.loaded);
}

TEST(Soak, otherBitsAreCounted) {
  FakeSet fake;
  const Soaked soaked = soak(fake, Plant::Nondeterminism, 5, 0); // run 3 has other bits
  EXPECT_FALSE(soaked.report.passed());
  EXPECT_EQ(soaked.report.variants[0].repeats, 5);
  EXPECT_EQ(soaked.report.variants[0].different, 1);
  EXPECT_THAT(
      soakFailures(soaked.report),
      testing::AllOf(testing::StartsWith("fake_f16_d16_causal\n  determinism on \"1,2,1,9,12,16 mask=causal\": 1 of 5 "
                                         "runs gave other bits than the first; run 3 was the first to\n"
                                         "  again: fagen-run soak "),
                     testing::HasSubstr("--variant fake_f16_d16_causal --case \"1,2,1,9,12,16 mask=causal\"")));
}

TEST(Soak, launchesThatAreNotWaitedForOneByOneAreEachCompared) {
  FakeSet fake;
  const Soaked soaked = soak(fake, Plant::Nondeterminism, 80, 0, 70);
  EXPECT_EQ(soaked.report.variants[0].repeats, 80);
  EXPECT_EQ(soaked.report.variants[0].different, 1);
  EXPECT_EQ(soaked.report.variants[0].firstDifferent, 71);
}

TEST(Soak, theFirstResultIsJudged) {
  FakeSet fake;
  const Soaked soaked = soak(fake, Plant::WrongElement, 5, 0);
  EXPECT_FALSE(soaked.report.passed());
  EXPECT_EQ(soaked.report.variants[0].failures.at(0).criterion, "error");
  EXPECT_EQ(soaked.report.variants[0].repeats, 1); // no use in repeating it
}

TEST(Soak, aHangNamesItsProblem) {
  FakeSet fake;
  const Soaked soaked = soak(fake, Plant::Hang, 0, 1000);
  EXPECT_FALSE(soaked.report.passed());
  EXPECT_TRUE(soaked.report.deviceLost);
  EXPECT_EQ(soaked.timesLost, 1);
  int64_t launches = 0;
  std::string message;
  for (const SoakedVariant &variant : soaked.report.variants) {
    launches += variant.launches;
    for (const Failure &failure : variant.failures) {
      EXPECT_EQ(failure.criterion, "hang");
      message += failure.message;
    }
  }
  EXPECT_LT(launches, 1000);
  ASSERT_EQ(message.substr(message.size() - 10), "\": planted");
  EXPECT_GT(parseCase(message.substr(1, message.size() - 11)).shape.seqKv, 40);
}

TEST(Soak, aLostDeviceEndsIt) {
  FakeSet fake;
  const Soaked soaked = soak(fake, Plant::Lost, 3, 10);
  EXPECT_FALSE(soaked.report.passed());
  EXPECT_EQ(soaked.report.failures.at(0).criterion, "device");
}

TEST(Soak, randomCasesAreTheSameEachTimeAndMeetEdges) {
  FakeSet fake;
  const auto set = fake.load();
  const fagen_row &row = *set->rows().front(); // tiles of 16 rows and 32 keys
  const SoakLimits limits{3, 8, 200};
  std::set<int64_t> edges;
  int64_t keyless = 0, grouped = 0;
  for (uint32_t i = 0; i < 2000; ++i) {
    const Case c = randomCase(row, Case(), limits, 1, i);
    EXPECT_EQ(formatCase(c), formatCase(randomCase(row, Case(), limits, 1, i)));
    const Shape &s = c.shape;
    EXPECT_TRUE(s.batch >= 1 && s.batch <= 3 && s.heads >= s.kvHeads && s.heads <= 8 && s.heads % s.kvHeads == 0);
    EXPECT_TRUE(s.seqQ >= 1 && s.seqQ <= 200 && s.seqKv >= 0 && s.seqKv <= 200);
    edges.insert((s.seqKv + 1) % 32 < 3 ? (s.seqKv + 1) % 32 - 1 : 2);
    keyless += s.seqKv == 0;
    grouped += s.heads > s.kvHeads;
  }
  EXPECT_TRUE(edges.count(-1) && edges.count(0) && edges.count(1));
  EXPECT_GT(keyless, 5);
  EXPECT_GT(grouped, 200);
  EXPECT_NE(formatCase(randomCase(row, Case(), limits, 1, 0)), formatCase(randomCase(row, Case(), limits, 2, 0)));
}

} // namespace
