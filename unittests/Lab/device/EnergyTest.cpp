// fagen: energy by a counter that steps: the arithmetic, and the meter on a library that stands in for NVML.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/device/energy_meter.h"
#include "lab/device/nvml.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <thread>

using namespace fagen::lab;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

constexpr double kWatts = 400, kStep = 0.1, kPollEvery = 0.002;

/// What polls from `begin` to `end` see of a counter that steps every kStep seconds; `before`: the watts until `begin`.
Energy counted(double begin, double end, double before = kWatts) {
  CounterSteps steps(begin);
  for (double now = begin; now < end; now += kPollEvery) {
    const double stepped = std::floor(now / kStep) * kStep; // what was drawn until then, 1000 J at the moment `begin`
    steps.poll(now, now + 0.0005, 1000 + (stepped - begin) * (stepped < begin ? before : kWatts));
  }
  return steps.energy();
}

TEST(Energy, isThatBetweenTheStepsOfTheCounter) {
  // Loads begin and end anywhere between two steps: up to two of them, 80 J, would be wrong of 500 J by two readings.
  for (double begin : {10.0, 10.01, 10.05, 10.099}) {
    const Energy energy = counted(begin, begin + 1.25);
    ASSERT_TRUE(energy.told()) << energy.missing;
    EXPECT_GE(energy.seconds, 0.9);
    EXPECT_LE(energy.error, 2 * (kPollEvery + 0.0005) / energy.seconds);
    EXPECT_NEAR(energy.watts(), kWatts, kWatts * energy.error) << "begins at " << begin;
  }
}

TEST(Energy, whatRanBeforeIsNotInIt) {
  const Energy alone = counted(10.05, 11.3), after = counted(10.05, 11.3, 0);
  EXPECT_EQ(alone.joules, after.joules);
}

TEST(Energy, ofAShortLoadIsNotTold) {
  const Energy energy = counted(10.05, 10.55);
  EXPECT_FALSE(energy.told());
  EXPECT_EQ(energy.watts(), 0);
  EXPECT_THAT(energy.missing, HasSubstr("s apart; 0.5 are needed"));
}

TEST(Energy, ofACounterThatStandsStillIsNotTold) {
  CounterSteps steps(0);
  for (int poll = 0; poll < 2000; ++poll)
    steps.poll(poll * 1e-3, poll * 1e-3, 5);
  EXPECT_THAT(steps.energy().missing, HasSubstr("are 0.00 s apart"));
}

/// A GPU that draws 500 W, by a library as NVML is.
class FakeNvml : public testing::Test {
protected:
  void SetUp() override { setenv("FAKE_STEP_MS", "50", 1); }
  void TearDown() override {
    unsetenv("FAKE_NO_ENERGY");
    unsetenv("FAKE_GPUS");
  }
};

TEST_F(FakeNvml, isMeteredInAThread) {
  Nvml nvml("0000:18:00.0", FAGEN_FAKE_NVML);
  ASSERT_EQ(nvml.missing(), "");
  EXPECT_EQ(nvml.read().watts, 500);
  EnergyMeter meter([&] { return nvml.joules(); }, nvml.missing());
  meter.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(900));
  const Energy energy = meter.end();
  ASSERT_TRUE(energy.told()) << energy.missing;
  EXPECT_GE(energy.seconds, kLeastEnergySeconds);
  EXPECT_NEAR(energy.watts(), 500, 500 * energy.error + 0.01);
}

TEST_F(FakeNvml, withoutACounterSaysSo) {
  setenv("FAKE_NO_ENERGY", "1", 1);
  EXPECT_THAT(Nvml("", FAGEN_FAKE_NVML).missing(), HasSubstr("tells no energy of this GPU"));
  setenv("FAKE_GPUS", "0", 1);
  EXPECT_THAT(Nvml("", FAGEN_FAKE_NVML).missing(), HasSubstr("finds no GPU"));
}

TEST(Nvml, thatIsNotHereSaysSo) {
  Nvml nvml("", "libno-such-nvml.so.1");
  EXPECT_THAT(nvml.missing(), StartsWith("NVML is not here: libno-such-nvml.so.1"));
  EXPECT_EQ(nvml.joules(), 0);
  EnergyMeter meter([&] { return nvml.joules(); }, nvml.missing());
  meter.begin();
  EXPECT_EQ(meter.end().missing, nvml.missing());
}

} // namespace
