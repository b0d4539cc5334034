// fagen: times as a table and as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "time_report.h"

#include <fmt/format.h>

namespace fagen::lab {

std::string_view nameOf(PowerState state) { return state == PowerState::Burst ? "burst" : "steady"; }
std::string_view nameOf(L2State state) { return state == L2State::Warm ? "warm" : "cold"; }

static double clockOf(const Segment &segment) { return segment.after.clockMhz; }
/// Of the whole load where its energy is known; else what the sensor last said.
static double wattsOf(const Segment &segment) {
  return segment.load.energy.told() ? segment.load.energy.watts() : segment.after.watts;
}
static double celsiusOf(const Segment &segment) { return segment.after.celsius; }

/// "0.913 (0.905 to 0.921) sdpa:cudnn", "picked", or why it did not run.
static std::string standing(const TimeReport &report, const TimeResult &result, const TimeOptions &options) {
  if (!result.failure.empty())
    return result.failure;
  std::string text = options.baselines.empty() && result.picked ? "picked" : "";
  if (!result.row)
    return "baseline";
  for (const Ratio &ratio : ratiosOf(report, result, options))
    text += fmt::format("{}{:.3f} ({:.3f} to {:.3f}) {}{}", text.empty() ? "" : "; ", ratio.value, ratio.interval.low,
                        ratio.interval.high, ratio.over, ratio.isClear() ? "" : " ?");
  return text;
}

std::string timeTable(const TimeReport &report, const TimeOptions &options) {
  TextTable table({{"shape"},
                   {"dtype"},
                   {"mask"},
                   {"variant"},
                   {"median us", true},
                   {"p90 us", true},
                   {"p99 us", true},
                   {"TFLOP/s", true},
                   {"SM MHz", true},
                   {"W", true},
                   {"C", true},
                   {"mJ", true},
                   {options.baselines.empty() ? "time / picked" : "time / baseline"}});
  for (const TimeResult &r : report.results) {
    auto number = [&](double value, const char *format) {
      return r.failure.empty() && value > 0 ? fmt::format(fmt::runtime(format), value) : std::string("-");
    };
    table.add({formatShape(r.shape), std::string(nameOf(r.dtype)), r.mask, r.name,
               number(r.medianMicroseconds(), "{:.2f}"), number(r.percentileMicroseconds(0.9), "{:.2f}"),
               number(r.percentileMicroseconds(0.99), "{:.2f}"), number(r.teraflops(), "{:.1f}"),
               number(r.medianOf(clockOf), "{:.0f}"), number(r.medianOf(wattsOf), "{:.0f}"),
               number(r.medianOf(celsiusOf), "{:.0f}"), number(r.medianJoules() * 1e3, "{:.3g}"),
               standing(report, r, options)});
  }
  return table.text();
}

/// What the load before a segment's replays took, or why it is not known; null in a burst.
static Json energyJson(const Segment &segment) {
  if (!segment.load.energy.told())
    return segment.load.energy.missing.empty() ? Json() : Json(segment.load.energy.missing);
  return {{"joules", segment.load.energy.joules},
          {"seconds", segment.load.energy.seconds},
          {"watts", segment.load.energy.watts()},
          {"error", segment.load.energy.error},
          {"launches", segment.load.launches},
          {"load_s", segment.load.seconds},
          {"joules_per_launch", segment.load.joulesPerLaunch()}};
}

static Json telemetryJson(const Telemetry &reading) {
  return {{"sm_clock_mhz", reading.clockMhz}, {"watts", reading.watts}, {"celsius", reading.celsius}};
}

/// What was measured of a contestant that ran.
static Json figuresJson(const TimeResult &r) {
  Json figures{{"median_us", r.medianMicroseconds()},
               {"p90_us", r.percentileMicroseconds(0.9)},
               {"p99_us", r.percentileMicroseconds(0.99)},
               {"tflops", r.teraflops()},
               {"launches_per_graph", r.launchesPerGraph},
               {"registers", r.registers},
               {"local_bytes", r.localBytes},
               {"sm_clock_mhz", r.medianOf(clockOf)},
               {"watts", r.medianOf(wattsOf)},
               {"celsius", r.medianOf(celsiusOf)},
               {"average_watts", r.averageWatts()},
               {"joules_per_launch", r.medianJoules()},
               {"energy_error", r.energyError()}};
  Json samples = Json::array(), segments = Json::array();
  for (size_t round = 0; round < r.segments.size(); ++round) {
    const Segment &segment = r.segments[round];
    for (double microseconds : segment.microseconds)
      samples.push_back({round, microseconds});
    segments.push_back({{"before", telemetryJson(segment.before)},
                        {"after", telemetryJson(segment.after)},
                        {"energy", energyJson(segment)}});
  }
  figures["segments"] = segments;
  figures["samples_round_us"] = samples;
  return figures;
}

Json timeJson(const TimeReport &report, const TimeOptions &options) {
  Json json{{"state", nameOf(options.state)},
            {"l2", nameOf(options.l2)},
            {"seed", options.seed},
            {"rounds", options.rounds},
            {"baselines", options.baselines},
            {"flops", "2 B H Sq Sk (d_qk + d_v), halved for causal, times the share of visible keys for a form"},
            {"joules",
             "of the whole GPU by NVML's counter: average watts between its steps in 1.25 s of load, times the "
             "load's seconds a launch; error is what the steps' moments may be wrong by"},
            {"intervals", fmt::format("95 %, {} bootstrap resamples of segments and of replays in them", kResamples)},
            {"limits",
             {{"clock", kDriftLimits.clock},
              {"watts", kDriftLimits.watts},
              {"celsius", kDriftLimits.celsius},
              {"medians", kDriftLimits.medians}}},
            {"warnings", timeWarnings(report, options)},
            {"notes", report.notes},
            {"results", Json::array()}};
  for (const TimeResult &r : report.results) {
    Json entry{{"shape", formatShape(r.shape)}, {"dtype", nameOf(r.dtype)}, {"mask", r.mask}, {"variant", r.name},
               {"process", r.process},          {"picked", r.picked}};
    if (!r.numbers.empty())
      entry["args"] = r.numbers;
    if (r.row)
      entry["target"] = r.row->target;
    else
      entry["baseline"] = true;
    if (!r.library.empty())
      entry["library"] = r.library;
    if (!r.failure.empty()) {
      entry["failure"] = r.failure;
    } else {
      entry.update(figuresJson(r));
      auto ratioJson = [](const Ratio &ratio) -> Json {
        return {{"over", ratio.over},
                {"ratio", ratio.value},
                {"low", ratio.interval.low},
                {"high", ratio.interval.high},
                {"clear", ratio.isClear()}};
      };
      if (auto picked = r.row ? ratioToPicked(report, r) : std::nullopt)
        entry["time_over_picked"] = ratioJson(*picked);
      entry["time_over_baseline"] = Json::array();
      if (!options.baselines.empty())
        for (const Ratio &ratio : ratiosOf(report, r, options))
          entry["time_over_baseline"].push_back(ratioJson(ratio));
    }
    json["results"].push_back(entry);
  }
  return json;
}

} // namespace fagen::lab
