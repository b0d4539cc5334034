// fagen: profiles as text and as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile_report.h"

#include <algorithm>
#include <fmt/format.h>

namespace fagen::lab {

/// Stalls below this share of a warp's time are left out of the table; the JSON has all.
static constexpr double kShownStall = 0.02;

std::string formatQuantity(Unit unit, std::optional<double> value) {
  if (!value)
    return "-";
  switch (unit) {
  case Unit::Percent:
    return fmt::format("{:.1f} %", *value);
  case Unit::Count:
    return fmt::format("{:.0f}", *value);
  case Unit::Bytes:
    return fmt::format("{:.2f} MB", *value / 1e6);
  case Unit::Nanoseconds:
    return fmt::format("{:.2f} us", *value / 1e3);
  case Unit::Hertz:
    return fmt::format("{:.0f} MHz", *value / 1e6);
  case Unit::BytesPerClock:
    return fmt::format("{:.0f} B/clock", *value);
  }
  return "";
}

static std::string title(const Profile &profile) {
  const Case &c = profile.subject.problem;
  return fmt::format("{} on {} {} {}", profile.subject.row->variant, formatShape(c.shape), nameOf(c.dtype),
                     nameOf(c.mask));
}

static std::string floorText(const Profile &profile) {
  std::optional<Roofline> line = profile.roofline();
  if (!line)
    return fmt::format("floor: not known: no rates of compute capability {}.{}, or no clock\n",
                       profile.computeCapability / 10, profile.computeCapability % 10);
  std::string text =
      fmt::format("floor: {:.2f} us ({}); tensor {:.2f}, exp {:.2f}, DRAM {:.2f} us", line->floorMicroseconds(),
                  line->limit(), line->tensorMicroseconds, line->expMicroseconds, line->dramMicroseconds);
  if (std::optional<double> times = profile.timesFloor())
    text += fmt::format("; the launch takes {:.2f} x the floor", *times);
  return text + "\n";
}

std::string profileText(const Profile &profile) {
  if (profile.readings.empty())
    return title(profile) + ": no counters\n\n";
  std::string text = fmt::format("{}: by {}\n", title(profile), profile.readings.front().by);
  TextTable figures({{"figure"}, {"value", true}});
  std::vector<std::string> metrics = profileMetrics(profile.computeCapability);
  for (const Quantity &quantity : quantities(profile.computeCapability))
    figures.add({quantity.title, formatQuantity(quantity.unit, profile.value(quantity.key))});
  for (const auto &[metric, value] : profile.readings.front().counters)
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end())
      figures.add({metric, fmt::format("{:.6g}", value)});
  text += figures.text();
  TextTable stalls({{"a warp"}, {"share", true}});
  for (const Stall &stall : profile.stalls())
    if (stall.share >= kShownStall)
      stalls.add({fmt::format("{}{} ({})", stall.reason.kind == StallKind::Issue ? "" : "waits for ",
                              stall.reason.meaning, stall.reason.name),
                  fmt::format("{:.1f} %", 100 * stall.share)});
  text += stalls.text();
  Bottleneck verdict = profile.bottleneck();
  text += fmt::format("verdict: {}{}{}\n", verdict.kind, verdict.kind.empty() ? "" : ": ", verdict.why);
  return text + floorText(profile) + "\n";
}

std::string comparisonText(const Profile &profile) {
  TextTable table({{"figure"}, {"CUPTI", true}, {"ncu", true}, {"apart", true}, {"judged"}});
  for (const ComparedCounter &c : compareReadings(profile))
    table.add({c.quantity.title, formatQuantity(c.quantity.unit, c.first), formatQuantity(c.quantity.unit, c.second),
               c.first && c.second ? fmt::format("{:.1f} %", 100 * c.apart()) : "-",
               !c.quantity.judged ? ""
               : c.agrees()       ? "agrees"
                                  : "DIFFERS"});
  return table.text() + fmt::format("{}: judged figures are at most {:.0f} % apart\n\n",
                                    readingsAgree(profile) ? "AGREE" : "DISAGREE", 100 * kCounterTolerance);
}

static Json rooflineJson(const Profile &profile) {
  std::optional<Roofline> line = profile.roofline();
  if (!line)
    return nullptr;
  Json json{
      {"tensor_us", line->tensorMicroseconds}, {"exp_us", line->expMicroseconds}, {"dram_us", line->dramMicroseconds},
      {"floor_us", line->floorMicroseconds()}, {"limit", line->limit()},          {"times_floor", nullptr}};
  if (std::optional<double> times = profile.timesFloor())
    json["times_floor"] = *times;
  return json;
}

static Json comparisonJson(const Profile &profile) {
  Json json{{"agrees", readingsAgree(profile)}, {"tolerance", kCounterTolerance}, {"figures", Json::array()}};
  for (const ComparedCounter &c : compareReadings(profile))
    if (c.first && c.second)
      json["figures"].push_back({{"key", c.quantity.key},
                                 {"cupti", *c.first},
                                 {"ncu", *c.second},
                                 {"apart", c.apart()},
                                 {"judged", c.quantity.judged}});
  return json;
}

Json profileJson(const Profile &profile, bool comparison) {
  const Case &c = profile.subject.problem;
  Json json{{"variant", profile.subject.row->variant},
            {"target", profile.subject.row->target},
            {"shape", formatShape(c.shape)},
            {"dtype", nameOf(c.dtype)},
            {"mask", nameOf(c.mask)},
            {"readings", Json::array()},
            {"refused", Json::object()}};
  for (const Reading &reading : profile.readings)
    json["readings"].push_back({{"source", nameOf(reading.kind)}, {"by", reading.by}, {"counters", reading.counters}});
  for (const auto &[kind, reason] : profile.refused)
    json["refused"][nameOf(kind)] = reason;
  if (comparison)
    json["comparison"] = comparisonJson(profile);
  if (profile.readings.empty())
    return json;
  for (const Quantity &quantity : quantities(profile.computeCapability))
    if (std::optional<double> value = profile.value(quantity.key))
      json["figures"][quantity.key] = *value;
  json["stalls"] = Json::array();
  for (const Stall &stall : profile.stalls())
    json["stalls"].push_back({{"reason", stall.reason.name}, {"per_issue", stall.perIssue}, {"share", stall.share}});
  Bottleneck verdict = profile.bottleneck();
  json["verdict"] = {{"kind", verdict.kind}, {"why", verdict.why}};
  json["roofline"] = rooflineJson(profile);
  return json;
}

} // namespace fagen::lab
