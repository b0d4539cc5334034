// fagen: takes candidates through compile, gate and time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "evaluator.h"
#include "lab/support/child_process.h"
#include "lab/support/statistics.h"

#include <algorithm>
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

std::string Evaluator::compile(const Point &point) const {
  return compiler.compile(base, space, point, directoryOf(point), sandbox.limits.compile);
}

std::string Evaluator::build(const Point &point, const Case &about, Worker &builder) const {
  std::string refusal = compile(point);
  if (refusal.empty())
    builder.ask(request(about, {point}, 0, 0), sandbox.limits.compile); // what fails here fails again when it is timed
  return refusal;
}

void Evaluator::prepare(const Point &point, Record &record, Worker &builder) const {
  Stopwatch stopwatch(record);
  std::string refusal = sandbox.gated ? compile(point) : build(point, problem, builder);
  if (!refusal.empty())
    return conclude(record, "refused", "compile", refusal.substr(0, refusal.find('\n')));
  record.outcome = "gated";
  if (sandbox.gated)
    gate(point, record);
}

/// `fagen-run gate` in a process of its own. What keeps it from answering is the candidate's outcome.
void Evaluator::gate(const Point &point, Record &record) const {
  fs::path output = sandbox.directory / fmt::format("{}.gate.json", record.candidate);
  fs::remove(output);
  ChildOutcome outcome =
      runChild({fs::read_symlink("/proc/self/exe").string(), "gate", directoryOf(point).string(), "--device",
                sandbox.device == "gpu" ? "gpu" : "cpu", "--suite", "smoke", "--variant", variantOf(point), "--shape",
                formatShape(problem.shape), "--output", output.string()},
               sandbox.limits.gate, [](const std::string &) {});
  std::ifstream stream(output);
  Json answer = Json::parse(stream, nullptr, false);
  fs::remove(output);
  if (outcome.timedOut)
    return conclude(record, "hung", "gate", fmt::format("no end after {:g} s", sandbox.limits.gate));
  if (outcome.signal)
    return conclude(record, "crashed", "gate", fmt::format("signal {}", outcome.signal));
  if (answer.is_discarded() || !answer.contains("gate"))
    return conclude(record, "failed", "gate",
                    fmt::format("exit code {}: {}", outcome.exitCode, lastLine(outcome.errors)));
  for (const Json &variant : answer.at("gate").at("variants"))
    for (const Json &stage : variant.at("stages"))
      if (stage.at("verdict") == "fail") {
        std::string name = stage.at("stage");
        bool refused = name == "build" || name == "resources";
        std::string why = stage.at("why");
        why.erase(std::min(why.find("; again:"), why.size())); // the candidate's files will be gone
        return conclude(record, refused ? "refused" : "wrong", name, why);
      }
}

Json Evaluator::contestant(const Point &point) const {
  return {{"directory", (directoryOf(point) / base.kernel).string()}, {"variant", variantOf(point)}};
}

Json Evaluator::request(const Case &about, const std::vector<Point> &points, int rounds, double limit) const {
  Json request{{"problem", formatCase(about)}, {"rounds", rounds}, {"limit", limit}, {"contestants", Json::array()}};
  if (rounds > 0)
    request["reference"] = {{"directory", (sandbox.directory / "spec" / base.kernel).string()},
                            {"variant", base.variant}};
  for (const Point &point : points)
    request["contestants"].push_back(contestant(point));
  return request;
}

/// Of the problem, by the measure that the search is for.
Json Evaluator::measured(const std::vector<Point> &points, int rounds, double limit) const {
  Json asked = request(problem, points, rounds, limit);
  if (sandbox.metered)
    asked["measure"] = "joules";
  return asked;
}

void Evaluator::time(const Point &point, double best, Record &record) const {
  Stopwatch stopwatch(record);
  record.samples.clear();
  double limit = best * sandbox.raceLimit;
  Reply reply = worker.ask(measured({point}, sandbox.rounds, limit), sandbox.limits.time);
  if (!reply.ending.empty())
    return conclude(record, reply.ending.c_str(), "time", reply.why);
  const Json &result = reply.json.at("results").at(0);
  if (result.contains("failure"))
    return conclude(record, "failed", "time", result.at("failure"));
  for (const Json &segment : result.at("segments"))
    for (const Json &sample : segment)
      record.samples.push_back(sample);
  record.median = median(record.samples);
  if (result.at("stopped"))
    return conclude(record, "raced", "time",
                    fmt::format("{:.3f} times the best after {} {}", record.median / best, record.samples.size(),
                                sandbox.metered ? "loads" : "replays"));
  conclude(record, "ok", "time", "");
}

double Evaluator::timeOn(const Case &other, const Point &point) const {
  Reply reply = worker.ask(request(other, {point}, 1, 0), sandbox.limits.time);
  if (!reply.ending.empty() || reply.json.at("results").at(0).contains("failure"))
    return 0;
  return median(reply.json.at("results").at(0).at("segments").at(0).get<std::vector<double>>());
}

std::vector<Segments> Evaluator::contest(const std::vector<Point> &points, int rounds) const {
  std::vector<Segments> segments(points.size());
  Reply reply = worker.ask(measured(points, rounds, 0), static_cast<double>(points.size()) * sandbox.limits.time);
  if (!reply.ending.empty())
    return segments;
  for (size_t i = 0; i < points.size(); ++i)
    if (const Json &result = reply.json.at("results").at(i); result.contains("segments"))
      segments[i] = result.at("segments").get<Segments>();
  return segments;
}

} // namespace fagen::lab::tune
