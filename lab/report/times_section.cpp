// fagen: the report's times against baselines, problem by problem.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bar_chart.h"
#include "lab/time/comparison.h"
#include "section.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace fagen::lab::page {

static constexpr const char *kTimesRemedy = "fagen-run time DIR --baseline sdpa --output FILE writes such a file";

namespace {

/// A contestant of a problem.
struct Contestant {
  std::string name;
  bool isBaseline = false, isPicked = false;
  std::string failure;
  double median = 0, p90 = 0, p99 = 0, teraflops = 0, megahertz = 0, watts = 0, joules = 0;
  Interval interval{};
  std::string ratios; ///< "0.91 (0.90 to 0.92) sdpa:cudnn"
};

struct Problem {
  std::string shape, dtype, mask;
  std::vector<Contestant> contestants;

  std::string text() const { return fmt::format("{}, {}, {}", problemText(shape), dtype, maskText()); }
  std::string maskText() const { return mask == "none" ? "no mask" : mask; }
};

/// From the samples, as fagen-run time has it.
Interval intervalOf(const Field &result) {
  std::map<double, std::vector<double>> rounds;
  for (const Field &sample : result["samples_round_us"].items()) {
    const std::vector<Field> pair = sample.items();
    if (pair.size() != 2)
      sample.fail("is not a round and a time");
    rounds[pair[0].number()].push_back(pair[1].number());
  }
  Segments segments;
  for (auto &[round, samples] : rounds)
    segments.push_back(std::move(samples));
  if (segments.empty())
    result["samples_round_us"].fail("has no samples");
  return intervalOfMedian(segments, kBootstrapSeed);
}

std::string ratioText(const Field &ratio) {
  return fmt::format("{:.3f} ({:.3f} to {:.3f}) of {}{}", ratio["ratio"].number(), ratio["low"].number(),
                     ratio["high"].number(), ratio["over"].text(), ratio.isTrue("clear") ? "" : " ?");
}

std::string ratiosOf(const Field &result) {
  std::string text;
  if (result.has("time_over_baseline"))
    for (const Field &ratio : result["time_over_baseline"].items())
      text += (text.empty() ? "" : "; ") + ratioText(ratio);
  if (text.empty() && result.has("time_over_picked") && !result.isTrue("picked"))
    text = ratioText(result["time_over_picked"]);
  return text;
}

double positiveTime(const Field &result, const std::string &key) {
  const double value = result[key].number();
  if (value <= 0)
    result[key].fail(fmt::format("is {}, not above 0", value));
  return value;
}

Contestant readContestant(const Field &result) {
  Contestant c;
  c.name = result["variant"].text();
  c.isBaseline = result.isTrue("baseline");
  c.isPicked = result.isTrue("picked");
  c.failure = result.textOr("failure", "");
  if (!c.failure.empty())
    return c;
  c.median = positiveTime(result, "median_us");
  c.p90 = positiveTime(result, "p90_us");
  c.p99 = positiveTime(result, "p99_us");
  c.teraflops = result["tflops"].number();
  c.megahertz = result.numberOr("sm_clock_mhz", 0);
  c.watts = result.numberOr("watts", 0);
  c.joules = result.numberOr("joules_per_launch", 0);
  c.interval = intervalOf(result);
  c.ratios = ratiosOf(result);
  return c;
}

std::vector<Problem> readProblems(const Field &time) {
  std::vector<Problem> problems;
  for (const Field &result : time["results"].items()) {
    const std::string shape = result["shape"].text(), dtype = result["dtype"].text(), mask = result["mask"].text();
    auto found = std::find_if(problems.begin(), problems.end(),
                              [&](const Problem &p) { return p.shape == shape && p.dtype == dtype && p.mask == mask; });
    if (found == problems.end())
      found = problems.insert(problems.end(), {shape, dtype, mask, {}});
    found->contestants.push_back(readContestant(result));
  }
  for (Problem &problem : problems)
    std::stable_sort(problem.contestants.begin(), problem.contestants.end(),
                     [](const Contestant &a, const Contestant &b) {
                       return std::pair(!a.failure.empty(), a.median) < std::pair(!b.failure.empty(), b.median);
                     });
  return problems;
}

std::string markOf(const Contestant &c) { return c.isBaseline ? "baseline" : c.isPicked ? "ours, dispatched" : "ours"; }

std::string tableOf(const Problem &problem) {
  HtmlTable table(problem.text(), {{"contestant"},
                                   {"whose"},
                                   {"median us", true},
                                   {"95 %", true},
                                   {"p90", true},
                                   {"p99", true},
                                   {"TFLOP/s", true},
                                   {"SM MHz", true},
                                   {"W", true},
                                   {"mJ", true},
                                   {"time over"}});
  const auto some = [](double value) { return value > 0 ? numberText(value) : std::string("-"); };
  for (const Contestant &c : problem.contestants) {
    if (!c.failure.empty())
      table.add({c.name, markOf(c), "-", "-", "-", "-", "-", "-", "-", "-", c.failure});
    else
      table.add({c.name, markOf(c), numberText(c.median),
                 numberText(c.interval.low) + " to " + numberText(c.interval.high), numberText(c.p90),
                 numberText(c.p99), numberText(c.teraflops), some(c.megahertz), some(c.watts), some(c.joules * 1e3),
                 c.ratios});
  }
  return table.markup();
}

Chart chartOf(const Problem &problem, const std::string &id) {
  std::vector<Bar> bars;
  for (const Contestant &c : problem.contestants)
    if (c.failure.empty())
      bars.push_back({c.name + (c.isPicked ? " *" : ""), c.median, c.interval, !c.isBaseline});
  return barChart(id, "Time of a launch: " + problem.text(), "us, median with 95 % interval", bars);
}

/// The fastest of ours and of the baselines of each problem.
std::string overview(const std::vector<Problem> &problems, const std::string &caption) {
  HtmlTable table(
      caption,
      {{"problem"}, {"fastest of ours"}, {"us", true}, {"fastest baseline"}, {"us", true}, {"ours over it", true}});
  for (const Problem &problem : problems) {
    const Contestant *best[2] = {nullptr, nullptr}; // ours, baseline
    for (const Contestant &c : problem.contestants)
      if (c.failure.empty() && !best[c.isBaseline])
        best[c.isBaseline] = &c;
    const auto name = [](const Contestant *c) { return c ? c->name : std::string("-"); };
    const auto time = [](const Contestant *c) { return c ? numberText(c->median) : std::string("-"); };
    table.add({problem.text(), name(best[0]), time(best[0]), name(best[1]), time(best[1]),
               best[0] && best[1] ? fmt::format("{:.3f}", best[0]->median / best[1]->median) : "-"});
  }
  return table.markup();
}

std::vector<std::string> texts(const Field &json, const std::string &key) {
  std::vector<std::string> lines;
  if (json.has(key))
    for (const Field &line : json[key].items())
      lines.push_back(line.text());
  return lines;
}

} // namespace

Section timesSection(const std::vector<std::string> &files) {
  if (files.empty())
    return missingSection("times", "Times", "fagen-run time DIR --baseline sdpa --output times.json");
  Section section{"times", "Times", "", "", {}, false};
  section.body +=
      paragraph("Medians of a launch with their 95 % bootstrap intervals. A filled bar and a bold name are "
                "ours, an outlined bar is a baseline, * is what dispatch picks; a ratio with ? is not clear: "
                "its interval is wider than its distance from 1.");
  size_t problemCount = 0, contestantCount = 0;
  for (const std::string &file : files) {
    const Field result = Field::read(file, kTimesRemedy);
    const Field time = result["time"];
    const std::vector<Problem> problems = readProblems(time);
    section.body += provenance(result);
    section.body += overview(problems, fmt::format("Power state {}, L2 {}, {} rounds", time["state"].text(),
                                                   time["l2"].text(), numberText(time["rounds"].number())));
    section.body += bullets(texts(time, "warnings"), "warnings") + bullets(texts(time, "notes"));
    for (const Problem &problem : problems) {
      const Chart chart = chartOf(problem, fmt::format("times-{}", ++problemCount));
      section.body += textElement("h3", {}, problem.text()) + "\n" + sideBySide(chart, tableOf(problem));
      section.charts.push_back(chart);
      contestantCount += problem.contestants.size();
    }
  }
  section.summary = counted(problemCount, "problem") + ", " + counted(contestantCount, "contestant");
  return section;
}

} // namespace fagen::lab::page
