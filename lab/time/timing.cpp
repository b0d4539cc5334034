// fagen: lets the contestants of a problem take turns, and collects their samples.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "timing.h"
#include "lab/cases/abi_problem.h"
#include "lab/kernel_set/forms.h"
#include "lab/reference/reference.h"
#include "lab/time/baselines/names.h"
#include "lab/time/baselines/peer.h"

#include <algorithm>
#include <fmt/format.h>

namespace fagen::lab {

static constexpr int kTimedReplays = 9;
static constexpr int kLaunches = 20;       ///< in a graph
static constexpr int kShortLaunches = 200; ///< for launches below 20 microseconds
static constexpr double kShortMicroseconds = 20;
static constexpr double kBurstMicroseconds = 30e3;
static constexpr double kIdleSeconds = 1;
std::vector<double> TimeResult::samples() const {
  std::vector<double> values;
  for (const Segment &segment : segments)
    values.insert(values.end(), segment.microseconds.begin(), segment.microseconds.end());
  return values;
}

Segments TimeResult::sampleSegments() const {
  Segments samples;
  for (const Segment &segment : segments)
    samples.push_back(segment.microseconds);
  return samples;
}

Segments TimeResult::energySegments() const {
  Segments joules;
  for (const Segment &segment : segments)
    if (const double value = segment.load.joulesPerLaunch(); value > 0)
      joules.push_back({value});
  return joules.size() == segments.size() ? joules : Segments{};
}

double TimeResult::medianJoules() const {
  return energySegments().empty() ? 0 : medianOf([](const Segment &s) { return s.load.joulesPerLaunch(); });
}
double TimeResult::averageWatts() const {
  return medianOf([](const Segment &s) { return s.load.energy.watts(); });
}
double TimeResult::energyError() const {
  double largest = 0;
  for (const Segment &segment : segments)
    largest = std::max(largest, segment.load.energy.error);
  return largest;
}

double TimeResult::percentileMicroseconds(double fraction) const { return percentile(samples(), fraction); }
double TimeResult::teraflops() const { return flops / medianMicroseconds() / 1e6; }

double TimeResult::medianOf(const std::function<double(const Segment &)> &figure) const {
  std::vector<double> told;
  for (const Segment &segment : segments)
    if (double value = figure(segment); value > 0)
      told.push_back(value);
  return told.empty() ? 0 : median(told);
}

namespace {

/// A variant or a baseline that takes part in one problem's contest.
struct Entrant {
  TimeResult result;
  fagen_choice choice = makeAbi<fagen_choice>(); ///< of a variant
  std::unique_ptr<Launchable> graph;
};

class Contest {
public:
  Contest(TimingDevice &device, const TimeOptions &options, const Case &c)
      : device(device), options(options), problemCase(c), visible(c.form.empty() ? 1 : visibleShare(c)) {}

  void admit(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::vector<std::string> &baselines) {
    for (const auto &set : sets)
      admitVariants(*set, baselines);
    if (entrants.empty() || !problemCase.form.empty())
      return; // nothing of ours computes this problem, or no baseline does
    for (const std::string &name : baselines)
      if (baselineVariant(name).empty())
        for (const std::string &member : baselineMembers(name))
          entrants.push_back(makeEntrant(member));
  }

  bool empty() const { return entrants.empty(); }
  const Case &problem() const { return problemCase; }

  std::vector<TimeResult> run() {
    std::unique_ptr<TimedProblem> problem = device.open(problemCase, options.seed, options.l2);
    for (Entrant &entrant : entrants)
      attempt(entrant, [&] { prepare(entrant, *problem); });
    for (int round = 0; round < options.rounds; ++round)
      for (Entrant &entrant : entrants)
        attempt(entrant, [&] { takeTurn(entrant); });
    std::vector<TimeResult> results;
    for (Entrant &entrant : entrants)
      results.push_back(std::move(entrant.result));
    return results;
  }

private:
  Entrant makeEntrant(const std::string &name) const {
    Entrant entrant;
    entrant.result.name = name;
    entrant.result.shape = problemCase.shape;
    entrant.result.dtype = problemCase.dtype;
    entrant.result.mask = maskText(problemCase);
    if (problemCase.arguments)
      entrant.result.numbers = problemCase.arguments->arguments.numbers;
    entrant.result.flops = flops(problemCase.shape, problemCase.mask) * visible;
    entrant.result.process = "fagen-run";
    return entrant;
  }

  /// Asked for by name, or nothing was and dispatch may pick it, or a baseline.
  bool isWanted(const fagen_row &row, bool picked, const std::vector<std::string> &baselines) const {
    auto has = [&](const std::vector<std::string> &names, const std::string &name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    bool asked =
        (options.variants.empty() || has(options.variants, row.variant)) && (picked || !options.dispatchedOnly);
    return asked || has(baselines, std::string("kernel:") + row.variant);
  }

  void admitVariants(const KernelSet &set, const std::vector<std::string> &baselines) {
    fagen_problem problem = describeProblem(problemCase, Placements(problemCase));
    const fagen_table *table = set.table();
    fagen_choice picked = makeAbi<fagen_choice>();
    bool any = fagen_query(&table, 1, &problem, device.queryDevice(), &picked) == FAGEN_OK;
    for (const fagen_row *row : set.rows()) {
      bool isPicked = any && picked.row == row;
      Entrant entrant = makeEntrant(row->variant);
      problem.variant = row->variant;
      if (!isWanted(*row, isPicked, baselines) ||
          fagen_query(&table, 1, &problem, device.queryDevice(), &entrant.choice) != FAGEN_OK ||
          entrant.choice.row != row)
        continue;
      entrant.result.set = &set;
      entrant.result.row = row;
      entrant.result.picked = isPicked;
      entrants.push_back(std::move(entrant));
    }
  }

  /// What one contestant cannot do takes it out of the contest.
  template <typename Action> static void attempt(Entrant &entrant, Action action) {
    if (!entrant.result.failure.empty())
      return;
    try {
      action();
    } catch (const CannotRun &reason) {
      entrant.result.failure = reason.what();
    }
  }

  /// Loads the contestant, and finds how many launches its graph gets.
  void prepare(Entrant &entrant, TimedProblem &problem) {
    TimeResult &result = entrant.result;
    entrant.graph = result.row ? problem.prepare(entrant.choice) : problem.prepareBaseline(result.name);
    result.registers = entrant.graph->registers;
    result.localBytes = entrant.graph->localBytes;
    result.library = entrant.graph->library;
    entrant.graph->build(kLaunches);
    entrant.graph->replay(); // the first launch of a kernel also loads it
    double once = entrant.graph->replay();
    int count = once < kShortMicroseconds && options.l2 == L2State::Warm ? kShortLaunches : kLaunches;
    if (options.state == PowerState::Burst) // one warm and nine timed replays fit the burst
      count = std::clamp(static_cast<int>(kBurstMicroseconds / (kTimedReplays + 1) / once), 1, count);
    if (count != kLaunches)
      entrant.graph->build(count);
    result.launchesPerGraph = count;
  }

  void takeTurn(Entrant &entrant) {
    Segment segment;
    if (options.state == PowerState::Burst)
      device.sleep(kIdleSeconds);
    segment.before = device.telemetry();
    if (options.state == PowerState::Burst)
      entrant.graph->replay();
    else
      segment.load = meterLoad(device, *entrant.graph, entrant.result.launchesPerGraph);
    for (int replay = 0; replay < kTimedReplays; ++replay)
      segment.microseconds.push_back(entrant.graph->replay());
    segment.after = device.telemetry();
    entrant.result.segments.push_back(std::move(segment));
  }

  TimingDevice &device;
  const TimeOptions &options;
  Case problemCase;
  double visible; ///< of a form's keys, as a share of all
  std::vector<Entrant> entrants;
};

std::vector<Case> problemsOf(const TimeOptions &options) {
  std::vector<Case> problems;
  for (const Shape &shape : options.shapes)
    for (DType dtype : options.dtypes)
      for (Mask mask : options.masks) {
        Case c;
        c.shape = shape;
        c.dtype = dtype;
        c.mask = mask;
        problems.push_back(c);
      }
  for (const Shape &shape : options.shapes)
    for (DType dtype : options.dtypes)
      for (const FormPtr &form : options.forms) {
        Case c;
        c.dtype = dtype;
        problems.push_back(timedCase(shape, c, form, options.numbers, options.seed));
      }
  return problems;
}

} // namespace

/// Why joules are not told, each reason once.
static void noteMissingEnergy(TimeReport &report) {
  for (const TimeResult &result : report.results)
    for (const Segment &segment : result.segments)
      if (!segment.load.energy.missing.empty())
        if (std::string note = "joules are not told: " + segment.load.energy.missing;
            std::find(report.notes.begin(), report.notes.end(), note) == report.notes.end())
          report.notes.push_back(std::move(note));
}

TimeReport runTime(TimingDevice &device, const std::vector<std::unique_ptr<KernelSet>> &sets,
                   const TimeOptions &options, const TimeProgress &progress) {
  std::vector<std::string> here, elsewhere;
  for (const std::string &baseline : options.baselines)
    (device.timesBaseline(baseline) ? here : elsewhere).push_back(baseline);
  std::vector<Contest> contests;
  std::vector<Case> problems;
  for (const Case &c : problemsOf(options)) {
    Contest contest(device, options, c);
    contest.admit(sets, here);
    if (contest.empty())
      continue;
    contests.push_back(std::move(contest));
    problems.push_back(c);
  }
  if (contests.empty())
    throw UserError(fmt::format("no variant computes any of these shapes on {}", device.name()));
  TimeReport report;
  // Variants that the peer times together with its baselines need no second contest without any.
  bool contested = elsewhere.empty() || !here.empty();
  for (size_t i = 0; i < contests.size(); ++i) {
    if (!contested && contests[i].problem().form.empty())
      continue;
    progress(i, contests.size(), formatCase(contests[i].problem()));
    for (TimeResult &result : contests[i].run())
      report.results.push_back(std::move(result));
  }
  std::erase_if(problems, [](const Case &c) { return !c.form.empty(); }); // peers know no forms
  if (!elsewhere.empty())
    runPeer(sets, problems, elsewhere, options, progress, report);
  noteMissingEnergy(report);
  progress(contests.size(), contests.size(), "");
  return report;
}

} // namespace fagen::lab
