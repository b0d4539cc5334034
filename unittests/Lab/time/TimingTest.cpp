// fagen: contests on recorded times: turns, baselines, ratios, sensors, warnings.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../FakeSet.h"
#include "lab/time/simulated_timing.h"
#include "lab/time/time_report.h"

#include <gmock/gmock.h>

using namespace fagen::lab;
using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

constexpr const char *kMain = "fake_f16_d16_causal";
constexpr const char *kFallback = "fake_unaligned_f16_d16_causal";

/// The fake set timed on recorded entries.
class Record {
public:
  explicit Record(const json &entries, uint32_t sm = 89) {
    file = fake.directory / "times.json";
    std::ofstream(file) << json{{"device", {{"name", "recorded"}, {"compute_capability", sm}}}, {"entries", entries}};
    options.shapes = {parseShape("1,8,8,512,512,16")};
    options.masks = {Mask::Causal};
    sets.push_back(fake.load());
  }

  TimeReport time() {
    device = makeSimulatedTiming(file);
    return runTime(*device, sets, options, [](size_t, size_t, const std::string &) {});
  }

  FakeSet fake;
  std::filesystem::path file;
  TimeOptions options;
  std::vector<std::unique_ptr<KernelSet>> sets;
  std::unique_ptr<TimingDevice> device;
};

json steadyEntry(const char *name, double us) { return {{"name", name}, {"us", {us}}}; }

const TimeResult &resultOf(const TimeReport &report, const std::string &name) {
  for (const TimeResult &result : report.results)
    if (result.name == name)
      return result;
  throw std::runtime_error("no result of " + name);
}

TEST(Timing, everyContestantTakesItsTurnInEachRound) {
  Record record(json::array({steadyEntry(kMain, 100), steadyEntry(kFallback, 200)}));
  TimeReport report = record.time();
  ASSERT_EQ(report.results.size(), 2u);
  for (const TimeResult &result : report.results) {
    EXPECT_EQ(result.segments.size(), 3u);
    EXPECT_EQ(result.samples().size(), 27u);
  }
  EXPECT_EQ(resultOf(report, kMain).medianMicroseconds(), 100);
  EXPECT_TRUE(resultOf(report, kMain).picked);
  EXPECT_FALSE(resultOf(report, kFallback).picked);
  auto ratio = ratioToPicked(report, resultOf(report, kFallback));
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->value, 2);
  EXPECT_TRUE(ratio->isClear());
}

TEST(Timing, launchesOfAGraphDependOnTheirTimeAndState) {
  Record record(json::array({steadyEntry(kMain, 10), steadyEntry(kFallback, 1000)}));
  TimeReport burst = record.time();
  EXPECT_EQ(resultOf(burst, kMain).launchesPerGraph, 200);
  EXPECT_EQ(resultOf(burst, kFallback).launchesPerGraph, 3); // ten replays in 30 ms
  record.options.state = PowerState::Steady;
  TimeReport steady = record.time();
  EXPECT_EQ(resultOf(steady, kMain).launchesPerGraph, 200);
  EXPECT_EQ(resultOf(steady, kFallback).launchesPerGraph, 20);
  record.options.l2 = L2State::Cold;
  EXPECT_EQ(resultOf(record.time(), kMain).launchesPerGraph, 20);
}

TEST(Timing, coldAndWarmAreDifferentEntries) {
  json cold = steadyEntry(kMain, 15), warm = steadyEntry(kMain, 10);
  cold["l2"] = "cold";
  Record record(json::array({cold, warm, steadyEntry(kFallback, 20)}));
  EXPECT_EQ(resultOf(record.time(), kMain).medianMicroseconds(), 10);
  record.options.l2 = L2State::Cold;
  EXPECT_EQ(resultOf(record.time(), kMain).medianMicroseconds(), 15);
}

TEST(Timing, aSteadySegmentTellsTheEnergyOfItsLoad) {
  json entry = steadyEntry(kMain, 100);
  entry["watts"] = 500;
  Record record(json::array({entry}));
  record.options.dispatchedOnly = true;
  record.options.state = PowerState::Steady;
  TimeReport report = record.time();
  const TimeResult &result = resultOf(report, kMain);
  EXPECT_NEAR(result.segments[0].load.launches * 100e-6, 1.25, 0.01);
  EXPECT_NEAR(result.medianJoules(), 500 * 100e-6, 1e-6);
  EXPECT_NEAR(result.averageWatts(), 500, 1e-6);
  EXPECT_THAT(report.notes, IsEmpty());
  record.options.state = PowerState::Burst; // 30 ms are too short for the counter
  EXPECT_EQ(resultOf(record.time(), kMain).medianJoules(), 0);
}

TEST(Timing, joulesThatAreNotToldAreNamedOnce) {
  Record record(json::array({steadyEntry(kMain, 100), steadyEntry(kFallback, 200)}));
  record.options.state = PowerState::Steady;
  TimeReport report = record.time();
  EXPECT_THAT(report.notes, testing::ElementsAre("joules are not told: the record has no watts"));
  EXPECT_EQ(resultOf(report, kMain).medianJoules(), 0);
  EXPECT_THAT(timeJson(report, record.options)["results"][0]["segments"][0]["energy"], "the record has no watts");
}

TEST(Timing, theCheapestBaselineNeedNotBeTheFastest) {
  auto drawing = [](const char *name, double us, double watts) {
    json entry = steadyEntry(name, us);
    entry["watts"] = watts;
    return entry;
  };
  Record record(json::array({drawing(kMain, 100, 600), steadyEntry(kFallback, 200), drawing("sdpa:cudnn", 90, 700),
                             drawing("sdpa:flash", 120, 400), steadyEntry("sdpa:math", 80)}));
  record.options.baselines = {"sdpa"};
  record.options.state = PowerState::Steady;
  TimeReport report = record.time();
  EXPECT_EQ(ratioToBaseline(report, resultOf(report, kMain), "sdpa")->over, "sdpa:math");
  auto joules = ratioToBaseline(report, resultOf(report, kMain), "sdpa", Measure::Joules);
  ASSERT_TRUE(joules);
  EXPECT_EQ(joules->over, "sdpa:flash"); // 48 mJ; math tells none
  EXPECT_NEAR(joules->value, 60.0 / 48, 1e-6);
}

TEST(Timing, sdpaIsTheFastestBackendThatRan) {
  json refused = steadyEntry("sdpa:flash", 1);
  refused["refuses"] = "no flash here";
  Record record(json::array({steadyEntry(kMain, 90), steadyEntry(kFallback, 200), refused,
                             steadyEntry("sdpa:cudnn", 100), steadyEntry("sdpa:efficient", 300)}));
  record.options.baselines = {"sdpa"};
  TimeReport report = record.time();
  auto ratio = ratioToBaseline(report, resultOf(report, kMain), "sdpa");
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->over, "sdpa:cudnn");
  EXPECT_EQ(ratio->value, 0.9);
  EXPECT_EQ(resultOf(report, "sdpa:flash").failure, "no flash here");
  EXPECT_THAT(resultOf(report, "sdpa:math").failure, HasSubstr("nothing is recorded of sdpa:math"));
  EXPECT_THAT(timeTable(report, record.options), HasSubstr("0.900 (0.900 to 0.900) sdpa:cudnn"));
}

TEST(Timing, anotherVariantAsBaselineRunsAlthoughItWasNotAskedFor) {
  Record record(json::array({steadyEntry(kMain, 90), steadyEntry(kFallback, 180)}));
  record.options.variants = {kMain};
  record.options.baselines = {std::string("kernel:") + kFallback};
  TimeReport report = record.time();
  auto ratio = ratioToBaseline(report, resultOf(report, kMain), record.options.baselines[0]);
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->value, 0.5);
}

TEST(Timing, aContestantThatFailsLeavesTheOthersGoing) {
  Record record(json::array({{{"name", kMain}, {"fails", "planted"}}, steadyEntry(kFallback, 20)}));
  TimeReport report = record.time();
  EXPECT_EQ(resultOf(report, kMain).failure, "planted");
  EXPECT_EQ(resultOf(report, kFallback).segments.size(), 3u);
  EXPECT_FALSE(ratioToPicked(report, resultOf(report, kFallback)));
}

TEST(Timing, driftBeyondTheLimitsIsSaid) {
  json entry = steadyEntry(kMain, 100);
  entry["clock_mhz"] = {1980, 1700, 1710};
  entry["watts"] = {690, 500, 690};
  entry["celsius"] = {40, 41, 50};
  Record record(json::array({entry, steadyEntry(kFallback, 200)}));
  record.options.state = PowerState::Steady;
  TimeReport report = record.time();
  EXPECT_EQ(resultOf(report, kMain).segments[1].after.clockMhz, 1700);
  auto warnings = timeWarnings(report, record.options);
  EXPECT_THAT(warnings, Contains(HasSubstr("the SM clock went from 1700 to 1980 MHz between segments; at most 3 %")));
  EXPECT_THAT(warnings, Contains(HasSubstr("power went from 500 to 690 W")));
  EXPECT_THAT(warnings, Contains(HasSubstr("the temperature went from 40 to 50 C")));
  EXPECT_EQ(warnings.size(), 3u);
  record.options.state = PowerState::Burst; // no power then
  EXPECT_EQ(timeWarnings(record.time(), record.options).size(), 2u);
}

TEST(Timing, driftWithinTheLimitsIsNotSaid) {
  json entry = steadyEntry(kMain, 100);
  entry["clock_mhz"] = {1980, 1960, 1970};
  entry["watts"] = {690, 680, 670};
  entry["celsius"] = {40, 41, 44};
  Record record(json::array({entry, steadyEntry(kFallback, 200)}));
  record.options.state = PowerState::Steady;
  EXPECT_THAT(timeWarnings(record.time(), record.options), IsEmpty());
}

TEST(Timing, mediansThatDriftAreSaid) {
  // 2 replays to prepare, and 10 a turn: the second turn is slower.
  std::vector<double> us(12, 100.0);
  us.insert(us.end(), 10, 110.0);
  us.insert(us.end(), 10, 100.0);
  Record record(json::array({{{"name", kMain}, {"us", us}}, steadyEntry(kFallback, 200)}));
  EXPECT_THAT(timeWarnings(record.time(), record.options),
              Contains(HasSubstr("the median went from 100 to 110 us between segments; at most 5 %")));
}

TEST(Timing, anIntervalWiderThanTheDifferenceIsSaid) {
  json main{{"name", kMain}, {"median_us", 100}, {"noise", 0.02}};
  json fallback{{"name", kFallback}, {"median_us", 100.2}, {"noise", 0.02}};
  Record record(json::array({main, fallback}));
  EXPECT_THAT(timeWarnings(record.time(), record.options),
              Contains(HasSubstr("the interval is wider than the difference")));
}

TEST(Timing, theJsonHasEverySampleAndReading) {
  json entry = steadyEntry(kMain, 90);
  entry["clock_mhz"] = 1980;
  json gemm = steadyEntry("cublas-gemm", 45);
  gemm["library"] = "cuBLAS 13.1.0";
  Record record(json::array({entry, steadyEntry(kFallback, 200), gemm}));
  record.options.baselines = {"cublas-gemm"};
  lab::Json time = timeJson(record.time(), record.options);
  const lab::Json &result = time["results"][0];
  EXPECT_EQ(result["samples_round_us"].size(), 27u);
  EXPECT_EQ(result["segments"].size(), 3u);
  EXPECT_EQ(result["segments"][2]["after"]["sm_clock_mhz"], 1980);
  EXPECT_EQ(result["time_over_baseline"][0]["ratio"], 2);
  EXPECT_EQ(result["time_over_baseline"][0]["clear"], true);
  EXPECT_EQ(time["results"][2]["baseline"], true);
  EXPECT_EQ(time["results"][2]["library"], "cuBLAS 13.1.0");
  EXPECT_FALSE(result.contains("library"));
  EXPECT_EQ(time["l2"], "warm");
}

TEST(Timing, noVariantForTheShapes) {
  Record record(json::array({}));
  record.options.masks = {Mask::None};
  EXPECT_THROW(record.time(), UserError);
}

TEST(SimulatedTiming, theFirstEntryThatIsAboutTheProblemCounts) {
  json other = steadyEntry(kMain, 1), right = steadyEntry(kMain, 2);
  other["shape"] = "1,8,8,1024,1024,16";
  right["shape"] = "1,8,8,512,512,16";
  right["mask"] = "causal";
  right["dtype"] = "f16";
  Record record(json::array({other, right, steadyEntry(kMain, 3), steadyEntry(kFallback, 4)}));
  EXPECT_EQ(resultOf(record.time(), kMain).medianMicroseconds(), 2);
}

TEST(SimulatedTiming, noiseComesFromTheSeed) {
  Record record(json::array({{{"name", kMain}, {"median_us", 100}, {"noise", 0.05}}, steadyEntry(kFallback, 4)}));
  std::vector<double> first = resultOf(record.time(), kMain).samples();
  EXPECT_EQ(resultOf(record.time(), kMain).samples(), first);
  record.options.seed = 2;
  EXPECT_NE(resultOf(record.time(), kMain).samples(), first);
}

TEST(SimulatedTiming, aCrashEndsTheProcess) {
  Record record(json::array({{{"name", kMain}, {"crashes", true}}, steadyEntry(kFallback, 4)}));
  EXPECT_DEATH(record.time(), "");
}

std::string errorOf(const std::string &text) {
  std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "fagen-record.json";
  std::ofstream(file) << text;
  try {
    makeSimulatedTiming(file);
  } catch (const UserError &error) {
    return error.what();
  }
  return "";
}

TEST(SimulatedTiming, badRecordsAreRefused) {
  std::string head = R"({"device": {"compute_capability": 90}, "entries": [)";
  EXPECT_EQ(errorOf(head + "]}"), "");
  EXPECT_THAT(errorOf("{"), HasSubstr("is not a record of times"));
  EXPECT_THAT(errorOf("{}"), HasSubstr("device"));
  EXPECT_THAT(errorOf(head + R"({"name": "a"}]})"), HasSubstr("the entry of a has neither us"));
  EXPECT_THAT(errorOf(head + R"({"name": "a", "us": [0]}]})"), HasSubstr("a time that is not above 0"));
  EXPECT_THAT(errorOf(head + R"({"name": "a", "us": 1, "sape": "x"}]})"), HasSubstr("unknown key 'sape'"));
  EXPECT_THROW(makeSimulatedTiming("/nowhere/times.json"), UserError);
}

} // namespace
