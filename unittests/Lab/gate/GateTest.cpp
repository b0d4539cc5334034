// fagen: a gate's stages, each failing for a planted reason and no other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../FakeSet.h"
#include "../check/FakeDevice.h"
#include "lab/device/resources.h"
#include "lab/gate/gate_report.h"
#include "lab/time/simulated_timing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

using namespace fagen::lab;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

namespace {

constexpr const char *kMain = "fake_f16_d16_causal";
constexpr const char *kShape = "1,8,8,512,512,16";

json gate(const char *name, const char *relation, double value, const char *baseline = "") {
  return {{"name", name},
          {"relation", relation},
          {"value", value},
          {"baseline", baseline},
          {"text", fmt::format("{} {} {}{}", name, relation, value, *baseline ? fmt::format(" * {}", baseline) : "")}};
}

/// The fake set's gate on a fake device and recorded times.
class Gated {
public:
  Gated(const json &gates, Plant plant = Plant::None) : device(plant) {
    set.manifest["gates"] = gates;
    options.check.suite = "smoke";
    options.check.deviceFlag = "cpu";
    options.check.cases = {parseCase("1,2,1,9,12,16 mask=causal")};
    options.check.variants = {kMain};
    options.time.shapes = {parseShape(kShape)};
  }

  void record(std::vector<json> entries, uint32_t sm = 89) {
    std::filesystem::path file = set.directory / "times.json";
    std::ofstream(file) << json{{"device", {{"name", "recorded"}, {"compute_capability", sm}}}, {"entries", entries}};
    timing = makeSimulatedTiming(file);
  }

  /// The only variant's stages.
  const GatedVariant &run() {
    sets.clear();
    sets.push_back(set.load());
    CpuReference engine;
    GateDevices devices{device, engine, timing.get(), sm};
    report = runGate(sets, devices, options, [](size_t, size_t, const std::string &) {});
    return report.variants.at(0);
  }

  FakeSet set;
  FakeDevice device;
  uint32_t sm = 0;
  GateOptions options;
  std::unique_ptr<TimingDevice> timing;
  std::vector<std::unique_ptr<KernelSet>> sets;
  GateReport report;
};

/// That this stage fails, all before it pass (or are skipped for want of a GPU), and none after it was reached.
void expectFailsAt(const GatedVariant &variant, Stage failing, const std::string &why) {
  for (int i = 0; i < kStages; ++i) {
    auto stage = static_cast<Stage>(i);
    Verdict expected = stage < failing ? Verdict::Pass : stage == failing ? Verdict::Fail : Verdict::NotReached;
    if (stage < failing && stage == Stage::Resources && variant.at(stage).verdict == Verdict::NotRequired)
      continue;
    EXPECT_EQ(variant.at(stage).verdict, expected) << nameOf(stage) << ": " << variant.at(stage).why;
  }
  EXPECT_THAT(variant.at(failing).why, HasSubstr(why));
}

TEST(Gate, buildFails) {
  Gated gated(json::array({}), Plant::Build);
  expectFailsAt(gated.run(), Stage::Build, "planted: a syntax error");
  EXPECT_EQ(gated.device.runs, 0);
  EXPECT_FALSE(gated.report.passed(gated.options));
}

TEST(Gate, sharedMemoryOfTheManifestFails) {
  Gated gated(json::array({gate("shared", "<=", 1024)}));
  expectFailsAt(gated.run(), Stage::Resources, "shared is 4096 by the manifest, which fails 'shared <= 1024'");
  EXPECT_EQ(gated.device.runs, 0);
}

TEST(Gate, registersOfTheDriverFail) {
  Gated gated(json::array({gate("registers", "<=", 128), gate("spills", "==", 0)}));
  gated.sm = 89;
  gated.device.registers = 130;
  expectFailsAt(gated.run(), Stage::Resources, "registers is 130 by the driver, for sm_89, which fails");
  gated.device.registers = 128;
  gated.device.localBytes = 8;
  expectFailsAt(gated.run(), Stage::Resources, "spills is 8 by the driver");
}

TEST(Gate, registersOfPtxasFail) {
  Gated gated(json::array({gate("registers", "<=", 128)}));
  std::ofstream(gated.set.directory / "resources.json") << json::array(
      {{{"variant", kMain}, {"target", "sm_89"}, {"registers", 200}, {"spill_bytes", 0}, {"shared_bytes", 4096}}});
  expectFailsAt(gated.run(), Stage::Resources, "registers is 200 by ptxas (resources.json)");
  gated.sm = 90; // another GPU's driver does not overrule the target's ptxas
  gated.device.registers = 100;
  expectFailsAt(gated.run(), Stage::Resources, "registers is 200 by ptxas");
  gated.sm = 89;
  EXPECT_EQ(gated.run().at(Stage::Resources).verdict, Verdict::Pass);
}

TEST(Gate, resourcesThatNobodyTellsAreSkipped) {
  Gated gated(json::array({gate("registers", "<=", 128), gate("shared", "<=", 4096)}));
  const GatedVariant &variant = gated.run();
  EXPECT_EQ(variant.at(Stage::Resources).verdict, Verdict::Skipped);
  EXPECT_THAT(variant.at(Stage::Resources).why,
              HasSubstr("registers: neither a GPU of the target nor resources.json tells"));
  EXPECT_EQ(variant.at(Stage::Determinism).verdict, Verdict::Pass);
  EXPECT_TRUE(gated.report.passed(gated.options));
  gated.options.strict = true;
  EXPECT_FALSE(gated.report.passed(gated.options));
  gated.sm = 90; // what another GPU's compiler makes of the text does not count
  gated.device.registers = 200;
  EXPECT_EQ(gated.run().at(Stage::Resources).verdict, Verdict::Skipped);
}

TEST(Gate, aDamagedResourcesFileIsTheUsersMistake) {
  Gated gated(json::array({gate("registers", "<=", 128)}));
  std::ofstream(gated.set.directory / "resources.json") << "[{}]";
  EXPECT_THROW(gated.run(), UserError);
}

TEST(Gate, launchFails) {
  Gated gated(json::array({}), Plant::Launch);
  expectFailsAt(gated.run(), Stage::Launch, "launch: planted");
  EXPECT_EQ(gated.device.runs, 1);
}

TEST(Gate, aLostDeviceFailsTheLaunchAndSkipsTheRest) {
  Gated gated(json::array({}), Plant::Lost);
  gated.options.check.variants.clear();
  expectFailsAt(gated.run(), Stage::Launch, "device: planted");
  const StageResult &next = gated.report.variants.at(1).at(Stage::Build);
  EXPECT_EQ(next.verdict, Verdict::Skipped);
  EXPECT_THAT(next.why, HasSubstr("the device was lost by fake_f16_d16_causal"));
}

TEST(Gate, sanityFails) {
  Gated nan(json::array({}), Plant::Nan), unwritten(json::array({}), Plant::Unwritten);
  expectFailsAt(nan.run(), Stage::Sanity, "nan: 1 of");
  expectFailsAt(unwritten.run(), Stage::Sanity, "unwritten: 1 of");
}

TEST(Gate, correctnessFails) {
  Gated gated(json::array({}), Plant::WrongElement);
  expectFailsAt(gated.run(), Stage::Correctness, "error: |O - ref| is");
  EXPECT_THAT(gated.run().at(Stage::Correctness).why, HasSubstr("again: fagen-run check"));
}

TEST(Gate, theGateOnErrorFails) {
  Gated gated(json::array({gate("error", "<=", 1e-9)}));
  expectFailsAt(gated.run(), Stage::Correctness, "which fails 'error <= 1e-09'");
}

TEST(Gate, determinismFails) {
  Gated gated(json::array({}), Plant::Nondeterminism);
  expectFailsAt(gated.run(), Stage::Determinism, "run 3 gave other bits of O");
}

TEST(Gate, speedFailsBeyondTheBaseline) {
  Gated gated(json::array({gate("time", "<", 0.95, "sdpa")}));
  gated.record({{{"name", kMain}, {"us", 99}}, {{"name", "sdpa:cudnn"}, {"us", 100}}});
  expectFailsAt(gated.run(), Stage::Speed,
                "on 1,8,8,512,512,16 causal time is 0.990 (0.990 to 0.990) of sdpa:cudnn, which fails 'time < 0.95");
}

TEST(Gate, speedFailsWhereTheIntervalIsNotSure) {
  Gated gated(json::array({gate("time", "<", 0.95, "sdpa")}));
  gated.record({{{"name", kMain}, {"median_us", 94.8}, {"noise", 0.02}},
                {{"name", "sdpa:cudnn"}, {"median_us", 100}, {"noise", 0.02}}});
  expectFailsAt(gated.run(), Stage::Speed, "which does not surely pass 'time < 0.95");
}

TEST(Gate, speedPasses) {
  Gated gated(json::array({gate("time", "<", 0.95, "sdpa"), gate("time", "<", 100)}));
  gated.record({{{"name", kMain}, {"us", 90}}, {{"name", "sdpa:cudnn"}, {"us", 100}}});
  const GatedVariant &variant = gated.run();
  EXPECT_EQ(variant.at(Stage::Speed).verdict, Verdict::Pass) << variant.at(Stage::Speed).why;
  EXPECT_THAT(variant.at(Stage::Speed).why, HasSubstr("time is 90.00 us"));
  gated.options.strict = true;
  EXPECT_TRUE(gated.report.passed(gated.options));
}

json drawing(const char *name, double us, double watts) { return {{"name", name}, {"us", us}, {"watts", watts}}; }

TEST(Gate, joulesPassAndFail) {
  Gated gated(json::array({gate("joules", "<", 0.95, "cudnn"), gate("joules", "<", 0.05)}));
  gated.record({drawing(kMain, 90, 500), drawing("sdpa:cudnn", 80, 700)}); // 45 and 56 mJ; slower, and cheaper
  const GatedVariant &variant = gated.run();
  EXPECT_EQ(variant.at(Stage::Speed).verdict, Verdict::Pass) << variant.at(Stage::Speed).why;
  EXPECT_THAT(variant.at(Stage::Speed).why, HasSubstr("joules are 0.804 (0.804 to 0.804) of sdpa:cudnn"));
  EXPECT_THAT(variant.at(Stage::Speed).why, HasSubstr("a launch takes 0.045 J (0.045 to 0.045)"));
  EXPECT_TRUE(gated.report.times.results.empty()); // no gate on time: nothing is timed in bursts
  gated.record({drawing(kMain, 90, 600), drawing("sdpa:cudnn", 80, 700)});
  expectFailsAt(gated.run(), Stage::Speed,
                "joules are 0.964 (0.964 to 0.964) of sdpa:cudnn, which fails 'joules < 0.95");
}

TEST(Gate, timesOfBurstsStandNextToJoulesOfTheSteadyState) {
  Gated gated(json::array({gate("time", "<", 100), gate("joules", "<", 0.05)}));
  gated.record({drawing(kMain, 90, 500)});
  EXPECT_EQ(gated.run().at(Stage::Speed).verdict, Verdict::Pass);
  EXPECT_EQ(gateJson(gated.report, gated.options)["time"]["state"], "burst");
  EXPECT_EQ(gateJson(gated.report, gated.options)["steady"]["state"], "steady");
  gated.options.time.state = PowerState::Steady; // one round is enough
  EXPECT_EQ(gated.run().at(Stage::Speed).verdict, Verdict::Pass);
  EXPECT_FALSE(gateJson(gated.report, gated.options).contains("steady"));
}

TEST(Gate, joulesThatNobodyTellsAreSkipped) {
  Gated gated(json::array({gate("joules", "<", 1)}));
  gated.record({{{"name", kMain}, {"us", 90}}});
  const GatedVariant &variant = gated.run();
  EXPECT_EQ(variant.at(Stage::Speed).verdict, Verdict::Skipped);
  EXPECT_THAT(variant.at(Stage::Speed).why, HasSubstr("'joules < 1': joules are not told: the record has no watts"));
}

TEST(Gate, absoluteTimesFail) {
  Gated gated(json::array({gate("time", "<", 80)}));
  gated.record({{{"name", kMain}, {"us", 90}}});
  expectFailsAt(gated.run(), Stage::Speed, "time is 90.00 us (90.00 to 90.00), which fails 'time < 80'");
}

TEST(Gate, aLaunchThatFailsWhileTimedFailsSpeed) {
  Gated gated(json::array({gate("time", "<", 80)}));
  gated.record({{{"name", kMain}, {"fails", "out of luck"}}});
  expectFailsAt(gated.run(), Stage::Speed, "out of luck");
}

TEST(Gate, speedIsSkippedWhereItCannotBeJudged) {
  auto skipped = [](Gated &gated, const std::string &why) {
    const StageResult &speed = gated.run().at(Stage::Speed);
    EXPECT_EQ(speed.verdict, Verdict::Skipped);
    EXPECT_THAT(speed.why, HasSubstr(why));
  };
  Gated none(json::array({gate("time", "<", 80)}));
  skipped(none, "times need a GPU of sm_89; this is the fake");
  Gated other(json::array({gate("time", "<", 80)}));
  other.record({{{"name", kMain}, {"us", 1}}}, 90);
  skipped(other, "it is for sm_89, and recorded is sm_90");
  Gated baseline(json::array({gate("time", "<", 1, "cublas")}));
  baseline.record({{{"name", kMain}, {"us", 1}}, {{"name", "cublas-unfused"}, {"refuses", "libcublas is not found"}}});
  skipped(baseline, "cublas-unfused did not run: cublas-unfused: libcublas is not found");
  Gated shape(json::array({gate("time", "<", 80)}));
  shape.record({{{"name", "fake_unaligned_f16_d16_causal"}, {"us", 1}}});
  shape.options.check.variants = {"fake_unaligned_f16_d16_causal"}; // dispatch never picks it
  skipped(shape, "none of the shapes");
}

TEST(Gate, whatIsNotRequiredIsNotClaimed) {
  Gated gated(json::array());
  const GatedVariant &variant = gated.run();
  EXPECT_EQ(variant.at(Stage::Resources).verdict, Verdict::NotRequired);
  EXPECT_EQ(variant.at(Stage::Speed).verdict, Verdict::NotRequired);
  gated.options.strict = true;
  EXPECT_TRUE(gated.report.passed(gated.options));
}

TEST(Gate, kernelsThatAccumulateInF16HaveTheirOwnCases) {
  Gated gated(json::array());
  for (json &row : gated.set.manifest["rows"])
    row["accum"] = "f16";
  gated.options.check.cases = {parseCase("1,2,1,9,12,16 accum=f16 mask=causal")};
  EXPECT_EQ(gated.run().at(Stage::Determinism).verdict, Verdict::Pass);
}

TEST(Gate, namesOfBaselines) {
  EXPECT_EQ(baselineOfGate("fa2"), "sdpa:flash");
  EXPECT_EQ(baselineOfGate("cudnn"), "sdpa:cudnn");
  EXPECT_EQ(baselineOfGate("cublas"), "cublas-unfused");
  EXPECT_EQ(baselineOfGate("sdpa"), "sdpa");
}

TEST(Gate, report) {
  Gated gated(json::array({gate("time", "<", 0.95, "sdpa")}), Plant::Lse);
  gated.run();
  EXPECT_THAT(gateTable(gated.report),
              HasSubstr("sm_89   pass   none       pass    pass    FAIL         -            -"));
  EXPECT_THAT(gateReasons(gated.report), HasSubstr("fake_f16_d16_causal on sm_89 fails correctness: lse: "));
  std::string xml = gateJUnit(gated.report, gated.options);
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"fake\" tests=\"7\" failures=\"1\" skipped=\"2\">"));
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"fake_f16_d16_causal.sm_89\" name=\"build\"></testcase>"));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"an earlier stage failed\"/>"));
  EXPECT_THAT(xml, HasSubstr("on &quot;1,2,1,9,12,16 mask=causal&quot;"));
  Json result = gateJson(gated.report, gated.options);
  EXPECT_EQ(result["passed"], false);
  EXPECT_EQ(result["variants"][0]["stages"][4]["verdict"], "fail");
  EXPECT_EQ(result["require"]["fake"][0], "time < 0.95 * sdpa");
}

TEST(Gate, gatesOfAManifestAreRead) {
  FakeSet set;
  set.manifest["gates"] = {gate("time", "<", 0.95, "sdpa")};
  auto loaded = set.load();
  ASSERT_EQ(loaded->gates().size(), 1u);
  EXPECT_EQ(loaded->gates()[0].baseline, "sdpa");
  EXPECT_TRUE(loaded->gates()[0].holds(0.94));
  EXPECT_FALSE(loaded->gates()[0].holds(0.95));
  set.manifest["gates"][0]["relation"] = "=<";
  EXPECT_THROW(set.load(), UserError);
  set.manifest["gates"][0] = gate("tine", "<", 1);
  EXPECT_THROW(set.load(), UserError);
}

} // namespace
