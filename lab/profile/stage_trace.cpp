// fagen: a breakdown's events as a trace.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stage_trace.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace fagen::lab {

namespace {

class TraceWriter {
public:
  explicit TraceWriter(const Breakdown &breakdown)
      : breakdown(breakdown), megahertz(breakdown.megahertz() > 0 ? breakdown.megahertz() : kAssumedMegahertz) {
    for (const WarpTimes &warp : breakdown.warps) {
      auto [first, isNew] = firstOnSm.try_emplace(warp.sm, &warp);
      if (!isNew && warp.begin < first->second->begin)
        first->second = &warp;
      origin = std::min(origin, warp.beginNs);
    }
  }

  Json write() {
    uint64_t lost = 0;
    for (const WarpTimes &warp : breakdown.warps) {
      if (warp.events.empty())
        continue;
      nameWarp(warp);
      addEvents(warp);
      lost += warp.marks - warp.events.size();
    }
    return {{"traceEvents", std::move(events)},
            {"displayTimeUnit", "ns"},
            {"otherData",
             {{"variant", breakdown.row->variant},
              {"case", formatCase(breakdown.testCase)},
              {"sm_mhz", megahertz},
              {"events_beyond_the_buffer", lost}}}};
  }

private:
  static constexpr double kAssumedMegahertz = 1000; ///< where a launch is too short to tell

  double microseconds(const WarpTimes &warp, uint64_t clock) const {
    const WarpTimes &first = *firstOnSm.at(warp.sm);
    return static_cast<double>(first.beginNs - origin) / 1e3 + static_cast<double>(clock - first.begin) / megahertz;
  }

  void nameWarp(const WarpTimes &warp) {
    if (warp.warp == 0)
      events.push_back({{"ph", "M"},
                        {"name", "process_name"},
                        {"pid", warp.cta},
                        {"args", {{"name", fmt::format("CTA {} on SM {}", warp.cta, warp.sm)}}}});
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", warp.cta},
                      {"tid", warp.warp},
                      {"args", {{"name", fmt::format("warp {}", warp.warp)}}}});
  }

  /// Events have the low half of the clock; no stage lasts long enough for it to come round.
  void addEvents(const WarpTimes &warp) {
    uint64_t clock = warp.begin;
    for (const device::StageEvent &event : warp.events) {
      const uint64_t clocks = event.clock - static_cast<uint32_t>(clock);
      const uint64_t duration = clocks & 0xffffffff;
      events.push_back({{"ph", "X"},
                        {"name", device::kStageNames[event.stage % kStageCount]},
                        {"cat", "stage"},
                        {"pid", warp.cta},
                        {"tid", warp.warp},
                        {"ts", microseconds(warp, clock)},
                        {"dur", static_cast<double>(duration) / megahertz},
                        {"args", {{"clocks", duration}}}});
      clock += duration;
    }
  }

  const Breakdown &breakdown;
  const double megahertz;
  std::map<unsigned, const WarpTimes *> firstOnSm;
  uint64_t origin = UINT64_MAX;
  Json events = Json::array();
};

} // namespace

Json stageTrace(const Breakdown &breakdown) { return TraceWriter(breakdown).write(); }

} // namespace fagen::lab
