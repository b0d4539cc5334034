// fagen: steady cases follow a row's schedule and the device's number of SMs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/check/steady.h"
#include "../FakeSet.h"
#include "lab/cases/abi.h"
#include "lab/device/case_memory.h"
#include "runtime/src/state.h"

#include <cmath>

using namespace fagen::lab;

namespace {

constexpr int64_t kRows = 16, kKeys = 32; // of the fake set's tiles

/// The steady cases of the fake set's first row, after `change` of its manifest, on a device of so many SMs.
class Steady : public testing::Test {
protected:
  std::vector<Case> casesOf(uint32_t sms, const std::function<void(nlohmann::json &row)> &change) {
    change(fake.manifest["rows"][0]);
    set = fake.load();
    fagen_device_describe(89, sms, &device);
    return steadyCases(*set, *set->rows()[0], device);
  }
  ~Steady() override { fagen_device_destroy(device); }

  int64_t splitsOf(const Case &c) {
    const Placements places(c);
    fagen_problem problem = describeProblem(c, places);
    problem.variant = set->rows()[0]->variant;
    const fagen_table *table = set->table();
    fagen_choice choice = makeAbi<fagen_choice>();
    EXPECT_EQ(fagen_query(&table, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
    return fagen::loadState(choice).params.splits;
  }

  FakeSet fake;
  std::unique_ptr<KernelSet> set;
  fagen_device *device = nullptr;
};

/// Key tiles that the first row of a head sees whole: those of interior loops.
int64_t wholeTiles(const Case &c) { return visibleKeys(c.shape, c.mask, 0) / kKeys; }
bool isSteep(const Case &c) { return c.inputs == Inputs::Rising && wholeTiles(c) <= 3; }
bool isLong(const Case &c) { return c.shape.seqQ >= kRows - 1 && !isSteep(c); }

TEST_F(Steady, eachRingGoesRoundTwice) {
  int64_t count = 0;
  bool crosses = false, rises = false, leaps = false;
  for (const Case &c : casesOf(16, [](nlohmann::json &row) { row["plan"]["schedule"]["stages"] = 4; }))
    if (isLong(c)) {
      ++count;
      EXPECT_GE(wholeTiles(c), 2 * 4 + 1) << formatCase(c);
      const int64_t first = visibleKeys(c.shape, c.mask, 0), last = visibleKeys(c.shape, c.mask, c.shape.seqQ - 1);
      crosses |= first % kKeys && last / kKeys > first / kKeys; // two edge steps
      rises |= c.inputs == Inputs::Rising;
      leaps |= c.inputs == Inputs::Leaps && c.shape.heads > 1;
    }
  EXPECT_GE(count, 2);
  EXPECT_TRUE(crosses && rises && leaps);
}

/// Scaled scores rise from -150 to 150 along the keys. A row's sum in bf16 is 2^-20 when the last key tile comes:
/// beyond 2^106 then, where no factor in f32 brings it down, and a number.
TEST_F(Steady, oneRisesTooFarForAFactor) {
  const auto cases = casesOf(16, [](nlohmann::json &) {});
  const auto steep = std::find_if(cases.begin(), cases.end(), isSteep);
  ASSERT_NE(steep, cases.end());
  const double bitsOfKey = 300.0 / steep->shape.seqKv / std::log(2.0);
  const double bits = bitsOfKey * static_cast<double>(steep->shape.seqKv % kKeys) - 20;
  EXPECT_TRUE(bits > 106 && bits < 120) << formatCase(*steep);
  EXPECT_NE(visibleKeys(steep->shape, steep->mask, 0) % kKeys, 0) << formatCase(*steep); // of a masked tile
}

TEST_F(Steady, withAndWithoutAPartOfAKeyTile) {
  bool with = false, without = false;
  for (const Case &c : casesOf(16, [](nlohmann::json &row) { row["mask"] = "none"; }))
    if (isLong(c))
      (c.shape.seqKv % kKeys ? with : without) = true;
  EXPECT_TRUE(with && without);
}

TEST_F(Steady, shortRingsTakeSixSteps) {
  for (const Case &c : casesOf(16, [](nlohmann::json &) {})) {
    EXPECT_TRUE(!isLong(c) || wholeTiles(c) >= 6) << formatCase(c);
  }
}

TEST_F(Steady, moreHeadsAndBatchesThanTheSmallestProblems) {
  const auto cases = casesOf(16, [](nlohmann::json &) {});
  EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [](const Case &c) {
    return c.shape.batch >= 3 && c.shape.heads >= 6 && c.shape.kvHeads >= 3 && c.shape.heads > c.shape.kvHeads;
  }));
}

TEST_F(Steady, aPersistentCtaTakesThreeTilesOrTwoLongOnes) {
  int64_t most = 0, mostLong = 0; // a head is a tile
  bool fills = false, isBrief = false;
  for (const Case &c : casesOf(12, [](nlohmann::json &row) {
         row["launches"][0]["grid"] = "persistent";
         row["plan"]["schedule"]["stages"] = 3;
         row["tile_rows"] = 48;
       })) {
    const bool isLong = c.shape.seqQ >= 47;
    int64_t &tiles = isLong ? mostLong : most;
    if (!isLong) {
      const int64_t keyTiles = (visibleKeys(c.shape, c.mask, c.shape.seqQ - 1) + kKeys - 1) / kKeys;
      fills |= keyTiles == 3;
      isBrief |= keyTiles < 3;
    }
    tiles = std::max(tiles, c.shape.batch * c.shape.heads);
  }
  EXPECT_GE(most, 3 * 12);
  EXPECT_GE(mostLong, 2 * 12);
  EXPECT_TRUE(fills && isBrief);
}

TEST_F(Steady, eachSplitRefillsItsRing) {
  for (const Case &c : casesOf(16, [](nlohmann::json &row) {
         row["launches"][0]["grid"] = "splits";
         row["plan"]["schedule"]["stages"] = 3;
       }))
    if (isLong(c)) {
      const int64_t splits = splitsOf(c);
      EXPECT_GE(splits, 2) << formatCase(c);
      EXPECT_GE(wholeTiles(c) / splits, 2 * 3 + 1) << formatCase(c);
    }
}

/// A GPU on which nothing is split, and one on which much is.
TEST_F(Steady, endsForAnyNumberOfSms) {
  for (const uint32_t sms : {1u, 7u, 132u, 1000u}) {
    const auto cases = casesOf(sms, [](nlohmann::json &row) { row["launches"][0]["grid"] = "splits"; });
    for (const Case &c : cases)
      EXPECT_LE(c.shape.seqKv, 130 * 7 * kKeys) << formatCase(c);
    fagen_device_destroy(device);
    device = nullptr;
  }
}

} // namespace
