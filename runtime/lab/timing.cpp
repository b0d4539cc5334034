// fagen: builds the graphs, alternates them, collects samples.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "timing.h"
#include "check.h"
#include "gpu_device.h"
#include "nvml.h"
#include "statistics.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <thread>

namespace fagen::lab {

using Clock = std::chrono::steady_clock;

static constexpr int kTimedReplays = 9;
static constexpr int kLaunches = 20;       ///< in a graph
static constexpr int kShortLaunches = 200; ///< for launches below 20 microseconds
static constexpr double kShortMicroseconds = 20;
static constexpr double kBurstMicroseconds = 30e3;
static constexpr auto kSegment = std::chrono::seconds(1);

double TimeResult::percentileMicroseconds(double fraction) const {
  std::vector<double> values;
  for (const Sample &sample : samples)
    values.push_back(sample.microseconds);
  return percentile(values, fraction);
}
double TimeResult::medianMicroseconds() const { return percentileMicroseconds(0.5); }
double TimeResult::teraflops() const { return flops(shape, mask) / medianMicroseconds() / 1e6; }

namespace {

/// A graph of the same launch, `count` times.
class LaunchGraph {
public:
  LaunchGraph(const Gpu &gpu, const fagen_choice &choice, const fagen_tensors &tensors, char *workspace, int count)
      : gpu(gpu), launches(count) {
    const MeasuringDriver &d = measuringDriver();
    checkCuda(d.cuStreamBeginCapture(gpu.stream(), 2 /* relaxed */), "begin stream capture");
    fagen_status status = FAGEN_OK;
    for (int i = 0; i < count && status == FAGEN_OK; ++i)
      status = fagen_run(&choice, &tensors, workspace, choice.workspace_bytes, gpu.stream());
    CuGraph graph = nullptr;
    CuResult ended = d.cuStreamEndCapture(gpu.stream(), &graph);
    checkStatus(status, "fagen_run under capture");
    checkCuda(ended, "end stream capture");
    CuResult made = d.cuGraphInstantiate(&executable, graph, 0);
    d.cuGraphDestroy(graph);
    checkCuda(made, "instantiate a graph");
    checkCuda(d.cuEventCreate(&start, 0), "create an event");
    checkCuda(d.cuEventCreate(&end, 0), "create an event");
  }
  ~LaunchGraph() {
    const MeasuringDriver &d = measuringDriver();
    d.cuEventDestroy(start);
    d.cuEventDestroy(end);
    d.cuGraphExecDestroy(executable);
  }
  LaunchGraph(const LaunchGraph &) = delete;
  LaunchGraph &operator=(const LaunchGraph &) = delete;

  int count() const { return launches; }

  void replay() { checkCuda(measuringDriver().cuGraphLaunch(executable, gpu.stream()), "launch a graph"); }

  /// Microseconds a launch of one replay.
  double time() {
    const MeasuringDriver &d = measuringDriver();
    checkCuda(d.cuEventRecord(start, gpu.stream()), "record an event");
    replay();
    checkCuda(d.cuEventRecord(end, gpu.stream()), "record an event");
    checkCuda(d.cuEventSynchronize(end), "run a graph");
    float milliseconds = 0;
    checkCuda(d.cuEventElapsedTime(&milliseconds, start, end), "read an event");
    return milliseconds * 1e3 / launches;
  }

private:
  const Gpu &gpu;
  int launches;
  CuGraphExec executable = nullptr;
  CuEvent start = nullptr, end = nullptr;
};

/// Dense tensors of one problem on the GPU.
struct TimeTensors {
  TimeTensors(GpuDevice &device, const Case &c, uint64_t seed)
      : q(device, c.shape.qElements() * 2 + 256), k(device, c.shape.kElements() * 2 + 256),
        v(device, c.shape.vElements() * 2 + 256), o(device, c.shape.oElements() * 2 + 256),
        lse(device, c.shape.rows() * 4 + 256) {
    DenseInputs inputs = makeInputs(c, seed);
    device.upload(q.address(), inputs.q.data(), c.shape.qElements() * 2);
    device.upload(k.address(), inputs.k.data(), c.shape.kElements() * 2);
    device.upload(v.address(), inputs.v.data(), c.shape.vElements() * 2);
    tensors.q = q.address();
    tensors.k = k.address();
    tensors.v = v.address();
    tensors.o = o.address();
    tensors.lse = reinterpret_cast<float *>(lse.address());
  }
  DeviceMemory q, k, v, o, lse;
  fagen_tensors tensors = makeAbi<fagen_tensors>();
};

/// A variant that takes part in one problem's contest.
struct Entrant {
  TimeResult result;
  fagen_choice choice = makeAbi<fagen_choice>();
  std::unique_ptr<DeviceMemory> workspace;
  std::unique_ptr<LaunchGraph> graph;
};

class Contest {
public:
  Contest(GpuDevice &device, const TimeOptions &options, const Nvml &nvml, const Case &c)
      : device(device), options(options), nvml(nvml), problemCase(c) {}

  void admit(const std::vector<std::unique_ptr<KernelSet>> &sets) {
    fagen_problem problem = describeProblem(problemCase, Placements(problemCase));
    for (const auto &set : sets) {
      const fagen_table *table = set->table();
      fagen_choice picked = makeAbi<fagen_choice>();
      bool any = fagen_query(&table, 1, &problem, device.gpu.device(), &picked) == FAGEN_OK;
      for (const fagen_row *row : set->rows()) {
        bool chosen = any && picked.row == row;
        bool wanted = options.variants.empty() ? (chosen || !options.dispatchedOnly)
                                               : std::find(options.variants.begin(), options.variants.end(),
                                                           row->variant) != options.variants.end();
        Entrant entrant;
        problem.variant = row->variant;
        if (!wanted || fagen_query(&table, 1, &problem, device.gpu.device(), &entrant.choice) != FAGEN_OK ||
            entrant.choice.row != row)
          continue;
        entrant.result.set = set.get();
        entrant.result.row = row;
        entrant.result.shape = problemCase.shape;
        entrant.result.dtype = problemCase.dtype;
        entrant.result.mask = problemCase.mask;
        entrant.result.picked = chosen;
        entrants.push_back(std::move(entrant));
      }
      problem.variant = nullptr;
    }
  }

  bool empty() const { return entrants.empty(); }

  std::vector<TimeResult> run() {
    TimeTensors tensors(device, problemCase, options.seed);
    for (Entrant &entrant : entrants)
      prepare(entrant, tensors.tensors);
    for (int round = 0; round < options.rounds; ++round)
      for (Entrant &entrant : entrants)
        if (entrant.graph)
          options.state == PowerState::Burst ? burst(entrant, round) : steady(entrant, round);
    std::vector<TimeResult> results;
    for (Entrant &entrant : entrants)
      results.push_back(std::move(entrant.result));
    return results;
  }

private:
  /// Compiles and loads, and finds how many launches a graph of this variant gets.
  void prepare(Entrant &entrant, const fagen_tensors &tensors) {
    if (fagen_status status = fagen_prepare(&entrant.choice, device.gpu.device())) {
      entrant.result.failure = fmt::format("{}: {}", fagen_status_name(status), fagen_last_error());
      return;
    }
    fagen_choice_info info = makeAbi<fagen_choice_info>();
    checkStatus(fagen_choice_get_info(&entrant.choice, &info), "describe a choice");
    entrant.result.registers = info.registers;
    entrant.result.localBytes = info.local_bytes;
    int64_t bytes = static_cast<int64_t>(entrant.choice.workspace_bytes);
    entrant.workspace = std::make_unique<DeviceMemory>(device, std::max<int64_t>(bytes, 256));
    std::vector<char> zeros(bytes);
    device.upload(entrant.workspace->address(), zeros.data(), bytes);
    auto makeGraph = [&](int count) {
      return std::make_unique<LaunchGraph>(device.gpu, entrant.choice, tensors, entrant.workspace->address(), count);
    };
    entrant.graph = makeGraph(kLaunches);
    entrant.graph->time(); // the first launch of a kernel also loads it
    double once = entrant.graph->time();
    int count = once < kShortMicroseconds ? kShortLaunches : kLaunches;
    if (options.state == PowerState::Burst) // one warm and nine timed replays fit the burst
      count = std::clamp(static_cast<int>(kBurstMicroseconds / (kTimedReplays + 1) / once), 1, count);
    if (count != kLaunches)
      entrant.graph = makeGraph(count);
    entrant.result.launchesPerGraph = count;
  }

  void timedReplays(Entrant &entrant, int round) {
    for (int replay = 0; replay < kTimedReplays; ++replay)
      entrant.result.samples.push_back({entrant.graph->time(), round});
  }

  void burst(Entrant &entrant, int round) {
    std::this_thread::sleep_for(kSegment);
    entrant.graph->replay();
    timedReplays(entrant, round);
    entrant.result.clockMhz = nvml.smClockMhz();
  }

  /// A second of the same load, then the timed replays under it.
  void steady(Entrant &entrant, int round) {
    double joules = nvml.joules();
    int64_t launches = 0;
    auto begin = Clock::now();
    while (Clock::now() - begin < kSegment) {
      entrant.graph->time();
      launches += entrant.graph->count();
    }
    timedReplays(entrant, round);
    launches += kTimedReplays * entrant.graph->count();
    entrant.result.clockMhz = nvml.smClockMhz();
    entrant.result.watts = nvml.watts();
    if (joules > 0)
      entrant.result.joulesPerLaunch = (nvml.joules() - joules) / static_cast<double>(launches);
  }

  GpuDevice &device;
  const TimeOptions &options;
  const Nvml &nvml;
  Case problemCase;
  std::vector<Entrant> entrants;
};

} // namespace

TimeReport runTime(GpuDevice &device, const std::vector<std::unique_ptr<KernelSet>> &sets, const TimeOptions &options,
                   const TimeProgress &progress) {
  Nvml nvml;
  std::vector<Contest> contests;
  std::vector<std::string> names;
  for (const Shape &shape : options.shapes)
    for (DType dtype : options.dtypes)
      for (Mask mask : options.masks) {
        Case c;
        c.shape = shape;
        c.dtype = dtype;
        c.mask = mask;
        Contest contest(device, options, nvml, c);
        contest.admit(sets);
        if (contest.empty())
          continue;
        contests.push_back(std::move(contest));
        names.push_back(formatCase(c));
      }
  if (contests.empty())
    throw UserError("no variant computes any of these shapes on this GPU");
  TimeReport report;
  for (size_t i = 0; i < contests.size(); ++i) {
    progress(i, contests.size(), names[i]);
    for (TimeResult &result : contests[i].run())
      report.results.push_back(std::move(result));
  }
  progress(contests.size(), contests.size(), "");
  return report;
}

} // namespace fagen::lab
