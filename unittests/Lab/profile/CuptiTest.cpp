// fagen: counting with CUPTI, against a stand-in for its calls; its metric names where the real one is.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/profile/cupti_process.h"
#include "lab/profile/cupti_session.h"

#include <algorithm>
#include <csignal>
#include <gmock/gmock.h>
#include <sstream>

using namespace fagen::lab;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

const std::string kAvailability = "what this GPU counts, in an image of its own";

/// What the stand-in does and saw.
struct State {
  std::string failing;   ///< this call fails ...
  int status = 999;      ///< ... with this status
  bool failsUser = true; ///< ... also when passes are launched here
  size_t passes = 3, announced = 3, submitted = 0, ranges = 1;
  int replay = 0;
  const uint8_t *availability = nullptr;
  std::vector<std::string> open; ///< what was made and not yet given back
} state;

int answer(const char *call) {
  bool spared = !state.failsUser && state.replay != cupti::kUserReplay;
  return state.failing == call && !spared ? state.status : 0;
}

template <typename Params> int plain(const char *call, const Params *params) {
  EXPECT_EQ(params->structSize, cupti::kSizeOf<Params>) << call;
  return answer(call);
}

int makeOrGiveBack(const char *call, const char *thing, bool make) {
  if (int status = answer(call))
    return status;
  if (make) {
    state.open.push_back(thing);
  } else {
    EXPECT_EQ(state.open.back(), thing);
    state.open.pop_back();
  }
  return 0;
}

cupti::Library standIn() {
  using namespace cupti;
  Library f{};
  f.getVersion = [](uint32_t *version) { return *version = 130001, 0; };
  f.getResultString = [](int status, const char **text) {
    return *text = status == kInsufficientPrivileges ? "INSUFFICIENT_PRIVILEGES" : status ? "FAILED" : "SUCCESS", 0;
  };
  f.deviceGetChipName = [](DeviceChipName *p) { return p->chipName = "FAKE100", plain("chip", p); };
  f.profilerInitialize = [](Initialize *) { return makeOrGiveBack("initialize", "profiling", true); };
  f.profilerDeInitialize = [](Initialize *) { return makeOrGiveBack("deinitialize", "profiling", false); };
  f.profilerGetCounterAvailability = [](CounterAvailability *p) {
    p->imageSize = kAvailability.size();
    if (p->image)
      std::copy(kAvailability.begin(), kAvailability.end(), p->image);
    return plain("availability", p);
  };
  f.hostInitialize = [](HostInitialize *p) {
    state.availability = p->availabilityImage;
    return makeOrGiveBack("host", "host", true);
  };
  f.hostDeinitialize = [](HostDeinitialize *) { return makeOrGiveBack("host off", "host", false); };
  f.hostGetMetricProperties = [](MetricProperties *p) { return std::string(p->name).starts_with("no") ? 17 : 0; };
  f.hostConfigAddMetrics = [](AddMetrics *p) {
    // The real one reads the image here, and not when it gets it.
    if (state.availability) {
      EXPECT_EQ(std::string(reinterpret_cast<const char *>(state.availability), kAvailability.size()), kAvailability);
    }
    return plain("add", p);
  };
  f.hostGetConfigImageSize = [](ConfigImageSize *p) { return p->size = 8, plain("config size", p); };
  f.hostGetConfigImage = [](ConfigImage *p) { return plain("config", p); };
  f.hostGetNumOfPasses = [](NumberOfPasses *p) { return p->passes = state.announced, plain("passes", p); };
  f.rangeEnable = [](Enable *) { return makeOrGiveBack("enable", "profiler", true); };
  f.rangeDisable = [](ProfilerOnly *) { return makeOrGiveBack("disable", "profiler", false); };
  f.rangeGetCounterDataSize = [](CounterDataSize *p) { return p->size = 16, plain("data size", p); };
  f.rangeCounterDataImageInitialize = [](CounterDataInitialize *p) { return plain("data", p); };
  f.rangeSetConfig = [](SetConfig *p) {
    state.replay = p->replayMode;
    state.submitted = 0;
    EXPECT_EQ(p->range, kAutoRange);
    return plain("set", p);
  };
  f.rangeStart = [](ProfilerOnly *p) { return plain("start", p); };
  f.rangeStop = [](Stop *p) {
    p->allPassesSubmitted = ++state.submitted == state.passes || state.replay == kKernelReplay;
    return plain("stop", p);
  };
  f.rangeDecodeData = [](Decode *p) { return plain("decode", p); };
  f.rangeGetCounterDataInfo = [](CounterDataInfo *p) { return p->ranges = state.ranges, plain("info", p); };
  f.hostEvaluateToGpuValues = [](Evaluate *p) {
    EXPECT_EQ(p->count, 1u);
    *p->values = std::string(p->names[0]) == "nan" ? 0.0 / 0.0 : static_cast<double>(std::string(p->names[0]).size());
    return std::string(p->names[0]) == "broken" ? 1 : plain("evaluate", p);
  };
  return f;
}

class Cupti : public testing::Test {
protected:
  Cupti() { state = {}; }
  ~Cupti() override { EXPECT_THAT(state.open, ElementsAre()); }

  cupti::Result count(std::vector<std::string> metrics = {"four", "no such", "nan", "broken", "x"}) {
    launches = 0;
    cupti::Request request;
    request.metrics = std::move(metrics);
    request.launch = [this] { ++launches; };
    request.log = &log;
    return cupti::count(library, request);
  }
  std::string failure() {
    try {
      count();
    } catch (const cupti::Failure &failure) {
      return failure.what();
    }
    return "";
  }

  cupti::Library library = standIn();
  std::ostringstream log;
  int launches = 0;
};

TEST_F(Cupti, aLaunchForEachPass) {
  cupti::Result result = count();
  EXPECT_EQ(launches, 3);
  EXPECT_EQ(result.chip, "FAKE100");
  EXPECT_EQ(result.passes, 3u);
  EXPECT_TRUE(result.userReplay);
  EXPECT_EQ(result.counters, (Counters{{"four", 4}, {"x", 1}})); // what cannot be told is missing
  EXPECT_THAT(result.unknown, ElementsAre("no such"));
  EXPECT_THAT(log.str(), HasSubstr("cuptiRangeProfilerStart: SUCCESS (0)"));
  EXPECT_EQ(cupti::versionOf(library), "CUPTI 13.0");
}

TEST_F(Cupti, everyCallThatFailsIsNamedAndAllIsGivenBack) {
  for (const char *call : {"initialize", "chip", "host", "add", "config size", "config", "passes", "enable",
                           "data size", "data", "set", "start", "stop", "decode", "info"}) {
    state = {};
    state.failing = call;
    std::string words = failure();
    EXPECT_THAT(words, HasSubstr("FAILED (999)")) << call;
    EXPECT_THAT(words, HasSubstr("cupti")) << call;
    EXPECT_THAT(state.open, ElementsAre()) << call;
  }
}

TEST_F(Cupti, availabilityLivesAsLongAsItsReader) {
  count();
  EXPECT_NE(state.availability, nullptr);
}

TEST_F(Cupti, callsAreLoggedBeforeTheyAreMade) {
  static std::string seen;
  static std::ostringstream *into = &log;
  library.hostConfigAddMetrics = [](cupti::AddMetrics *) { return seen = into->str(), 0; };
  count();
  EXPECT_EQ(unfinishedCall(seen), "cuptiProfilerHostConfigAddMetrics");
  EXPECT_EQ(unfinishedCall(log.str()), "");
}

TEST_F(Cupti, availabilityIsNotNeeded) {
  state.failing = "availability";
  EXPECT_EQ(count().counters.size(), 2u);
}

TEST_F(Cupti, cuptiReplaysWherePassesLaunchedHereAreRefused) {
  state.failing = "set";
  state.failsUser = false;
  cupti::Result result = count();
  EXPECT_FALSE(result.userReplay);
  EXPECT_EQ(launches, 1);
  EXPECT_THAT(log.str(), HasSubstr("cuptiRangeProfilerSetConfig: FAILED (999)"));
}

TEST_F(Cupti, withoutPrivilegesNothingElseIsTried) {
  state.failing = "enable";
  state.status = cupti::kInsufficientPrivileges;
  EXPECT_EQ(failure(), "cuptiRangeProfilerEnable: INSUFFICIENT_PRIVILEGES (35)");
  EXPECT_THAT(log.str(), Not(HasSubstr("replayed by CUPTI")));
}

TEST_F(Cupti, passesThatNeverEnd) {
  state.passes = 100;
  EXPECT_FALSE(count().userReplay); // ends after the announced ones, and CUPTI's own replay takes over
}

TEST_F(Cupti, moreThanOneKernelInARange) {
  state.ranges = 2;
  EXPECT_THAT(failure(), HasSubstr("2 ranges of one kernel, 0 dropped"));
}

TEST(CuptiProcess, readings) {
  const std::string kRead = R"({"profile": [{"readings": [{"by": "CUPTI", "counters": {"a": 2.5}}]}]})";
  EXPECT_EQ(readCuptiProcess({}, kRead, "").counters, (Counters{{"a", 2.5}}));
  EXPECT_EQ(readCuptiProcess({}, kRead, "").by, "CUPTI");
  auto reason = [&](ChildOutcome outcome, const std::string &output, const std::string &log) -> std::string {
    try {
      readCuptiProcess(outcome, output, log);
    } catch (const CountersRefused &refused) {
      return refused.what();
    }
    return "";
  };
  ChildOutcome crashed, slow, failed;
  crashed.signal = SIGSEGV;
  slow.timedOut = true;
  failed.exitCode = 70;
  failed.errors = "what\nfor";
  EXPECT_EQ(reason(crashed, "", "cuptiA: SUCCESS (0)\n  a note\n"), "CUPTI crashed: Segmentation fault");
  EXPECT_EQ(reason(crashed, "", "cuptiA: SUCCESS (0)\ncuptiB"), "CUPTI crashed in cuptiB: Segmentation fault");
  EXPECT_EQ(reason(slow, "", "cuptiB"), "CUPTI took more than 300 s in cuptiB");
  EXPECT_EQ(reason(failed, "", ""), "the process that counts with CUPTI ended with exit code 70: what");
  EXPECT_EQ(reason({}, R"({"profile": [{}]})", ""), "the process that counts with CUPTI told no counters");
}

TEST(CuptiLibrary, everyChipKnowsTheMetricsOfItsComputeCapability) {
  std::string reason;
  const cupti::Library *library = cupti::library(reason);
  if (!library) {
    EXPECT_FALSE(reason.empty());
    GTEST_SKIP() << reason;
  }
  const std::pair<const char *, uint32_t> kChips[] = {{"GA100", 80}, {"GA102", 86},  {"AD104", 89},
                                                      {"GH100", 90}, {"GB100", 100}, {"GB202", 120}};
  for (auto [chip, sm] : kChips) {
    EXPECT_THAT(cupti::unknownMetrics(*library, chip, profileMetrics(sm)), ElementsAre()) << chip;
    size_t passes = cupti::passesOf(*library, chip, profileMetrics(sm));
    EXPECT_GT(passes, 1u);
    EXPECT_LT(passes, 60u) << chip;
    for (const Quantity &quantity : quantities(sm))
      if (!quantity.rest.empty()) {
        EXPECT_EQ(cupti::passesOf(*library, chip, {quantity.metric, quantity.rest}), 1u) << chip << quantity.key;
      }
  }
  EXPECT_THAT(cupti::unknownMetrics(*library, "GH100", {"sm__no_such.sum"}), ElementsAre("sm__no_such.sum"));
  EXPECT_GT(cupti::metricsOf(*library, "GH100").size(), 1000u);
  EXPECT_THROW(cupti::metricsOf(*library, "XY100"), cupti::Failure);
}

} // namespace
