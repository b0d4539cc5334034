// fagen: what instrumented kernels leave is read, summed up, doubted and laid out as a trace.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/profile/breakdown.h"
#include "lab/profile/stage_trace.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace fagen;
using namespace fagen::lab;
using device::StageEvent;
using device::WarpRecord;

namespace {

constexpr int kWarps = 2;

/// A row of two warps, and a workspace of `ctas` CTAs.
struct Fixture {
  explicit Fixture(bool traces, int ctas = 1) : traces(traces), ctas(ctas) {
    if (traces)
      parts.push_back({"trace", nullptr, 0, 128});
    parts.push_back({"stages", nullptr, 0, 128});
    row.variant = "fake";
    row.launches[0].threads = 32 * kWarps;
    row.workspace = parts.data();
    row.workspace_count = static_cast<uint32_t>(parts.size());
    workspace.resize(eventBytes() + ctas * kWarps * sizeof(WarpRecord));
  }
  size_t eventBytes() const { return traces ? device::trace_bytes(kWarps) : 0; }
  void put(int index, const WarpRecord &record) {
    std::memcpy(workspace.data() + eventBytes() + index * sizeof(record), &record, sizeof(record));
  }
  void put(int index, int event, StageEvent value) {
    std::memcpy(workspace.data() + (index * device::kTraceEvents + event) * sizeof(value), &value, sizeof(value));
  }
  Breakdown read() {
    Breakdown b;
    b.row = &row;
    b.warps = readTrace(row, ctas, workspace, b.failures);
    return b;
  }

  bool traces;
  int ctas;
  std::vector<fagen_workspace> parts;
  fagen_row row{};
  std::vector<char> workspace;
};

WarpRecord recordOf(uint64_t begin, uint64_t end, unsigned qk, unsigned pv) {
  WarpRecord record{};
  record.begin[0] = static_cast<unsigned>(begin);
  record.begin[1] = static_cast<unsigned>(begin >> 32);
  record.end[0] = static_cast<unsigned>(end);
  record.end[1] = static_cast<unsigned>(end >> 32);
  record.begin_ns[0] = 5000;
  record.end_ns[0] = 5000 + static_cast<unsigned>((end - begin) / 2); // 2 GHz
  record.clocks[static_cast<int>(device::Stage::kQk)] = qk;
  record.clocks[static_cast<int>(device::Stage::kPv)] = pv;
  return record;
}

TEST(Breakdown, stagesOfWarps) {
  Fixture fixture(false);
  fixture.put(0, recordOf(1000, 2000, 600, 400));
  fixture.put(1, recordOf(1000, 3000, 500, 1500));
  Breakdown b = fixture.read();
  EXPECT_TRUE(b.failures.empty());
  ASSERT_EQ(b.warps.size(), 2u);
  auto stages = b.stages();
  ASSERT_EQ(stages.size(), 2u); // the others never ran
  EXPECT_EQ(stages[0].name, "QK");
  EXPECT_EQ(stages[0].clocks.median, 550);
  EXPECT_EQ(stages[1].clocks.max, 1500);
  EXPECT_DOUBLE_EQ(stages[0].share.max, 0.6);
  EXPECT_DOUBLE_EQ(stages[0].share.min, 0.25);
  EXPECT_EQ(b.span().max, 2000);
  EXPECT_DOUBLE_EQ(b.megahertz(), 2000);
  EXPECT_TRUE(b.addsUp());
}

TEST(Breakdown, untoldStepsAreSharedOut) {
  Fixture fixture(false);
  WarpRecord sampled = recordOf(1000, 2000, 100, 50), tooShort = recordOf(1000, 2000, 600, 300);
  sampled.clocks[device::kStageCount + static_cast<int>(device::Stage::kQk)] = 60;
  sampled.clocks[device::kStageCount + static_cast<int>(device::Stage::kPv)] = 40;
  sampled.clocks[device::kUntoldSum] = 750; // 60 and 40 of 100 are those of 850
  tooShort.clocks[device::kUntoldSum] = 100;
  fixture.put(0, sampled);
  fixture.put(1, tooShort);
  Breakdown b = fixture.read();
  ASSERT_EQ(b.warps.size(), 2u);
  EXPECT_EQ(b.warps[0].sum(), 1000u);
  EXPECT_DOUBLE_EQ(b.warps[0].byStage()[static_cast<int>(device::Stage::kQk)], 610);
  EXPECT_DOUBLE_EQ(b.warps[0].byStage()[static_cast<int>(device::Stage::kPv)], 390);
  auto stages = b.stages();
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[2].name, "untold steps");
  EXPECT_EQ(stages[2].clocks.min, 0);
  EXPECT_EQ(stages[2].clocks.max, 100);
  EXPECT_DOUBLE_EQ(b.untold().max, 0.75);
  EXPECT_TRUE(b.addsUp());
}

/// Four warps of which the first loads, and four that compute, after the counter of tiles.
TEST(Breakdown, rolesAndTiles) {
  constexpr int kWarpsOfRoles = 8;
  std::vector<fagen_workspace> parts = {{"tile_counter", nullptr, 0, 4}, {"stages", nullptr, 0, 128}};
  fagen_row row{};
  row.variant = "fake";
  row.launches[0].threads = 32 * kWarpsOfRoles;
  row.workspace = parts.data();
  row.workspace_count = 2;
  std::vector<char> workspace(device::kRecordAlignment + 3 * kWarpsOfRoles * sizeof(WarpRecord)); // a CTA's too many
  auto put = [&](int index, WarpRecord record, unsigned tiles, bool loads) {
    record.clocks[device::kTilesSum] = tiles;
    record.sm = 7 | (loads ? device::kLoads : 0);
    std::memcpy(workspace.data() + device::kRecordAlignment + index * sizeof(record), &record, sizeof(record));
  };
  for (int cta = 0; cta < 2; ++cta) {
    put(cta * kWarpsOfRoles, recordOf(1000, 1500, 500, 0), 2 + cta, true);
    for (int warp = 4; warp < (cta ? 7 : 8); ++warp)
      put(cta * kWarpsOfRoles + warp, recordOf(1000, 2200, 600, 600), 2 + cta, false);
  }
  Breakdown b;
  b.row = &row;
  b.warps = readTrace(row, 2, workspace, b.failures);
  ASSERT_EQ(b.failures.size(), 1u);
  EXPECT_EQ(b.failures[0].message, "warp 7 of CTA 1 left no record");
  const std::vector<Breakdown> roles = b.byRole();
  ASSERT_EQ(roles.size(), 2u);
  EXPECT_STREQ(roles[0].role(), "math warps");
  EXPECT_STREQ(roles[1].role(), "load warps");
  EXPECT_EQ(roles[0].warps.size(), 7u);
  EXPECT_EQ(roles[1].warps.size(), 2u);
  EXPECT_EQ(roles[0].warps[0].sm, 7u);
  EXPECT_EQ(roles[1].tiles().min, 2);
  EXPECT_EQ(roles[1].tiles().max, 3);
  EXPECT_DOUBLE_EQ(roles[0].stages()[0].perTile, 300); // four of seven warps had two tiles
  EXPECT_TRUE(b.addsUp());
  b.warps = readTrace(row, 4, workspace, b.failures);
  EXPECT_EQ(b.failures.back().message, "the workspace of 3200 B has no record 24");
}

TEST(Breakdown, fivePercentOfEachWarp) {
  for (auto [sum, fits] : {std::pair{950u, true}, {949u, false}, {1050u, true}, {1051u, false}}) {
    Fixture fixture(false);
    fixture.put(0, recordOf(1000, 2000, 1000, 0));
    fixture.put(1, recordOf(1000, 2000, sum, 0));
    EXPECT_EQ(fixture.read().addsUp(), fits) << sum;
  }
}

TEST(Breakdown, clocksBeyond32Bits) {
  const uint64_t begin = (uint64_t{7} << 32) - 100;
  Fixture fixture(false);
  fixture.put(0, recordOf(begin, begin + 200, 150, 50));
  fixture.put(1, recordOf(begin, begin + (uint64_t{1} << 32), 150, 50));
  Breakdown b = fixture.read();
  ASSERT_EQ(b.warps.size(), 1u);
  EXPECT_EQ(b.warps[0].span(), 200u);
  ASSERT_EQ(b.failures.size(), 1u);
  EXPECT_EQ(b.failures[0].message,
            "warp 1 of CTA 0 ran for 4294967296 clocks; sums hold less than 2^32: take a smaller shape");
}

TEST(Breakdown, recordsThatMakeNoSense) {
  Fixture fixture(false, 2);
  fixture.put(0, recordOf(1000, 2000, 600, 400));
  fixture.put(1, recordOf(2000, 1000, 600, 400));
  fixture.put(2, recordOf(1000, 2000, 600, 400));
  Breakdown b = fixture.read();
  ASSERT_EQ(b.failures.size(), 2u);
  EXPECT_EQ(b.failures[0].message, "warp 1 of CTA 0 ended at clock 1000, before its begin at 2000");
  EXPECT_EQ(b.failures[1].message, "warp 1 of CTA 1 left no record");
  EXPECT_FALSE(Fixture(false, 0).read().addsUp()); // nothing is no agreement
}

TEST(Breakdown, traceOfEvents) {
  const uint64_t begin = (uint64_t{3} << 32) - 100; // the low half comes round in the middle
  Fixture fixture(true);
  WarpRecord first = recordOf(begin, begin + 1000, 400, 600), second = recordOf(begin + 50, begin + 1050, 1000, 0);
  first.marks = 2;
  first.sm = second.sm = 17;
  second.begin_ns[0] = 9000; // less exact than the clock of the same SM
  fixture.put(0, first);
  fixture.put(1, second);
  fixture.put(0, 0, {static_cast<unsigned>(begin + 400), static_cast<unsigned>(device::Stage::kQk)});
  fixture.put(0, 1, {static_cast<unsigned>(begin + 1000), static_cast<unsigned>(device::Stage::kPv)});
  second.marks = device::kTraceEvents + 3;
  fixture.put(1, second);
  for (int i = 0; i < device::kTraceEvents; ++i)
    fixture.put(1, i, {static_cast<unsigned>(begin + 51 + i), static_cast<unsigned>(device::Stage::kQk)});
  Breakdown b = fixture.read();
  for (WarpTimes &warp : b.warps)
    warp.endNs = warp.beginNs + warp.span() / 2;
  lab::Json trace = stageTrace(b);
  EXPECT_EQ(trace["otherData"]["events_beyond_the_buffer"], 3);
  const lab::Json &events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 3u + 2 + device::kTraceEvents);
  EXPECT_EQ(events[0]["args"]["name"], "CTA 0 on SM 17");
  EXPECT_EQ(events[1]["args"]["name"], "warp 0");
  EXPECT_EQ(events[2]["name"], "QK");
  EXPECT_EQ(events[2]["ts"], 0.0);
  EXPECT_EQ(events[2]["dur"], 0.2);
  EXPECT_EQ(events[3]["name"], "PV");
  EXPECT_EQ(events[3]["args"]["clocks"], 600);
  EXPECT_EQ(events[5]["tid"], 1);
  EXPECT_DOUBLE_EQ(events[5]["ts"].get<double>(), 0.025);
}

} // namespace
