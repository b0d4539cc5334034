// fagen: the process in which candidates are launched.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "serve.h"
#include "lab/cases/abi.h"
#include "lab/cases/abi_problem.h"
#include "lab/cases/problem.h"
#include "lab/kernel_set/manifest.h"
#include "lab/support/json_file.h"
#include "lab/support/statistics.h"
#include "lab/time/metered_load.h"

#include <algorithm>
#include <fmt/format.h>
#include <istream>
#include <ostream>

namespace fagen::lab::tune {

static constexpr int kTimedReplays = 9, kFirstReplays = 3; ///< of a turn; before the first look at the limit
static constexpr int kMostLaunches = 200;                  ///< in a graph
static constexpr double kReplayMicroseconds = 4000;        ///< what a replay takes, about
static constexpr double kWarmSeconds = 0.01;               ///< of load before a turn: clocks rise from idle

namespace {

struct Contestant {
  std::unique_ptr<Launchable> graph;
  int launches = 1; ///< of the graph
  std::vector<std::vector<double>> segments;
  bool stopped = false;
  std::string failure;
};

class Server {
public:
  explicit Server(TimingDevice &device) : device(device) {}

  Json answer(const Json &request) {
    open(request);
    int rounds = request.at("rounds");
    const bool metered = request.value("measure", "time") == "joules";
    double limit = request.value("limit", 0.0);
    std::vector<Contestant> contestants;
    for (const Json &entry : request.at("contestants"))
      contestants.push_back(admit(entry, rounds > 0));
    for (int round = 0; round < rounds; ++round)
      for (Contestant &contestant : contestants)
        if (contestant.failure.empty() && !contestant.stopped)
          attempt(contestant, [&] { metered ? takeMeteredTurn(contestant, limit) : takeTurn(contestant, limit); });
    Json results = Json::array();
    for (const Contestant &contestant : contestants)
      results.push_back(contestant.failure.empty()
                            ? Json{{"segments", contestant.segments}, {"stopped", contestant.stopped}}
                            : Json{{"failure", contestant.failure}});
    return {{"results", results}};
  }

private:
  /// The tensors stay as long as the problem does.
  void open(const Json &request) {
    std::string text = request.at("problem");
    if (problem && text == opened)
      return;
    reference = {};
    problem.reset();
    problemCase = parseCase(text);
    problem = device.open(problemCase, 1, L2State::Warm);
    opened = text;
    if (request.contains("reference"))
      reference = admit(request.at("reference"), false);
  }

  /// What one contestant cannot do takes it out.
  template <typename Action> static void attempt(Contestant &contestant, Action action) {
    try {
      action();
    } catch (const CannotRun &reason) {
      contestant.failure = reason.what();
    } catch (const UserError &reason) { // its files are not what they should be
      contestant.failure = reason.what();
    }
  }

  Contestant admit(const Json &entry, bool willRun) {
    Contestant contestant;
    attempt(contestant, [&] {
      sets.push_back(KernelSet::load(entry.at("directory").get<std::string>()));
      std::string variant = entry.at("variant");
      fagen_problem described = describeProblem(problemCase, Placements(problemCase));
      described.variant = variant.c_str();
      const fagen_table *table = sets.back()->table();
      fagen_choice choice = makeAbi<fagen_choice>();
      if (fagen_query(&table, 1, &described, device.queryDevice(), &choice) != FAGEN_OK)
        throw CannotRun(fagen_last_error());
      contestant.graph = problem->prepare(choice);
      if (!willRun)
        return;
      contestant.graph->build(1);
      contestant.graph->replay(); // the first launch of a kernel also loads it
      double once = contestant.graph->replay();
      contestant.launches = std::clamp(static_cast<int>(kReplayMicroseconds / once), 1, kMostLaunches);
      contestant.graph->build(contestant.launches);
    });
    return contestant;
  }

  void takeTurn(Contestant &contestant, double limit) {
    double begin = device.now();
    do
      contestant.graph->replay();
    while (device.now() - begin < kWarmSeconds);
    const size_t turn = contestant.segments.size();
    contestant.segments.emplace_back();
    while (contestant.segments[turn].size() < kTimedReplays && !contestant.stopped) {
      contestant.segments[turn].push_back(contestant.graph->replay());
      const size_t replays = contestant.segments[turn].size();
      if (replays == kFirstReplays || replays == kTimedReplays)
        contestant.stopped = limit > 0 && medianOf(contestant.segments) > limit;
    }
  }

  void takeMeteredTurn(Contestant &contestant, double limit) {
    const MeteredLoad load = meterLoad(device, *contestant.graph, contestant.launches);
    if (!load.energy.told())
      throw CannotRun("joules are not told: " + load.energy.missing);
    contestant.segments.push_back({load.joulesPerLaunch() * 1e3});
    contestant.stopped = limit > 0 && medianOf(contestant.segments) > limit;
  }

  /// Of all turns: a few replays of a later one may meet the GPU at another clock.
  static double medianOf(const Segments &segments) {
    std::vector<double> all;
    for (const auto &segment : segments)
      all.insert(all.end(), segment.begin(), segment.end());
    return median(all);
  }

  TimingDevice &device;
  /// All there were: the runtime finds a row's code by the row's address, so none may lie where another was.
  std::vector<std::unique_ptr<KernelSet>> sets;
  std::string opened;
  Case problemCase;
  std::unique_ptr<TimedProblem> problem;
  Contestant reference;
};

} // namespace

void serveTiming(TimingDevice &device, std::istream &requests, std::ostream &answers) {
  answers << Json{{"ready", device.name()}}.dump() << std::endl;
  Server server(device);
  for (std::string line; std::getline(requests, line);) {
    Json answer;
    try {
      answer = server.answer(parseText(line));
    } catch (const std::exception &error) { // what a launch broke stays broken
      answers << Json{{"lost", error.what()}}.dump() << std::endl;
      return;
    }
    answers << answer.dump() << std::endl;
  }
}

} // namespace fagen::lab::tune
