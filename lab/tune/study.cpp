// fagen: the search of one problem.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "study.h"
#include "micro.h"

#include <algorithm>
#include <fmt/format.h>
#include <mutex>
#include <thread>

namespace fagen::lab::tune {

/// A candidate in flight when the tuner died this often has probably taken the machine with it.
static constexpr int kAttempts = 5;
static constexpr double kTileShare = 0.2; ///< of the budget, at most
static constexpr size_t kAlikeTiles = 3;  ///< of one structure: the others are of others
static constexpr int kContestRounds = 12, kMeteredRounds = 4;

/// What readers of the store need to know of a study.
static Json describe(const StudyResult &result, int sms, Measure measure) {
  const BaseKernel &base = result.base;
  const Shape &shape = result.problem.shape;
  Json about{{"kernel", base.kernel},
             {"target", base.target},
             {"schedule", base.schedule},
             {"variant", base.variant},
             {"dtype", nameOf(result.problem.dtype)},
             {"accum", base.accum},
             {"mask", nameOf(result.problem.mask)},
             {"lse", base.lse},
             {"head_dim_qk", shape.headDimQK},
             {"head_dim_v", shape.headDimV},
             {"batch", shape.batch},
             {"heads", shape.heads},
             {"kv_heads", shape.kvHeads},
             {"seq_q", shape.seqQ},
             {"seq_kv", shape.seqKv},
             {"sms", sms},
             {"shipped", result.shippedName()}};
  if (measure == Measure::Joules)
    about["measure"] = "joules";
  return about;
}

Study::Study(const TuneOptions &options, const Compiler &compiler, Store &store, const Sandbox &sandbox, Worker &worker,
             StudyResult &result, double seconds, int sms, const TuneProgress &progress)
    : options(options), store(store), result(result), progress(progress),
      evaluator(compiler, result.base, result.space, result.problem, sandbox, worker),
      deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
      seconds(seconds), sms(sms), number(store.open(result.key, describe(result, sms, options.measure).dump())),
      records(store.records(number)) {}

void Study::run() {
  result.ended = "finished";
  if (options.tiles)
    timeTiles();
  search(result.space, result.ranked, options.search,
         [&](const std::vector<Point> &points, int generation) { return evaluate(points, generation); });
}

void Study::cross(const std::vector<Point> &points) {
  std::string ended = result.ended;
  result.ended = "finished";
  std::vector<Point> open;
  for (const Point &point : points)
    if (std::none_of(result.log.begin(), result.log.end(),
                     [&](const Record &record) { return record.candidate == nameOf(result.space, point); }))
      open.push_back(point);
  if (!open.empty())
    evaluate(open, -1);
  result.ended = stopped() ? "stopped" : ended;
}

bool Study::mayGoOn() {
  if (stopped())
    result.ended = "stopped";
  else if (Clock::now() > deadline)
    result.ended = "budget";
  return result.ended == "finished";
}

//===-- Synthetic tiles -------------------------------------------------------------------------------------------===//

/// The first of the model's order, not more than a few of one structure, and the shipped one.
static std::vector<Point> tilesToTime(const StudyResult &result, size_t count) {
  std::vector<Point> chosen = {result.space.points.front()};
  std::map<Point, size_t> alike;
  for (const Point &point : result.ranked) {
    Point structure;
    for (size_t axis = 0; axis < result.space.axes.size(); ++axis)
      if (result.space.axes[axis].structural)
        structure.push_back(point[axis]);
    if (chosen.size() < count && point != chosen.front() && alike[structure]++ < std::max(kAlikeTiles, count / 4))
      chosen.push_back(point);
  }
  return chosen;
}

/// Times tiles and moves the fastest to the front of the ranking. Tiles do not depend on the whole shape: what one
/// problem found serves the next.
void Study::timeTiles() {
  MicroProblem micro = microProblem(result.problem, sms);
  auto keyOf = [&](const Case &tile) {
    return fmt::format("{} of {} {} for {}", formatCase(tile), result.base.problem, result.base.mma,
                       result.base.target);
  };
  std::vector<Point> points = tilesToTime(result, options.tiles), open;
  auto shorter = store.tiles(result.key, keyOf(micro.shorter)), longer = store.tiles(result.key, keyOf(micro.longer));
  for (const Point &point : points)
    if (!longer.count(nameOf(result.space, point)) || !shorter.count(nameOf(result.space, point)))
      open.push_back(point);
  auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds * kTileShare));
  auto mayTime = [&] { return !stopped() && Clock::now() < until; };
  parallel(open.size(), [&](size_t i, Worker &builder) {
    if (mayTime() && !evaluator.build(open[i], micro.shorter, builder).empty())
      open[i].clear(); // refused: the search will say why
  });
  for (auto [tile, times] : {std::pair{&micro.shorter, &shorter}, std::pair{&micro.longer, &longer}})
    for (const Point &point : open) {
      if (point.empty() || !mayTime())
        continue;
      std::string name = nameOf(result.space, point);
      showProgress("tile of " + name);
      (*times)[name] = evaluator.timeOn(*tile, point);
      if (!stopped())
        store.keepTile(result.key, keyOf(*tile), name, (*times)[name]);
    }
  for (const Point &point : open)
    if (!point.empty())
      evaluator.remove(point);
  for (const Point &point : points) {
    std::string name = nameOf(result.space, point);
    if (shorter[name] > 0 && longer[name] > 0)
      result.micro.push_back(
          {point, shorter[name], longer[name], predictFromMicro(micro, result.problem, shorter[name], longer[name])});
  }
  std::stable_sort(result.micro.begin(), result.micro.end(),
                   [](const MicroTile &a, const MicroTile &b) { return a.predicted < b.predicted; });
  std::vector<Point> first;
  for (const MicroTile &tile : result.micro)
    first.push_back(tile.point);
  for (const Point &point : result.ranked)
    if (std::find(first.begin(), first.begin() + static_cast<long>(result.micro.size()), point) ==
        first.begin() + static_cast<long>(result.micro.size()))
      first.push_back(point);
  result.ranked = first;
}

//===-- Candidates ------------------------------------------------------------------------------------------------===//

/// Work on 0 to count - 1, several at a time, each with a process to build in.
void Study::parallel(size_t count, const std::function<void(size_t, Worker &)> &work) const {
  std::atomic<size_t> next = 0;
  auto loop = [&] {
    Worker builder(options.device);
    for (size_t i; (i = next++) < count;)
      work(i, builder);
  };
  std::vector<std::thread> workers;
  for (size_t i = 1; i < std::min(static_cast<size_t>(options.jobs), count); ++i)
    workers.emplace_back(loop);
  loop();
  for (std::thread &worker : workers)
    worker.join();
}

static bool isFinal(const Record &record) {
  return !record.outcome.empty() && record.outcome != "running" && record.outcome != "gated";
}

void Study::giveUpKillers(Record &record) {
  if (record.outcome != "running" || record.attempts < kAttempts)
    return;
  record.outcome = "crashed";
  record.stage = "time";
  record.why = fmt::format("the tuner did not outlive it {} times", record.attempts);
  store.finish(number, record);
}

std::vector<Measured> Study::evaluate(const std::vector<Point> &points, int generation) {
  std::vector<Point> open;
  for (const Point &point : points) {
    Record &record = records[nameOf(result.space, point)];
    giveUpKillers(record);
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
  if (result.ended == "finished" && failedAlike(answers.size()))
    result.ended = "failed";
  return answers;
}

/// Whether nothing was ever timed, and the last generation failed for one reason: the next would, too.
bool Study::failedAlike(size_t generation) const {
  constexpr size_t kFewest = 3; // of fewer nothing follows
  if (generation < kFewest || result.log.size() < generation || !result.shipped())
    return false;
  auto timed = [](const Record &record) { return record.timed(); };
  if (std::any_of(result.log.begin(), result.log.end(), timed))
    return false;
  return std::all_of(result.log.end() - static_cast<long>(generation), result.log.end(),
                     [&](const Record &record) { return plainReason(record) == plainReason(result.log.back()); });
}

/// Compiling and checking, several at a time.
void Study::prepareAll(const std::vector<Point> &points, int generation) {
  std::mutex lock; // of the records, the store and what mayGoOn() sets
  parallel(points.size(), [&](size_t i, Worker &builder) {
    std::unique_lock hold(lock);
    if (!mayGoOn())
      return;
    Record &record = records[nameOf(result.space, points[i])];
    Record mine = record;
    begin(points[i], mine, generation);
    bool wasGated = record.outcome == "gated"; // before the tuner was killed; only its text is made again
    hold.unlock();
    if (!wasGated)
      evaluator.prepare(points[i], mine, builder);
    else if (mine.why = evaluator.compile(points[i]); mine.why.empty())
      mine.outcome = "gated";
    else
      mine.outcome = "refused";
    hold.lock();
    record = mine;
    if (stopped())
      store.abandon(number, record.candidate);
    else
      store.finish(number, record);
  });
}

void Study::begin(const Point &point, Record &record, int generation) {
  record.candidate = nameOf(result.space, point);
  record.settings = Json(settingsOf(result.space, point)).dump();
  record.generation = generation;
  record.strategy = options.search.strategy;
  record.outcome = "running";
  store.begin(number, record);
}

/// Times what is checked. False: the search ends here, without this candidate.
bool Study::finishOne(const Point &point, Record &record) {
  if (record.outcome == "gated") {
    if (!mayGoOn())
      return false;
    showProgress(fmt::format("generation {} {}", record.generation, record.candidate));
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

void Study::note(const Point &point, const Record &record) {
  result.log.push_back(record);
  if (record.outcome != "ok")
    return;
  result.elites.push_back({point, record});
  std::stable_sort(result.elites.begin(), result.elites.end(),
                   [](const Elite &a, const Elite &b) { return a.record.median < b.record.median; });
  result.elites.resize(std::min<size_t>(result.elites.size(), kElites));
}

void Study::showProgress(const std::string &what) const {
  std::string found = result.elites.empty() ? "none yet"
                                            : fmt::format("{:.2f} {} by {}", best(), unitOf(options.measure),
                                                          result.elites.front().record.candidate);
  double left = std::chrono::duration<double>(deadline - Clock::now()).count();
  size_t total =
      options.search.evaluations ? std::min(options.search.evaluations, result.ranked.size()) : result.ranked.size();
  progress(result.log.size(), total,
           fmt::format("{} | best {} | {} | {:.0f} s left", formatShape(result.problem.shape), found, what,
                       std::max(0.0, left)));
}

//===-- Contest ---------------------------------------------------------------------------------------------------===//

void Study::contest() {
  std::vector<Point> points = {result.space.points.front()};
  for (const Elite &elite : result.elites)
    if (elite.point != points.front())
      points.push_back(elite.point);
  if (points.size() == 1)
    return;
  showProgress("contest of the elites");
  std::erase_if(points, [&](const Point &point) { return !evaluator.compile(point).empty(); });
  std::vector<Segments> segments =
      evaluator.contest(points, options.measure == Measure::Joules ? kMeteredRounds : kContestRounds);
  std::map<Point, double> medians;
  for (size_t i = 0; i < points.size(); ++i) {
    evaluator.remove(points[i]);
    std::vector<double> all;
    for (const auto &segment : segments[i])
      all.insert(all.end(), segment.begin(), segment.end());
    if (all.empty())
      continue;
    medians[points[i]] = median(all);
    Json entry{{"candidate", nameOf(result.space, points[i])}, {medianKey(options.measure), median(all)}};
    if (!segments[0].empty()) {
      Interval interval = ratioOfMedians(segments[i], segments[0], 1);
      entry.update({{"ratio", median(all) / medians[points[0]]}, {"low", interval.low}, {"high", interval.high}});
    }
    result.contest.push_back(entry);
  }
  // What is shipped may have been timed at another clock than the elites: side by side it may be one of them.
  const Point &shipped = result.space.points.front();
  const Record *record = result.shipped();
  if (record && medians.count(shipped) &&
      std::none_of(result.elites.begin(), result.elites.end(),
                   [&](const Elite &elite) { return elite.point == shipped; }))
    result.elites.push_back({shipped, *record});
  std::stable_sort(result.elites.begin(), result.elites.end(), [&](const Elite &a, const Elite &b) {
    return medians.count(a.point) && (!medians.count(b.point) || medians[a.point] < medians[b.point]);
  });
  result.elites.resize(std::min<size_t>(result.elites.size(), kElites));
}

} // namespace fagen::lab::tune
