// fagen: searches the best schedule of each problem.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tune/tune.h"
#include "check.h"
#include "gpu_device.h"
#include "tune/model.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <mutex>
#include <thread>

namespace fagen::lab::tune {

namespace fs = std::filesystem;

/// The model's first ones have their estimates from the compiler.
static constexpr size_t kPlanned = 64;
/// A candidate in flight when the tuner died this often has probably killed it.
static constexpr int kAttempts = 2;

using Clock = std::chrono::steady_clock;

const Record *StudyResult::shipped() const {
  std::string name = nameOf(space, space.points.front());
  auto found = std::find_if(log.begin(), log.end(), [&](const Record &record) { return record.candidate == name; });
  return found == log.end() ? nullptr : &*found;
}

namespace {

/// The search of one problem: answers from the store, or by running candidates.
class Study {
public:
  Study(const TuneOptions &options, const Compiler &compiler, Store &store, const Sandbox &sandbox, StudyResult &result,
        double seconds, const TuneProgress &progress)
      : options(options), compiler(compiler), store(store), result(result), progress(progress),
        evaluator(compiler, result.base, result.space, result.problem, sandbox),
        deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
        number(store.open(result.key)), records(store.records(number)) {}

  void run() {
    result.ended = "finished";
    search(result.space, result.ranked, options.search,
           [&](const std::vector<Point> &points, int generation) { return evaluate(points, generation); });
    if (!result.elites.empty() && result.elites.front().point != result.space.points.front() && !stopped())
      result.duel = evaluator.duel(result.space.points.front(), result.elites.front().point);
    evaluator.remove(result.space.points.front());
    if (!result.elites.empty())
      evaluator.remove(result.elites.front().point);
  }

private:
  bool stopped() const { return options.stop && *options.stop; }

  bool mayGoOn() {
    if (stopped())
      result.ended = "stopped";
    else if (Clock::now() > deadline)
      result.ended = "budget";
    return result.ended == "finished";
  }

  static bool isFinal(const Record &record) {
    return !record.outcome.empty() && record.outcome != "running" && record.outcome != "gated";
  }

  std::vector<Measured> evaluate(const std::vector<Point> &points, int generation) {
    std::vector<Point> open;
    for (const Point &point : points) {
      Record &record = records[nameOf(result.space, point)];
      if (record.outcome == "running" && record.attempts >= kAttempts) {
        record.outcome = "crashed";
        record.stage = "time";
        record.why = fmt::format("the tuner did not outlive it {} times", record.attempts);
        store.finish(number, record);
      }
      if (!isFinal(record))
        open.push_back(point);
    }
    if (!open.empty() && mayGoOn())
      prepareAll(open, generation);
    std::vector<Measured> answers;
    for (const Point &point : points) {
      Record &record = records[nameOf(result.space, point)];
      bool isOpen = std::find(open.begin(), open.end(), point) != open.end();
      if (isOpen && !finishOne(point, record))
        break;
      if (!isOpen)
        ++result.known;
      note(point, record);
      answers.push_back(record.timed() ? Measured(record.median) : std::nullopt);
    }
    return answers;
  }

  /// Compiling and checking, several at a time.
  void prepareAll(const std::vector<Point> &points, int generation) {
    size_t next = 0;
    std::mutex lock;
    auto work = [&] {
      while (true) {
        std::unique_lock hold(lock);
        if (next == points.size() || !mayGoOn())
          return;
        const Point &point = points[next++];
        Record &record = records[nameOf(result.space, point)];
        bool wasGated = record.outcome == "gated";
        begin(point, record, generation);
        hold.unlock();
        Record mine = record;
        if (wasGated) // checked before the tuner was killed; its text is made again
          evaluatorWithoutGate(point, mine);
        else
          evaluator.prepare(point, mine);
        hold.lock();
        record = mine;
        if (!stopped())
          store.finish(number, record);
        else
          store.abandon(number, record.candidate);
      }
    };
    std::vector<std::thread> workers;
    for (int i = 1; i < options.jobs; ++i)
      workers.emplace_back(work);
    work();
    for (std::thread &worker : workers)
      worker.join();
  }

  void evaluatorWithoutGate(const Point &point, Record &record) {
    fs::path directory = options.database.string() + ".work";
    std::string why =
        compiler.compile(result.base, result.space, point, directory / record.candidate, options.limits.compile);
    record.outcome = why.empty() ? "gated" : "refused";
    record.stage = "compile";
    record.why = why;
  }

  void begin(const Point &point, Record &record, int generation) {
    record.candidate = nameOf(result.space, point);
    Json settings;
    for (const Axis &axis : result.space.axes)
      settings[axis.name] = result.space.value(point, axis.name);
    record.settings = settings.dump();
    record.generation = generation;
    record.strategy = options.search.strategy;
    record.outcome = "running";
    store.begin(number, record);
  }

  /// Times what is checked. False: the search ends here, without this candidate.
  bool finishOne(const Point &point, Record &record) {
    if (record.outcome == "gated") {
      if (!mayGoOn())
        return false;
      showProgress(record);
      store.begin(number, record);
      evaluator.time(point, best(), record);
      if (stopped()) { // the signal reached the child as well
        store.abandon(number, record.candidate);
        return false;
      }
      store.finish(number, record);
    }
    if (!isFinal(record) || stopped())
      return false;
    ++result.run;
    evaluator.remove(point);
    return true;
  }

  double best() const { return result.elites.empty() ? 0 : result.elites.front().record.median; }

  void note(const Point &point, const Record &record) {
    result.log.push_back(record);
    if (record.outcome != "ok")
      return;
    result.elites.push_back({point, record});
    std::stable_sort(result.elites.begin(), result.elites.end(),
                     [](const Elite &a, const Elite &b) { return a.record.median < b.record.median; });
    result.elites.resize(std::min<size_t>(result.elites.size(), kElites));
  }

  void showProgress(const Record &record) {
    std::string found = result.elites.empty()
                            ? "none yet"
                            : fmt::format("{:.2f} us by {}", best(), result.elites.front().record.candidate);
    double left = std::chrono::duration<double>(deadline - Clock::now()).count();
    size_t total =
        options.search.evaluations ? std::min(options.search.evaluations, result.ranked.size()) : result.ranked.size();
    progress(result.log.size(), total,
             fmt::format("{} | best {} | generation {} {} | {:.0f} s left", formatShape(result.problem.shape), found,
                         record.generation, record.candidate, std::max(0.0, left)));
  }

  const TuneOptions &options;
  const Compiler &compiler;
  Store &store;
  StudyResult &result;
  const TuneProgress &progress;
  Evaluator evaluator;
  Clock::time_point deadline;
  long number;
  std::map<std::string, Record> records;
};

/// The row that dispatch picks for a problem; UserError when none does.
std::pair<const KernelSet *, const fagen_row *> pickRow(const std::vector<std::unique_ptr<KernelSet>> &sets,
                                                        const Case &problem, fagen_device *device) {
  fagen_problem described = describeProblem(problem, Placements(problem));
  for (const auto &set : sets) {
    const fagen_table *table = set->table();
    fagen_choice choice = makeAbi<fagen_choice>();
    if (fagen_query(&table, 1, &described, device, &choice) == FAGEN_OK)
      return {set.get(), choice.row};
  }
  throw UserError(fmt::format("no row of the spec computes {} here", formatCase(problem)));
}

std::vector<Point> rank(const Space &space, const Case &problem, int sms) {
  std::map<Point, double> cost;
  for (const Point &point : space.points)
    cost[point] = modelCost(space, point, problem.shape, problem.mask, sms);
  std::vector<Point> ranked = space.points;
  std::stable_sort(ranked.begin(), ranked.end(), [&](const Point &a, const Point &b) { return cost[a] < cost[b]; });
  return ranked;
}

/// The best of problems of the same row that were searched before come first.
void putFirst(const std::vector<StudyResult> &earlier, StudyResult &result) {
  std::vector<Point> first;
  for (const StudyResult &study : earlier)
    if (study.base.problem == result.base.problem && !study.elites.empty())
      for (const Point &point : result.ranked)
        if (nameOf(result.space, point) == study.elites.front().record.candidate)
          first.push_back(point);
  for (const Point &point : first) {
    auto place = std::find(result.ranked.begin(), result.ranked.end(), point);
    std::rotate(result.ranked.begin(), place, place + 1);
  }
}

} // namespace

TuneReport runTune(TimingDevice &device, const TuneOptions &options, const TuneProgress &progress) {
  Compiler compiler(options.spec, options.target);
  Store store(options.database.string());
  Sandbox sandbox;
  sandbox.device = options.device;
  sandbox.gated = options.gated;
  sandbox.directory = options.database.string() + ".work";
  sandbox.limits = options.limits;
  sandbox.rounds = options.rounds;
  fs::create_directories(sandbox.directory);
  compiler.compileSpec(sandbox.directory / "spec");
  auto sets = loadKernelSets({(sandbox.directory / "spec").string()});

  TuneReport report;
  fagen_device_info info = makeAbi<fagen_device_info>();
  fagen_device_get_info(device.queryDevice(), &info);
  report.device = device.name();
  report.sm = device.computeCapability();
  report.sms = info.sm_count;
  report.machine = describeMachine(device.gpu());
  std::string driver = report.machine.value("driver", report.machine.value("driver_cuda", options.device));

  Clock::time_point begin = Clock::now();
  for (size_t i = 0; i < options.problems.size(); ++i) {
    if (options.stop && *options.stop)
      break;
    StudyResult result;
    result.problem = options.problems[i];
    auto [set, row] = pickRow(sets, result.problem, device.queryDevice());
    result.base = Compiler::baseOf(*set, *row);
    result.key = {report.device, driver, compiler.version(), compiler.specHash(),
                  fmt::format("{} by {} for {}", formatCase(result.problem), row->variant, row->target)};
    result.space = compiler.spaceOf(result.base, options.derived, sandbox.directory);
    result.ranked = rank(result.space, result.problem, static_cast<int>(report.sms));
    compiler.plan(
        result.base, result.space,
        {result.ranked.begin(), result.ranked.begin() + static_cast<long>(std::min(kPlanned, result.ranked.size()))},
        sandbox.directory);
    result.ranked = rank(result.space, result.problem, static_cast<int>(report.sms));
    putFirst(report.studies, result);
    double spent = std::chrono::duration<double>(Clock::now() - begin).count();
    double share = (options.budgetSeconds - spent) / static_cast<double>(options.problems.size() - i);
    Study(options, compiler, store, sandbox, result, share, progress).run();
    report.studies.push_back(std::move(result));
  }
  std::error_code error;
  fs::remove_all(sandbox.directory, error);
  return report;
}

} // namespace fagen::lab::tune
