// fagen: where the time of a launch goes, by stage.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "breakdown.h"
#include "lab/support/statistics.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <numeric>

namespace fagen::lab {

using device::StageEvent;
using device::WarpRecord;

/// Warps other than the one that loads.
static constexpr int kGroupWarps = 4;

static uint64_t total(const std::array<uint64_t, kStageCount> &clocks) {
  return std::accumulate(clocks.begin(), clocks.end(), uint64_t{0});
}

uint64_t WarpTimes::sum() const { return total(clocks) + total(sampled) + untold; }

std::array<double, kStageCount + 1> WarpTimes::byStage() const {
  std::array<double, kStageCount + 1> all{};
  const uint64_t told = total(sampled);
  const double scale = told ? 1 + static_cast<double>(untold) / static_cast<double>(told) : 0;
  for (int stage = 0; stage < kStageCount; ++stage)
    all[stage] = static_cast<double>(clocks[stage]) + scale * static_cast<double>(sampled[stage]);
  all[kStageCount] = told ? 0 : static_cast<double>(untold);
  return all;
}

static Spread spreadOf(const std::vector<double> &values) {
  if (values.empty())
    return {};
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {median(values), *least, *most};
}

template <typename Figure> static Spread spreadOver(const std::vector<WarpTimes> &warps, Figure figure) {
  std::vector<double> values;
  for (const WarpTimes &warp : warps)
    values.push_back(figure(warp));
  return spreadOf(values);
}

static double shareOf(const WarpTimes &warp, double clocks) {
  return warp.span() ? clocks / static_cast<double>(warp.span()) : 0;
}

std::vector<StageSummary> Breakdown::stages() const {
  std::vector<StageSummary> list;
  for (int stage = 0; stage <= kStageCount; ++stage) {
    StageSummary summary;
    summary.name = stage < kStageCount ? device::kStageNames[stage] : kUntoldName;
    summary.clocks = spreadOver(warps, [&](const WarpTimes &warp) { return warp.byStage()[stage]; });
    summary.share = spreadOver(warps, [&](const WarpTimes &warp) { return shareOf(warp, warp.byStage()[stage]); });
    std::vector<double> ofTiles;
    for (const WarpTimes &warp : warps)
      if (warp.tiles)
        ofTiles.push_back(warp.byStage()[stage] / static_cast<double>(warp.tiles));
    summary.perTile = spreadOf(ofTiles).median;
    if (summary.clocks.max > 0)
      list.push_back(std::move(summary));
  }
  return list;
}

std::vector<Breakdown> Breakdown::byRole() const {
  std::vector<Breakdown> roles;
  for (bool loads : {false, true}) {
    Breakdown role{set, row, testCase, {}, {}};
    std::copy_if(warps.begin(), warps.end(), std::back_inserter(role.warps),
                 [&](const WarpTimes &warp) { return warp.loads == loads; });
    if (!role.warps.empty())
      roles.push_back(std::move(role));
  }
  if (roles.size() > 1)
    roles.front().isOneOfRoles = roles.back().isOneOfRoles = true;
  return roles;
}

const char *Breakdown::role() const {
  return !isOneOfRoles ? "warps" : warps.front().loads ? "load warps" : "math warps";
}

Spread Breakdown::tiles() const {
  return spreadOver(warps, [](const WarpTimes &warp) { return static_cast<double>(warp.tiles); });
}

Spread Breakdown::span() const {
  return spreadOver(warps, [](const WarpTimes &warp) { return static_cast<double>(warp.span()); });
}

Spread Breakdown::sumOverSpan() const {
  return spreadOver(warps, [](const WarpTimes &warp) { return shareOf(warp, static_cast<double>(warp.sum())); });
}

Spread Breakdown::untold() const {
  return spreadOver(warps, [](const WarpTimes &warp) { return shareOf(warp, static_cast<double>(warp.untold)); });
}

bool Breakdown::addsUp() const {
  const Spread ratio = sumOverSpan();
  return !warps.empty() && ratio.min >= 1 - kSumTolerance && ratio.max <= 1 + kSumTolerance;
}

double Breakdown::megahertz() const {
  double clocks = 0, nanoseconds = 0;
  for (const WarpTimes &warp : warps) {
    clocks += static_cast<double>(warp.span());
    nanoseconds += static_cast<double>(warp.endNs - warp.beginNs);
  }
  return nanoseconds > 0 ? clocks / nanoseconds * 1e3 : 0;
}

bool isInstrumented(const fagen_row &row, bool events) {
  return std::any_of(row.workspace, row.workspace + row.workspace_count, [&](const fagen_workspace &part) {
    return std::string_view(part.name) == (events ? "trace" : "stages");
  });
}

void checkWorkspaceLeft(const fagen_row &row, const std::vector<char> &workspace, std::vector<Failure> &failures) {
  if (isInstrumented(row, false) || isInstrumented(row, true))
    return;
  const auto left = std::find_if(workspace.begin(), workspace.end(), [](char byte) { return byte != 0; });
  if (left != workspace.end())
    failures.push_back({"workspace", fmt::format("byte {} of {} is not zero after the launches of {}, and the next "
                                                 "user of the workspace may count on zeros",
                                                 left - workspace.begin(), workspace.size(), row.variant)});
}

static uint64_t wide(const unsigned (&words)[2]) { return uint64_t{words[1]} << 32 | words[0]; }

static WarpTimes readWarp(const WarpRecord &record) {
  WarpTimes times;
  times.sm = record.sm & ~device::kLoads;
  times.loads = record.sm & device::kLoads;
  times.tiles = record.clocks[device::kTilesSum];
  times.begin = wide(record.begin);
  times.end = wide(record.end);
  times.beginNs = wide(record.begin_ns);
  times.endNs = wide(record.end_ns);
  times.marks = record.marks;
  std::copy_n(record.clocks, kStageCount, times.clocks.begin());
  std::copy_n(record.clocks + kStageCount, kStageCount, times.sampled.begin());
  times.untold = record.clocks[device::kUntoldSum];
  return times;
}

/// Why the record cannot be true; empty if it can.
static std::string complaintAbout(const WarpTimes &times) {
  if (times.end == 0)
    return "left no record";
  if (times.end < times.begin)
    return fmt::format("ended at clock {}, before its begin at {}", times.end, times.begin);
  if (times.span() >> 32)
    return fmt::format("ran for {} clocks; sums hold less than 2^32: take a smaller shape", times.span());
  return {};
}

std::optional<WarpTimes> readRecord(const void *record, int64_t cta, int warp, std::vector<Failure> &failures) {
  WarpRecord words;
  std::memcpy(&words, record, sizeof(words));
  WarpTimes times = readWarp(words);
  times.cta = cta;
  times.warp = warp;
  const std::string complaint = complaintAbout(times);
  if (complaint.empty())
    return times;
  failures.push_back({"breakdown", fmt::format("warp {} of CTA {} {}", warp, cta, complaint)});
  return std::nullopt;
}

/// Bytes before events and records: the counter that tiles come from.
static size_t bytesBefore(const fagen_row &row) {
  const std::string_view first = row.workspace_count ? row.workspace[0].name : "";
  return first == "stages" || first == "trace" ? 0 : device::kRecordAlignment;
}

std::vector<WarpTimes> readTrace(const fagen_row &row, int64_t ctas, const std::vector<char> &workspace,
                                 std::vector<Failure> &failures) {
  const int warps = static_cast<int>(row.launches[0].threads / 32);
  const bool traces = isInstrumented(row, true);
  const size_t before = bytesBefore(row), events = traces ? device::trace_bytes(warps) : 0;
  std::vector<WarpTimes> all;
  bool isBesideLoader = false;
  for (size_t i = 0; i < static_cast<size_t>(ctas * warps); ++i) {
    const size_t at = before + events + i * sizeof(WarpRecord);
    if (at + sizeof(WarpRecord) > workspace.size()) {
      failures.push_back({"breakdown", fmt::format("the workspace of {} B has no record {}", workspace.size(), i)});
      break;
    }
    WarpRecord record;
    std::memcpy(&record, workspace.data() + at, sizeof(WarpRecord));
    WarpTimes times = readWarp(record);
    times.cta = static_cast<int64_t>(i) / warps;
    times.warp = static_cast<int>(i % warps);
    isBesideLoader = times.loads || (isBesideLoader && times.warp % kGroupWarps != 0);
    if (isBesideLoader && !times.loads && times.end == 0)
      continue;
    if (std::string complaint = complaintAbout(times); !complaint.empty()) {
      failures.push_back({"breakdown", fmt::format("warp {} of CTA {} {}", times.warp, times.cta, complaint)});
      continue;
    }
    if (traces && times.cta < device::kTracedCtas) {
      times.events.resize(std::min<uint64_t>(times.marks, device::kTraceEvents));
      std::memcpy(times.events.data(), workspace.data() + before + i * device::kTraceEvents * sizeof(StageEvent),
                  times.events.size() * sizeof(StageEvent));
    }
    all.push_back(std::move(times));
  }
  return all;
}

Breakdown runBreakdown(TestDevice &device, const KernelSet &set, const fagen_row &row, const Case &c, uint64_t seed,
                       int warmups) {
  Breakdown result{&set, &row, c, {}, {}};
  CaseMemory memory(device, c, makeInputs(c, seed));
  Launch launch = memory.launchOf(set, row, 0);
  const fagen_table *table = set.table();
  fagen_choice choice = makeAbi<fagen_choice>();
  if (fagen_query(&table, 1, &launch.problem, device.queryDevice(row), &choice) != FAGEN_OK)
    throw UserError(fagen_last_error());
  std::vector<char> workspace(choice.workspace_bytes);
  DeviceMemory trace(device, std::max<int64_t>(static_cast<int64_t>(workspace.size()), 256));
  launch.workspace = trace.address();
  for (int run = 0; run <= warmups && result.failures.empty(); ++run) {
    std::fill(workspace.begin(), workspace.end(), 0);
    device.upload(trace.address(), workspace.data(), static_cast<int64_t>(workspace.size()));
    result.failures = device.run(launch);
  }
  if (!result.failures.empty())
    return result;
  device.download(workspace.data(), trace.address(), static_cast<int64_t>(workspace.size()));
  fagen_choice_info info = makeAbi<fagen_choice_info>();
  if (fagen_choice_get_info(&choice, &info) != FAGEN_OK)
    throw UserError(fagen_last_error());
  result.warps = readTrace(row, static_cast<int64_t>(info.grid), workspace, result.failures);
  return result;
}

} // namespace fagen::lab
