// fagen: CTAs that count themselves in global memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

namespace fagen::emulator::countsTest {
namespace {

const std::string kFile = "counts.cu";
constexpr unsigned kCtas = 6;

// As in counts.cu.
enum Omission {
  kBarrierBefore = 1,
  kFenceBefore = 2,
  kFenceBehind = 4,
  kBarrierBehind = 8,
  kLastOne = 16,
  kOwnCounter = 32
};

Report run(int omitted, std::vector<float> &out, unsigned workers = 0) {
  out.assign(64 + 64 * kCtas, 0.0f);
  const Launch launch = {"merge", kCtas, 32, 0, {{out.data(), 4 * out.size(), true, "out"}}, workers};
  const Arguments arguments = {nullptr, out.data(), omitted};
  return kernels(kFile).launch(launch, &arguments, sizeof(arguments), {});
}

TEST(Counts, LastOneSeesWhatAllStored) {
  for (const unsigned workers : {1u, 3u}) {
    std::vector<float> out;
    const Report report = run(0, out, workers);
    EXPECT_TRUE(report.ok) << text(report);
    for (unsigned lane = 0; lane < 32; ++lane)
      EXPECT_EQ(out[lane], 15.0f + kCtas);
  }
}

// Whatever is missing, the accesses of two CTAs, or of two lanes, are no longer ordered.
TEST(Counts, WhatIsLeftOutIsARace) {
  for (const int omitted : {kBarrierBefore, kFenceBefore, kFenceBehind, kBarrierBehind, kLastOne, kOwnCounter})
    for (const unsigned workers : {1u, 3u}) {
      std::vector<float> out;
      const Report report = run(omitted, out, workers);
      EXPECT_FALSE(report.ok) << omitted;
      ASSERT_FALSE(report.findings.empty());
      EXPECT_EQ(report.findings[0].kind, "race") << omitted << '\n' << text(report);
      EXPECT_NE(report.findings[0].message.find("and nothing orders the two"), std::string::npos) << text(report);
    }
}

TEST(Counts, OutsideOfBuffersNobodyCounts) {
  std::vector<float> out(64);
  const Launch launch = {"merge", 1, 32, 0, {{out.data(), 4 * 32, true, "out"}}};
  const Arguments arguments = {nullptr, out.data(), 0};
  const Report report = kernels(kFile).launch(launch, &arguments, sizeof(arguments), {});
  ASSERT_FALSE(report.ok);
  EXPECT_EQ(report.findings[0].kind, "out-of-bounds") << text(report);
  EXPECT_EQ(out[32], 0.0f);
}

} // namespace
} // namespace fagen::emulator::countsTest
