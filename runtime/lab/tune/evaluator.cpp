// fagen: takes candidates through compile, gate and time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tune/evaluator.h"
#include "child_process.h"
#include "statistics.h"

#include <chrono>
#include <fmt/format.h>
#include <fstream>

namespace fagen::lab::tune {

namespace fs = std::filesystem;

namespace {

/// Adds the seconds of its life to a record.
class Stopwatch {
public:
  explicit Stopwatch(Record &record) : record(record) {}
  ~Stopwatch() { record.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

private:
  Record &record;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
};

std::string lastLine(const std::string &text) {
  std::string last;
  for (const std::string &line : split(text, '\n'))
    if (!line.empty())
      last = line;
  return last;
}

} // namespace

static void conclude(Record &record, const char *outcome, const std::string &stage, std::string why) {
  record.outcome = outcome;
  record.stage = stage;
  record.why = std::move(why);
}

fs::path Evaluator::directoryOf(const Point &point) const { return sandbox.directory / nameOf(space, point); }

void Evaluator::remove(const Point &point) const {
  std::error_code error;
  fs::remove_all(directoryOf(point), error);
}

std::string Evaluator::variantOf(const Point &point) const {
  auto set = KernelSet::load(directoryOf(point) / base.kernel);
  return set->rows().front()->variant;
}

/// Runs this program again. What keeps it from answering is the candidate's outcome.
Evaluator::Answer Evaluator::run(const std::string &stage, std::vector<std::string> arguments, double seconds,
                                 Record &record) const {
  fs::path output = sandbox.directory / fmt::format("{}.{}.json", record.candidate, stage);
  fs::remove(output);
  arguments.insert(arguments.begin(), {fs::read_symlink("/proc/self/exe").string(), stage});
  arguments.insert(arguments.end(), {"--output", output.string()});
  ChildOutcome outcome = runChild(arguments, seconds, [](const std::string &) {});
  Answer answer;
  if (outcome.timedOut) {
    conclude(record, "hung", stage, fmt::format("no end after {:g} s", seconds));
  } else if (outcome.signal) {
    conclude(record, "crashed", stage, fmt::format("signal {}", outcome.signal));
  } else {
    std::ifstream stream(output);
    answer.json = Json::parse(stream, nullptr, false);
    answer.ended = stream && !answer.json.is_discarded();
    if (!answer.ended)
      conclude(record, "failed", stage, fmt::format("exit code {}: {}", outcome.exitCode, lastLine(outcome.errors)));
  }
  fs::remove(output);
  return answer;
}

void Evaluator::prepare(const Point &point, Record &record) const {
  Stopwatch stopwatch(record);
  std::string refusal = compiler.compile(base, space, point, directoryOf(point), sandbox.limits.compile);
  if (!refusal.empty())
    return conclude(record, "refused", "compile", refusal.substr(0, refusal.find('\n')));
  record.outcome = "gated";
  if (!sandbox.gated)
    return;
  Answer answer = run("gate",
                      {directoryOf(point).string(), "--device", sandbox.device == "gpu" ? "gpu" : "cpu", "--suite",
                       "smoke", "--variant", variantOf(point), "--shape", formatShape(problem.shape)},
                      sandbox.limits.gate, record);
  if (!answer.ended)
    return;
  for (const Json &variant : answer.json.at("gate").at("variants"))
    for (const Json &stage : variant.at("stages"))
      if (stage.at("verdict") == "fail") {
        std::string name = stage.at("stage");
        bool refused = name == "build" || name == "resources";
        return conclude(record, refused ? "refused" : "wrong", name, stage.at("why"));
      }
}

std::vector<std::string> Evaluator::timing(int rounds) const {
  return {"--device", sandbox.device,
          "--shape",  formatShape(problem.shape),
          "--mask",   std::string(nameOf(problem.mask)),
          "--dtype",  std::string(nameOf(problem.dtype)),
          "--rounds", std::to_string(rounds)};
}

bool Evaluator::timeRounds(const Point &point, int rounds, Record &record) const {
  std::vector<std::string> arguments = timing(rounds);
  arguments.insert(arguments.begin(), {directoryOf(point).string(), "--variant", variantOf(point)});
  Answer answer = run("time", arguments, sandbox.limits.time, record);
  if (!answer.ended)
    return false;
  const Json &result = answer.json.at("time").at("results").at(0);
  if (result.contains("failure")) {
    conclude(record, "failed", "time", result.at("failure"));
    return false;
  }
  for (const Json &sample : result.at("samples_round_us")) // [round, microseconds]
    record.samples.push_back(sample.at(1));
  record.median = median(record.samples);
  return true;
}

void Evaluator::time(const Point &point, double best, Record &record) const {
  Stopwatch stopwatch(record);
  record.samples.clear();
  bool races = best > 0 && sandbox.rounds > 1;
  if (!timeRounds(point, races ? 1 : sandbox.rounds, record))
    return;
  if (races && record.median > best * sandbox.raceLimit)
    return conclude(record, "raced", "time",
                    fmt::format("{:.3f} times the best after one round", record.median / best));
  if (races && !timeRounds(point, sandbox.rounds - 1, record))
    return;
  conclude(record, "ok", "time", "");
}

Json Evaluator::duel(const Point &shipped, const Point &best) const {
  Record scratch;
  scratch.candidate = "duel";
  for (const Point &point : {shipped, best})
    if (std::string why = compiler.compile(base, space, point, directoryOf(point), sandbox.limits.compile);
        !why.empty())
      return {{"failure", why}};
  std::vector<std::string> arguments = timing(std::max(sandbox.rounds, 5));
  arguments.insert(arguments.begin(), {directoryOf(shipped).string(), directoryOf(best).string(), "--variant",
                                       variantOf(best), "--baseline", "kernel:" + variantOf(shipped)});
  Answer answer = run("time", arguments, 2 * sandbox.limits.time, scratch);
  if (!answer.ended)
    return {{"failure", scratch.why}};
  for (const Json &result : answer.json.at("time").at("results"))
    if (result.at("variant") == variantOf(best) && result.contains("time_over_baseline") &&
        !result.at("time_over_baseline").empty())
      return result.at("time_over_baseline").at(0);
  return {{"failure", "the duel has no ratio"}};
}

} // namespace fagen::lab::tune
