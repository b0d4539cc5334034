// fagen: fagen-run tune: searches the best schedule of a spec on a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/tune/tune.h"
#include "Command.h"
#include "TimingOptions.h"
#include "fagen/Target/GpuNames.h"
#include "lab/support/json_file.h"
#include "lab/support/write_file.h"
#include "lab/tune/forecast.h"
#include "lab/tune/replay.h"
#include "lab/tune/serve.h"

#include <csignal>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <thread>

namespace fagen::lab {

namespace {

std::atomic<bool> interrupted = false;
void interrupt(int) { interrupted = true; }

/// "10m", "90s", "1h", "600".
double parseDuration(const std::string &text) {
  size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception &) {
    used = 0;
  }
  std::string unit = text.substr(used);
  double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (used == 0 || factor == 0 || !(value > 0))
    throw UserError(fmt::format("'{}' is not a duration; 90s, 10m or 1h are", text));
  return value * factor;
}

class TuneCommand : public Command {
public:
  TuneCommand() : Command("tune", "search the fastest schedule of a spec, with its gates passed", false) {}

  std::string withoutGpu() const override {
    return "times need one: run this on a machine with a GPU, give --device simulated:FILE.json of recorded times, or "
           "--device model:h100 for predictions";
  }

  void addOptions(CLI::App &app) override {
    app.add_option("SPEC", spec, "the spec whose schedules are tuned; with --export alone: none");
    app.add_option("--db", database, "results, in SQLite; what it has is not run again")->capture_default_str();
    app.add_option("--budget", budget, "time for all problems together: 90s, 10m")->capture_default_str();
    app.add_option("--evaluations", evaluations, "at most so many candidates a problem; 0: all");
    app.add_option("--strategy", strategy, fmt::format("{}", fmt::join(tune::strategyNames(), ", ")))
        ->capture_default_str();
    app.add_option("--space", space, "derived: around what the spec ships; spec: its tune(...) only")
        ->capture_default_str();
    app.add_option("--shape,--problem,--case", shapes,
                   "b,h,hkv,sq,sk,d[,dv], mission, mission2 (default: mission); may be repeated");
    app.add_flag("--grid", grid, "d 64 at S 512, 2048, 8192 and d 128 at S 2048, with B*S = 16384 and H*d = 2048");
    app.add_option("--mask", masks, "none, causal (default: none)")->delimiter(',');
    app.add_option("--dtype", dtype, "f16, bf16")->capture_default_str();
    app.add_option("--target", target, "build for this target instead of the spec's");
    app.add_option(
           "--device", device,
           "gpu; simulated:FILE.json (recorded times); model:GPU (predictions of the time model, nothing measured)")
        ->capture_default_str();
    app.add_option("--seed", seed, "of the search")->capture_default_str();
    app.add_option("--rounds", rounds, "segments of a candidate that is not out after the first")
        ->capture_default_str()
        ->check(CLI::Range(1, 100));
    app.add_option("--jobs", jobs, "candidates that are compiled and checked at a time (default: threads, at most 8)")
        ->check(CLI::Range(1, 64));
    app.add_option("--limit", limit, "seconds after which a candidate's compile, gate or timing has hung")
        ->capture_default_str();
    app.add_option("--tiles", tiles, "candidates whose synthetic tiles are timed before the search; 0: none")
        ->capture_default_str();
    app.add_option("--generation", generation, "candidates that are compiled, checked and timed together")
        ->capture_default_str()
        ->check(CLI::Range(1, 256));
    app.add_option("--least", least,
                   "what is searched for: the least time of a launch, or its least joules (NVML's counter)")
        ->capture_default_str();
    app.add_flag("--unchecked", unchecked, "do not take candidates through the gates, only time them");
    app.add_flag("--unpruned", unpruned, "search also what the compiler's time model finds too slow");
    app.add_option("--evidence", evidence, "write micro_log.csv, evo_log.csv, elite.json, ... to this directory");
    app.add_option("--landscape", landscape, "write what was timed as a file for --device simulated:FILE");
    app.add_option("--export", exported, "write all that the results have to a file for fagen --tuned");
    app.footer(
        "Examples:\n"
        "  fagen-run tune mine.fa --shape 4,16,16,4096,4096,128 --mask causal --budget 10m\n"
        "  fagen-run tune mine.fa --space spec --strategy exhaustive --landscape times.json    all of its tune(...)\n"
        "  fagen-run tune mine.fa --device model:h100 --shape mission        ranks by the time model, without a GPU\n"
        "  fagen-run tune --export tuned.json                                                  for fagen --tuned");
  }

  int run() override {
    if (spec.empty() && exported.empty())
      throw UserError("SPEC says what to tune, or --export what to write");
    int code = spec.empty() ? kOk : tuneSpec();
    if (!exported.empty()) {
      if (spec.empty() && !std::filesystem::exists(database))
        throw UserError(fmt::format("cannot read {}", database));
      tune::Store store(database);
      writeFile(exported, printed(tune::exportJson(store)) + '\n');
    }
    return code;
  }

private:
  /// The GPU of --device model:GPU; nothing of another device.
  std::optional<tune::ForecastGpu> forecastGpu() const {
    if (device != "model" && !device.starts_with("model:"))
      return std::nullopt;
    const std::string name = device.substr(std::min<size_t>(device.size(), 6));
    const std::optional<NamedGpu> gpu = gpuNamed(name);
    if (!gpu)
      throw UserError(fmt::format("--device {}: model:GPU says of which GPU; it is sm_NN, {}", device, gpuNames()));
    return tune::ForecastGpu{std::string(gpu->name), gpu->sm, gpu->sms};
  }

  int forecastSpec(const tune::ForecastGpu &gpu) {
    if (!exported.empty() || !landscape.empty() || !evidence.empty())
      throw UserError("--device model measures nothing: --export, --landscape and --evidence go with measured times");
    const std::vector<tune::Forecast> forecasts = tune::forecast(tuneOptions(), gpu, ProgressLine());
    Json result = envelope(nullptr);
    result["forecast"] = tune::forecastJson(forecasts, gpu);
    deliver(tune::forecastTable(forecasts, gpu), result);
    return kOk;
  }

  int tuneSpec() {
    if (const std::optional<tune::ForecastGpu> gpu = forecastGpu())
      return forecastSpec(*gpu);
    tune::TuneOptions options = tuneOptions();
    std::signal(SIGINT, interrupt);
    options.stop = &interrupted;
    std::unique_ptr<TimingDevice> timing = makeTimingDevice(device);
    tune::TuneReport report = tune::runTune(*timing, options, ProgressLine());
    Json result = envelope(timing->gpu());
    result["device"] = report.device;
    result["tune"] = tune::tuneJson(report, options);
    deliver(tune::tuneTable(report), result);
    if (!evidence.empty())
      tune::writeEvidence(report, evidence);
    if (!landscape.empty())
      writeFile(landscape, printed(tune::landscapeJson(report)) + '\n');
    if (interrupted)
      std::cerr << "stopped; the same command goes on from here\n";
    bool found = !report.studies.empty();
    for (const tune::StudyResult &study : report.studies)
      found = found && !study.elites.empty();
    return found ? kOk : kFailedCheck;
  }

  tune::TuneOptions tuneOptions() const {
    tune::TuneOptions options;
    options.spec = spec;
    options.database = database;
    options.target = target;
    options.device = device;
    options.budgetSeconds = parseDuration(budget);
    tune::requireStrategy(strategy);
    if (space != "derived" && space != "spec")
      throw UserError(fmt::format("unknown space '{}'; known: derived, spec", space));
    if (least != "time" && least != "joules")
      throw UserError(fmt::format("unknown measure '{}'; known: time, joules", least));
    options.measure = least == "joules" ? Measure::Joules : Measure::Time;
    if (least == "joules" && !(evidence.empty() && landscape.empty()))
      throw UserError(
          "--evidence and --landscape are of times; --output and --export have what --least joules measures");
    options.search = {strategy, seed, evaluations, generation};
    options.tiles = strategy == "evolutionary" ? tiles : 0; // the others do not look at the order
    options.derived = space == "derived";
    options.gated = !unchecked;
    options.pruned = !unpruned;
    options.rounds = rounds;
    options.jobs = jobs ? jobs : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
    options.limits = {limit, limit, limit};
    options.problems = problems();
    return options;
  }

  std::vector<Case> problems() const {
    std::vector<Shape> wanted;
    for (const std::string &shape : shapes)
      wanted.push_back(parseShape(shape));
    if (grid) {
      for (const Shape &shape : gridShapes({64}, {512, 2048, 8192}))
        wanted.push_back(shape);
      wanted.push_back(gridShapes({128}, {2048}).front());
    }
    if (wanted.empty())
      wanted.push_back(parseShape("mission"));
    std::vector<Case> cases;
    for (const Shape &shape : wanted)
      for (const std::string &mask : masks) {
        Case problem;
        problem.shape = shape;
        problem.mask = parseMask(mask);
        problem.dtype = parseDType(dtype);
        cases.push_back(problem);
      }
    return cases;
  }

  std::string spec, database = "results.db", budget = "10m", strategy = "evolutionary", space = "derived", target;
  std::string least = "time", device = "gpu", dtype = "f16", evidence, landscape, exported;
  std::vector<std::string> shapes, masks = {"none"};
  size_t evaluations = 0, tiles = 24, generation = 6;
  uint64_t seed = 1;
  int rounds = 3, jobs = 0;
  double limit = 30;
  bool grid = false, unchecked = false, unpruned = false;
};

class ReplayCommand : public Command {
public:
  ReplayCommand() : Command("tune-replay", "compare the tuner's strategies on recorded landscapes", false) {}

  void addOptions(CLI::App &app) override {
    app.add_option("FILE", files, "what tune --strategy exhaustive --landscape wrote")->required();
    app.add_option("--strategy", options.strategies, fmt::format("{}", fmt::join(tune::strategyNames(), ", ")));
    app.add_option("--seeds", options.seeds, "walks of each strategy")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    app.add_option("--goal", options.goal, "of the optimum's speed")
        ->capture_default_str()
        ->check(CLI::Range(0.01, 1.0));
    app.add_option("--generation", options.generation, "candidates asked together")
        ->capture_default_str()
        ->check(CLI::Range(1, 256));
    app.footer("Example:\n"
               "  fagen-run tune-replay times.json --strategy evolutionary --strategy random --seeds 100");
  }

  int run() override {
    for (const std::string &strategy : options.strategies)
      tune::requireStrategy(strategy);
    std::vector<tune::Landscape> landscapes;
    for (const std::string &file : files)
      for (tune::Landscape &landscape : tune::readLandscapes(file))
        landscapes.push_back(std::move(landscape));
    std::vector<tune::ReplayResult> results = tune::replay(landscapes, options);
    Json result = envelope(nullptr);
    result["replay"] = tune::replayJson(results, options);
    deliver(tune::replayTable(results, options), result);
    return kOk;
  }

private:
  std::vector<std::string> files;
  tune::ReplayOptions options;
};

class WorkerCommand : public Command {
public:
  WorkerCommand() : Command("tune-worker", "the process in which tune times candidates (lab/tune/serve.h)", false) {}

  void addOptions(CLI::App &app) override { app.add_option("--device", device, "gpu, or simulated:FILE.json"); }

  int run() override {
    std::unique_ptr<TimingDevice> timing = makeTimingDevice(device);
    tune::serveTiming(*timing, std::cin, std::cout);
    return kOk;
  }

private:
  std::string device = "gpu";
};

} // namespace

std::unique_ptr<Command> makeTuneReplayCommand() { return std::make_unique<ReplayCommand>(); }
std::unique_ptr<Command> makeTuneWorkerCommand() { return std::make_unique<WorkerCommand>(); }
std::unique_ptr<Command> makeTuneCommand() { return std::make_unique<TuneCommand>(); }

} // namespace fagen::lab
