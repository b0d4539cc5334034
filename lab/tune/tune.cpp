// fagen: searches the best schedule of each problem.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tune.h"
#include "lab/check/check.h"
#include "lab/device/gpu_device.h"
#include "lab/device/machine.h"
#include "lab/support/write_file.h"
#include "rank.h"
#include "study.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace fagen::lab::tune {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Of the budget: to time what is best for one problem on the others.
static constexpr double kCrossShare = 0.15;

const Record *StudyResult::shipped() const {
  std::string name = shippedName();
  auto found = std::find_if(log.begin(), log.end(), [&](const Record &record) { return record.candidate == name; });
  return found == log.end() ? nullptr : &*found;
}

Json StudyResult::bestOverShipped() const {
  if (!elites.empty() && elites.front().record.candidate != shippedName())
    for (const Json &entry : contest)
      if (entry.at("candidate") == elites.front().record.candidate && entry.contains("ratio"))
        return {{"ratio", entry.at("ratio")}, {"low", entry.at("low")}, {"high", entry.at("high")}};
  return nullptr;
}

namespace {

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

/// Planning that takes no longer shows no progress.
static constexpr std::chrono::seconds kQuiet{2};

/// Candidates' files, of one tuner at a time; the lock ends with the process.
class WorkDirectory {
public:
  explicit WorkDirectory(const fs::path &database) : path(database.string() + ".work") {
    makeDirectory(path.string());
    lock = ::open((path / "lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0)
      throw UserError(fmt::format("another tuner works on {}", database.string()));
  }
  ~WorkDirectory() {
    std::error_code error;
    fs::remove_all(path, error);
    close(lock);
  }
  WorkDirectory(const WorkDirectory &) = delete;
  WorkDirectory &operator=(const WorkDirectory &) = delete;

  const fs::path path;

private:
  int lock;
};

class Tuner {
public:
  Tuner(TimingDevice &device, const TuneOptions &options, const TuneProgress &progress)
      : device(device), options(options), progress(progress), compiler(options.spec, options.target),
        store(options.database.string()), work(options.database), worker(options.device) {
    sandbox.device = options.device;
    sandbox.gated = options.gated;
    sandbox.directory = work.path;
    sandbox.limits = options.limits;
    sandbox.rounds = options.rounds;
    sandbox.metered = options.measure == Measure::Joules;
    compiler.compileSpec(sandbox.directory / "spec");
    sets = loadKernelSets({(sandbox.directory / "spec").string()});
    fagen_device_info info = makeAbi<fagen_device_info>();
    fagen_device_get_info(device.queryDevice(), &info);
    report.measure = options.measure;
    report.device = device.name();
    report.sm = device.computeCapability();
    report.sms = info.sm_count;
    report.machine = describeMachine(device.gpu());
  }

  TuneReport run() {
    report.studies.reserve(options.problems.size());
    double crossShare = options.problems.size() > 1 ? kCrossShare : 0;
    for (size_t i = 0; i < options.problems.size() && !stopped(); ++i) {
      if (!openNext(options.problems[i]))
        break;
      double left = options.budgetSeconds * (1 - crossShare) - spent();
      study(report.studies.back(), left / static_cast<double>(options.problems.size() - i)).run();
    }
    for (StudyResult &result : report.studies)
      if (crossShare > 0 && !stopped())
        study(result, options.budgetSeconds - spent()).cross(bestOfOthers(result));
    for (StudyResult &result : report.studies)
      if (!stopped())
        study(result, 0).contest();
    return std::move(report);
  }

private:
  bool stopped() const { return options.stop && *options.stop; }
  double spent() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }

  Study study(StudyResult &result, double seconds) {
    return Study(options, compiler, store, sandbox, worker, result, seconds, static_cast<int>(report.sms), progress);
  }

  /// False: the signal that stops the tuner reached the compiler as well.
  bool openNext(const Case &problem) {
    try {
      report.studies.push_back(open(problem));
    } catch (const UserError &) {
      if (!stopped())
        throw;
    }
    return !stopped();
  }

  StudyResult open(const Case &problem) {
    StudyResult result;
    result.problem = problem;
    auto [set, row] = pickRow(sets, problem, device.queryDevice());
    result.base = Compiler::baseOf(*set, *row);
    std::string driver = report.machine.value("driver", report.machine.value("driver_cuda", options.device));
    result.key = {report.device, driver, compiler.version(), compiler.specHash(),
                  fmt::format("{} by {} for {}{}", formatCase(problem), row->variant, row->target,
                              sandbox.metered ? " in joules" : "")};
    Space &space = spaces[std::string(row->variant) + row->target]; // problems of one row have one space
    if (space.points.empty())
      space = compiler.spaceOf(result.base, options.derived, sandbox.directory);
    result.space = space;
    result.ranked = rankPoints(compiler, result.base, result.space, problem, report.sm, sandbox.directory,
                               [&, since = Clock::now()](size_t done, size_t total) {
                                 if (Clock::now() - since > kQuiet)
                                   progress(done, total, formatShape(problem.shape) + " | planning schedules");
                               });
    if (options.pruned)
      result.slow = leaveOutSlow(result.space, result.ranked);
    putFirst(report.studies, result);
    return result;
  }

  /// The elites, and what is shipped, of other problems that the same problem block covers.
  std::vector<Point> bestOfOthers(const StudyResult &result) const {
    std::vector<Point> points = {result.space.points.front()};
    auto add = [&](const std::map<std::string, std::string> &settings) {
      std::optional<Point> point = pointOf(result.space, settings);
      if (point && std::find(points.begin(), points.end(), *point) == points.end())
        points.push_back(*point);
    };
    for (const StudyResult &other : report.studies) {
      if (other.base.problem != result.base.problem || other.base.target != result.base.target)
        continue;
      add(settingsOf(other.space, other.space.points.front()));
      for (const Elite &elite : other.elites)
        add(settingsOf(other.space, elite.point));
    }
    return points;
  }

  TimingDevice &device;
  const TuneOptions &options;
  const TuneProgress &progress;
  Clock::time_point begin = Clock::now();
  Compiler compiler;
  Store store;
  WorkDirectory work;
  Worker worker;
  Sandbox sandbox;
  std::vector<std::unique_ptr<KernelSet>> sets;
  std::map<std::string, Space> spaces; ///< by variant and target
  TuneReport report;
};

} // namespace

TuneReport runTune(TimingDevice &device, const TuneOptions &options, const TuneProgress &progress) {
  std::signal(SIGPIPE, SIG_IGN); // a worker that died is seen when it is written to
  return Tuner(device, options, progress).run();
}

} // namespace fagen::lab::tune
