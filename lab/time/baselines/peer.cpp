// fagen: times kernels and PyTorch, in one Python process on the same tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "peer.h"
#include "lab/support/child_process.h"
#include "names.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fagen::lab {

namespace fs = std::filesystem;
using nlohmann::json;

/// What the environment names, else the first of the candidates that is there, else empty.
static std::string locate(const char *variable, const std::vector<fs::path> &candidates) {
  if (const char *named = std::getenv(variable); named && *named)
    return named;
  for (const fs::path &candidate : candidates)
    if (std::error_code error; fs::is_regular_file(candidate, error))
      return candidate.string();
  return "";
}

/// In a source tree the script lies some levels above the tool, when installed under share/fagen.
static std::string findScript(const fs::path &tool) {
  std::vector<fs::path> candidates;
  for (fs::path above = tool.parent_path();; above = above.parent_path()) {
    candidates.push_back(above / "measure" / "compare_sdpa.py");
    candidates.push_back(above / "share" / "fagen" / "measure" / "compare_sdpa.py");
    if (above == above.parent_path())
      break;
  }
  return locate("FAGEN_PEER", candidates);
}

static std::vector<std::string> peerArguments(const std::vector<std::unique_ptr<KernelSet>> &sets,
                                              const std::vector<Case> &problems,
                                              const std::vector<std::string> &baselines, const TimeOptions &options) {
  std::error_code error;
  fs::path tool = fs::read_symlink("/proc/self/exe", error);
  std::string script = findScript(tool);
  if (script.empty())
    throw UserError("measure/compare_sdpa.py, which times PyTorch, is not above fagen-run; FAGEN_PEER can name it");
  std::string library = locate("FAGEN_CAPI", {tool.parent_path() / "libfagen_capi.so",
                                              tool.parent_path() / "../lib/fagen/measure/libfagen_capi.so"});
  if (library.empty())
    throw UserError("libfagen_capi.so is not next to fagen-run; FAGEN_CAPI can name it");
  std::string python = locate("FAGEN_PYTHON", {});
  std::vector<std::string> arguments = {python.empty() ? "python3" : python, script, "--stream", "--library", library};
  auto add = [&](const char *option, const std::string &value) { arguments.insert(arguments.end(), {option, value}); };
  for (const auto &set : sets)
    arguments.push_back(set->directory().string());
  for (const Case &problem : problems)
    add("--problem", formatCase(problem));
  for (const std::string &baseline : baselines)
    for (const std::string &member : baselineMembers(baseline))
      add("--backend", member.substr(member.find(':') + 1));
  for (const std::string &variant : options.variants)
    add("--variant", variant);
  arguments.push_back(options.dispatchedOnly ? "--dispatched" : "--all");
  add("--state", options.state == PowerState::Burst ? "burst" : "steady");
  add("--l2", options.l2 == L2State::Warm ? "warm" : "cold");
  add("--rounds", std::to_string(options.rounds));
  add("--seed", std::to_string(options.seed));
  return arguments;
}

static Telemetry readTelemetry(const json &value) {
  auto number = [&](const char *key) {
    return value.contains(key) && value[key].is_number() ? value[key].get<double>() : 0;
  };
  return {number("sm_clock_mhz"), number("watts"), number("celsius")};
}

/// As measure/compare_sdpa.py writes it: null in a burst, the reason where it is not known.
static void readEnergy(const json &value, Segment &segment) {
  if (value.is_null())
    return;
  if (value.is_string()) {
    segment.load.energy.missing = value;
    return;
  }
  segment.load.energy = {value.at("joules"), value.at("seconds"), value.at("error"), ""};
  segment.load.launches = value.at("launches");
  segment.load.seconds = value.at("load_s");
}

static std::vector<Segment> readSegments(const json &result) {
  std::vector<Segment> segments;
  for (const json &value : result.at("segments")) {
    Segment segment;
    segment.before = readTelemetry(value.at("before"));
    segment.after = readTelemetry(value.at("after"));
    readEnergy(value.at("energy"), segment);
    segments.push_back(segment);
  }
  for (const json &sample : result.at("samples_round_us")) {
    const size_t segment = sample.at(0);
    if (segment >= segments.size())
      throw UserError(fmt::format("a sample is of segment {}, and there are {}", segment, segments.size()));
    segments[segment].microseconds.push_back(sample.at(1));
  }
  return segments;
}

static void findRow(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::string &target,
                    TimeResult &result) {
  for (const auto &set : sets)
    for (const fagen_row *row : set->rows())
      if (row->variant == result.name && row->target == target) {
        result.set = set.get();
        result.row = row;
      }
}

/// The contestants of one problem: those that were timed, and those that refused it.
static void readProblem(const json &value, const Case &problem, const std::vector<std::unique_ptr<KernelSet>> &sets,
                        const std::string &library, TimeReport &report) {
  TimeResult blank;
  blank.shape = problem.shape;
  blank.dtype = problem.dtype;
  blank.mask = maskText(problem);
  blank.flops = flops(problem.shape, problem.mask);
  blank.process = "python";
  for (const json &measured : value.at("results")) {
    TimeResult result = blank;
    bool ours = measured.at("kind") == "fagen";
    result.name = (ours ? "" : "sdpa:") + measured.at("name").get<std::string>();
    result.launchesPerGraph = measured.at("launches_per_graph");
    result.segments = readSegments(measured);
    if (!ours) {
      result.library = library;
    } else {
      result.picked = measured.at("picked");
      result.registers = measured.at("registers");
      result.localBytes = measured.at("local_bytes");
      findRow(sets, measured.at("target"), result);
    }
    report.results.push_back(std::move(result));
  }
  for (const auto &[name, reason] : value.at("refused").items()) {
    TimeResult result = blank;
    result.name = "sdpa:" + name;
    result.failure = reason;
    report.results.push_back(std::move(result));
  }
  for (const json &failed : value.at("failed")) {
    TimeResult result = blank;
    result.name = failed.at("name");
    result.failure = failed.at("reason");
    findRow(sets, failed.at("target"), result);
    report.results.push_back(std::move(result));
  }
}

void runPeer(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::vector<Case> &problems,
             const std::vector<std::string> &baselines, const TimeOptions &options, const TimeProgress &progress,
             TimeReport &report) {
  std::vector<std::string> arguments = peerArguments(sets, problems, baselines, options);
  json result;
  auto read = [&](const std::string &line) {
    json said = json::parse(line, nullptr, false);
    if (!said.is_object())
      return; // other words of that process
    if (said.contains("result"))
      result = said["result"];
    else if (const json done = said.value("progress", json::array());
             done.size() == 3 && done[0].is_number_unsigned() && done[1].is_number_unsigned() && done[2].is_string())
      progress(done[0], done[1], "python: " + done[2].get<std::string>());
  };
  ChildOutcome outcome = runChild(arguments, 0, read);
  if (outcome.exitCode == kNotStarted)
    throw UserError(fmt::format("{} cannot be started; FAGEN_PYTHON names an interpreter with PyTorch", arguments[0]));
  if (!outcome.succeeded() || result.is_null())
    throw UserError(fmt::format("{} {} ended with {} {} before it had times to tell:\n{}", arguments[0], arguments[1],
                                outcome.signal ? "signal" : "exit code",
                                outcome.signal ? outcome.signal : outcome.exitCode, outcome.errors));
  try {
    const json &measured = result.at("problems"), &machine = result.at("machine");
    std::string library =
        fmt::format("PyTorch {}, its cuDNN {}", machine.at("torch").get<std::string>(), machine.at("cudnn").dump());
    for (size_t i = 0; i < problems.size(); ++i)
      readProblem(measured.at(i), problems[i], sets, library, report);
    report.notes.push_back(library);
  } catch (const json::exception &error) {
    throw UserError(fmt::format("{} said something else than times: {}", arguments[1], error.what()));
  }
}

} // namespace fagen::lab
