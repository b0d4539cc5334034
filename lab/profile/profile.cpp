// fagen: judges the hardware counters of a launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fagen::lab {

static std::optional<double> lookUp(const Counters &counters, const std::string &metric) {
  auto found = counters.find(metric);
  return found == counters.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> Profile::value(const std::string &key) const {
  if (readings.empty())
    return std::nullopt;
  for (const Quantity &quantity : quantities(computeCapability))
    if (quantity.key == key)
      return valueOf(quantity, readings.front().counters);
  return std::nullopt;
}

std::vector<Stall> Profile::stalls() const {
  std::vector<Stall> stalls;
  if (readings.empty())
    return stalls;
  double total = 0;
  for (const StallReason &reason : stallReasons(computeCapability))
    if (std::optional<double> perIssue = lookUp(readings.front().counters, stallMetric(reason))) {
      stalls.push_back({reason, *perIssue, 0});
      total += *perIssue;
    }
  for (Stall &stall : stalls)
    stall.share = total > 0 ? stall.perIssue / total : 0;
  std::stable_sort(stalls.begin(), stalls.end(), [](const Stall &a, const Stall &b) { return a.share > b.share; });
  return stalls;
}

Bottleneck Profile::bottleneck() const {
  std::optional<double> tensor = value("tensor"), dram = value("dram");
  if (!tensor || !dram)
    return {"", fmt::format("not judged: {} was not counted", tensor ? "DRAM throughput" : "tensor-pipe use")};
  std::string why = fmt::format("tensor pipe {:.1f} %, DRAM {:.1f} %", *tensor, *dram);
  if (*dram > kBoundRules.dramBusy)
    return {"memory-bound", why};
  if (*tensor >= kBoundRules.tensorBusy && *dram < kBoundRules.dramIdle)
    return {"compute-bound", why};
  if (std::optional<double> busy = value("sm_busy"); busy && *busy < kBoundRules.smsIdle)
    why += fmt::format("; SMs have work {:.0f} % of the time: too few CTAs, or unequal ones", *busy);
  std::vector<Stall> all = stalls();
  auto leading =
      std::find_if(all.begin(), all.end(), [](const Stall &stall) { return stall.reason.kind != StallKind::Issue; });
  if (leading == all.end() || leading->share <= 0)
    return {"", why + "; not judged further: no stalls were counted"};
  why += fmt::format("; warps wait {:.0f} % of their time for {} ({})", 100 * leading->share, leading->reason.meaning,
                     leading->reason.name);
  return {leading->reason.kind == StallKind::Barrier ? "barrier-bound" : "latency-bound", why};
}

std::optional<Roofline> Profile::roofline() const {
  std::optional<double> clock = value("sm_clock");
  if (!clock)
    return std::nullopt;
  double dramPeak = value("dram_peak").value_or(0) * value("dram_clock").value_or(0);
  const Case &c = subject.problem;
  Roofline roofline = rooflineOf(leastWork(c.shape, c.mask, c.lse), peaksOf(computeCapability, sms, *clock, dramPeak));
  return roofline.floorMicroseconds() > 0 ? std::optional(roofline) : std::nullopt;
}

std::optional<double> Profile::timesFloor() const {
  std::optional<double> nanoseconds = value("duration");
  std::optional<Roofline> line = roofline();
  if (!nanoseconds || !line)
    return std::nullopt;
  return *nanoseconds / 1e3 / line->floorMicroseconds();
}

static std::vector<std::string> metricsOf(const Profile &profile, const std::vector<std::string> &extra) {
  std::vector<std::string> metrics = profileMetrics(profile.computeCapability);
  for (const std::string &metric : extra)
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end())
      metrics.push_back(metric);
  return metrics;
}

void addReading(CounterDevice &device, Profile &profile, CounterKind kind,
                const std::vector<std::string> &extraMetrics) {
  try {
    profile.readings.push_back(device.count(kind, profile.subject, metricsOf(profile, extraMetrics)));
  } catch (const CountersRefused &reason) {
    profile.refused[kind] = reason.what();
  }
}

Profile runProfile(CounterDevice &device, const ProfiledRow &row, const std::vector<CounterKind> &sources,
                   const std::vector<std::string> &extraMetrics) {
  Profile profile;
  profile.subject = row;
  profile.computeCapability = device.computeCapability();
  profile.sms = device.sms();
  for (CounterKind kind : sources)
    if (profile.readings.empty())
      addReading(device, profile, kind, extraMetrics);
  return profile;
}

double ComparedCounter::apart() const {
  if (!first || !second)
    return 1;
  double larger = std::max(std::abs(*first), std::abs(*second));
  return larger == 0 ? 0 : std::abs(*first - *second) / larger;
}

std::vector<ComparedCounter> compareReadings(const Profile &profile) {
  std::vector<ComparedCounter> compared;
  for (const Quantity &quantity : quantities(profile.computeCapability)) {
    auto of = [&](size_t reading) {
      return reading < profile.readings.size() ? valueOf(quantity, profile.readings[reading].counters) : std::nullopt;
    };
    compared.push_back({quantity, of(0), of(1)});
  }
  return compared;
}

bool readingsAgree(const Profile &profile) {
  std::vector<ComparedCounter> compared = compareReadings(profile);
  return profile.readings.size() == 2 && std::all_of(compared.begin(), compared.end(), [](const ComparedCounter &c) {
           return !c.quantity.judged || c.agrees();
         });
}

} // namespace fagen::lab
