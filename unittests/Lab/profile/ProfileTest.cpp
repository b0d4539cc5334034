// fagen: verdicts from counters, sources that refuse, readings that differ, ncu's pages.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/profile/profile.h"
#include "../FakeSet.h"
#include "lab/profile/ncu.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <set>

using namespace fagen::lab;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// A reading that sets some quantities and stalls by their keys and names.
Reading reading(const std::map<std::string, double> &figures, const std::map<std::string, double> &stalls = {}) {
  Reading made;
  for (const Quantity &quantity : quantities(90))
    if (auto figure = figures.find(quantity.key); figure != figures.end())
      made.counters[quantity.metric] = figure->second;
  for (const StallReason &reason : stallReasons(90))
    if (auto stall = stalls.find(reason.name); stall != stalls.end())
      made.counters[stallMetric(reason)] = stall->second;
  return made;
}

Profile profileOf(std::vector<Reading> readings) {
  Profile profile;
  profile.computeCapability = 90;
  profile.sms = 132;
  profile.subject.problem.shape = parseShape("mission");
  profile.readings = std::move(readings);
  return profile;
}

Bottleneck verdictOf(double tensor, double dram, const std::map<std::string, double> &stalls = {{"wait", 1}}) {
  return profileOf({reading({{"tensor", tensor}, {"dram", dram}}, stalls)}).bottleneck();
}

TEST(Profile, verdictsByTheRules) {
  EXPECT_EQ(verdictOf(50, 49.9).kind, "compute-bound");
  EXPECT_EQ(verdictOf(90, 10).kind, "compute-bound");
  EXPECT_EQ(verdictOf(49.9, 10).kind, "latency-bound");
  EXPECT_EQ(verdictOf(90, 50).kind, "latency-bound");
  EXPECT_EQ(verdictOf(10, 70).kind, "latency-bound");
  EXPECT_EQ(verdictOf(10, 70.1).kind, "memory-bound");
  EXPECT_EQ(verdictOf(90, 70.1).kind, "memory-bound");
}

/// Whatever is counted.
TEST(Profile, aShareIsNeverAboveAll) {
  const std::string hits = "lts__t_requests_lookup_hit.sum", misses = "lts__t_requests_lookup_miss.sum";
  const auto share = [&](const Counters &counters) {
    Reading made;
    made.counters = counters;
    return profileOf({made}).value("l2_hits");
  };
  EXPECT_DOUBLE_EQ(share({{hits, 30}, {misses, 10}}).value(), 75);
  for (double hit : {0.0, 1.0, 147623.0, 5.3e7})
    for (double miss : {0.0, 1.0, 10204.0, 1.1e7})
      if (std::optional<double> percent = share({{hits, hit}, {misses, miss}})) {
        EXPECT_GE(*percent, 0);
        EXPECT_LE(*percent, 100);
      } else {
        EXPECT_EQ(hit + miss, 0);
      }
  EXPECT_FALSE(share({{hits, 5}}));
  // What it was made of before: hits of one launch over lookups of another. It is not shown as a share of hits.
  EXPECT_FALSE(share({{"lts__t_sector_hit_rate.pct", 119.69}, {"lts__t_sectors.sum", 134341}}));
}

TEST(Profile, theLeadingStallDecidesTheRest) {
  Bottleneck barrier = verdictOf(10, 10, {{"barrier", 3}, {"wait", 2}, {"selected", 5}});
  EXPECT_EQ(barrier.kind, "barrier-bound");
  EXPECT_THAT(barrier.why, HasSubstr("wait 30 % of their time for other warps at a CTA barrier (barrier)"));
  EXPECT_EQ(verdictOf(10, 10, {{"barrier", 2}, {"long_scoreboard", 3}}).kind, "latency-bound");
  // Warps that were ready, or issued, did not wait.
  EXPECT_THAT(verdictOf(10, 10, {{"not_selected", 9}, {"selected", 9}, {"wait", 1}}).why, HasSubstr("(wait)"));
  EXPECT_THAT(verdictOf(10, 10, {}).why, HasSubstr("no stalls were counted"));
  EXPECT_EQ(verdictOf(10, 10, {{"selected", 1}}).kind, "");
}

TEST(Profile, idleSmsAreSaid) {
  auto why = [](double busy) {
    return profileOf({reading({{"tensor", 10}, {"dram", 5}, {"sm_busy", busy}}, {{"wait", 1}})}).bottleneck().why;
  };
  EXPECT_THAT(why(48), HasSubstr("SMs have work 48 % of the time"));
  EXPECT_THAT(why(61), Not(HasSubstr("SMs have work")));
}

TEST(Profile, missingCountersAreNoVerdict) {
  EXPECT_EQ(profileOf({reading({{"dram", 90}})}).bottleneck().kind, "");
  EXPECT_THAT(profileOf({reading({{"tensor", 90}})}).bottleneck().why, HasSubstr("DRAM throughput was not counted"));
  EXPECT_FALSE(profileOf({reading({{"duration", 1e4}})}).timesFloor());
  EXPECT_FALSE(profileOf({}).roofline());
  EXPECT_TRUE(profileOf({}).stalls().empty());
}

TEST(Profile, distanceFromTheFloor) {
  Profile profile =
      profileOf({reading({{"duration", 12000}, {"sm_clock", 1.8e9}, {"dram_peak", 1536}, {"dram_clock", 3.2e9}})});
  // 2^21 pairs over 132 SMs of 16 each clock; the products take as long at d 64.
  EXPECT_NEAR(profile.roofline()->expMicroseconds, 2097152 / (132 * 16 * 1.8e3), 1e-6);
  EXPECT_NEAR(profile.roofline()->dramMicroseconds, (4 * 512 * 8 * 64 * 2 + 512 * 8 * 4) / (1536 * 3.2e3), 1e-6);
  EXPECT_NEAR(*profile.timesFloor(), 12 / profile.roofline()->floorMicroseconds(), 1e-9);
}

TEST(Profile, readingsAgreeWithinFivePercent) {
  std::map<std::string, double> figures{{"tensor_active", 40}, {"occupancy", 20}, {"shared_wavefronts", 1000}};
  auto other = [&](const char *key, double value) {
    std::map<std::string, double> changed = figures;
    changed[key] = value;
    return profileOf({reading(figures), reading(changed)});
  };
  EXPECT_TRUE(readingsAgree(other("tensor_active", 38.1)));
  EXPECT_FALSE(readingsAgree(other("tensor_active", 37.9)));
  EXPECT_FALSE(readingsAgree(other("occupancy", 22)));
  EXPECT_TRUE(readingsAgree(other("duration", 5))); // not judged
  figures.erase("occupancy");
  EXPECT_FALSE(readingsAgree(profileOf({reading(figures), reading(figures)})));
  EXPECT_FALSE(readingsAgree(profileOf({reading(figures)})));
}

class Counting : public CounterDevice {
public:
  std::string name() const override { return "fake"; }
  uint32_t computeCapability() const override { return 90; }
  int sms() const override { return 132; }
  fagen_device *queryDevice() override { return nullptr; }
  Reading count(CounterKind kind, const ProfiledRow &, const std::vector<std::string> &metrics) override {
    asked.push_back(nameOf(kind) + " " + metrics.back());
    if (refusals.contains(kind))
      throw CountersRefused(refusals.at(kind));
    return {kind, "fake", {}};
  }
  void launch(const ProfiledRow &, int) override {}
  std::map<CounterKind, std::string> refusals;
  std::vector<std::string> asked;
};

TEST(Profile, theNextSourceIsAskedWhereOneRefuses) {
  Counting device;
  Profile first = runProfile(device, {}, {CounterKind::Cupti, CounterKind::Ncu}, {"extra"});
  EXPECT_THAT(device.asked, ElementsAre("cupti extra"));
  EXPECT_TRUE(first.refused.empty());
  device.refusals[CounterKind::Cupti] = "no";
  Profile second = runProfile(device, {}, {CounterKind::Cupti, CounterKind::Ncu}, {"extra"});
  EXPECT_EQ(second.readings.at(0).kind, CounterKind::Ncu);
  EXPECT_EQ(second.refused.at(CounterKind::Cupti), "no");
  device.refusals[CounterKind::Ncu] = "neither";
  EXPECT_EQ(runProfile(device, {}, {CounterKind::Cupti, CounterKind::Ncu}, {}).refused.size(), 2u);
}

TEST(Profile, metricsAreDistinctAndEveryChipHasItsNames) {
  for (uint32_t sm : {80, 86, 89, 90, 100, 120}) {
    std::vector<std::string> metrics = profileMetrics(sm);
    EXPECT_EQ(std::set<std::string>(metrics.begin(), metrics.end()).size(), metrics.size()) << sm;
  }
  EXPECT_THAT(profileMetrics(89), Contains(HasSubstr("sm__pipe_tensor_cycles_active_v2.")));
  EXPECT_THAT(profileMetrics(90), Contains(HasSubstr("stalled_gmma")));
}

const char *const kPage = R"csv(==PROF== Connected to process 7
launched 1 variants
"ID","Kernel Name","Block Size","a__x.sum","b__y.avg","c__z.pct"
"","","","ns","%","%"
"0","kernel_f16(fagen::device::AttentionParams)","(128, 1, 1)","1,234.5","n/a","7"
)csv";

TEST(Ncu, aPage) {
  Counters counters = parseNcuPage(kPage, "kernel_f16", {"a__x.sum", "b__y.avg", "c__z.pct", "d"});
  EXPECT_EQ(counters, (Counters{{"a__x.sum", 1234.5}, {"c__z.pct", 7}}));
}

TEST(Ncu, pagesThatSayNothing) {
  auto refusal = [](const std::string &page, const char *symbol, const char *metric) -> std::string {
    try {
      parseNcuPage(page, symbol, {metric});
    } catch (const CountersRefused &reason) {
      return reason.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("==PROF== nothing\n", "k", "m"), "ncu printed no table with the column 'Kernel Name'");
  EXPECT_EQ(refusal(kPage, "kernel", "a__x.sum"), "ncu profiled kernel_f16, not kernel");
  EXPECT_EQ(refusal(kPage, "kernel_f16", "b__y.avg"), "ncu told none of the metrics");
  std::string twice = std::string(kPage) + "\"1\",\"kernel_f16(x)\",\"(1)\",\"1\",\"1\",\"1\"\n";
  EXPECT_EQ(refusal(twice, "kernel_f16", "a__x.sum"), "ncu profiled 2 launches, not one");
}

TEST(Ncu, itsCommandNamesOneLaunchOfTheKernel) {
  FakeSet fake;
  std::unique_ptr<KernelSet> set = fake.load();
  ProfiledRow row;
  row.set = set.get();
  row.row = set->rows()[0];
  row.problem.shape = parseShape("1,1,1,8,8,16");
  std::vector<std::string> command = ncuCommand("ncu", "/bin/fagen-run", row, {"m1", "m2"});
  auto after = [&](const std::string &option) { return *(std::find(command.begin(), command.end(), option) + 1); };
  EXPECT_EQ(after("--kernel-name"), row.row->launches[0].symbol);
  EXPECT_EQ(after("--launch-skip"), "3");
  EXPECT_EQ(after("--launch-count"), "1");
  EXPECT_EQ(after("--metrics"), "m1,m2");
  EXPECT_EQ(after("/bin/fagen-run"), "profile");
  EXPECT_EQ(after("--counters"), "none");
  EXPECT_EQ(after("--variant"), "fake_f16_d16_causal");
}

} // namespace
