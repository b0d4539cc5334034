// fagen: times launches on a GPU by CUDA graphs and events.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu_timing.h"
#include "lab/support/parallel.h"
#include "lab/time/baselines/baseline.h"
#include "lab/time/baselines/names.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <thread>

namespace fagen::lab {

/// Of max |O - O of the first contestant|: above any rounding of normal inputs (one ulp of a bf16 above 4 is 0.031),
/// far below a wrong result.
static double sameResult(DType dtype) { return dtype == DType::BF16 ? 0.04 : 0.02; }
/// The flushed buffer over the L2's size.
static constexpr int64_t kFlushFactor = 2;

namespace {

class Event {
public:
  Event() { checkCuda(measuringDriver().cuEventCreate(&event, 0), "create an event"); }
  ~Event() { measuringDriver().cuEventDestroy(event); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  void record(CuStream stream) { checkCuda(measuringDriver().cuEventRecord(event, stream), "record an event"); }
  /// As a node of the graph under capture.
  void recordInGraph(CuStream stream) {
    constexpr unsigned kExternal = 1; // CU_EVENT_RECORD_EXTERNAL
    checkCuda(measuringDriver().cuEventRecordWithFlags(event, stream, kExternal), "capture an event");
  }
  void wait() { checkCuda(measuringDriver().cuEventSynchronize(event), "run a graph"); }
  double microsecondsSince(const Event &start) const {
    float milliseconds = 0;
    checkCuda(measuringDriver().cuEventElapsedTime(&milliseconds, start.event, event), "read an event");
    return milliseconds * 1e3;
  }

private:
  CuEvent event = nullptr;
};

/// What `enqueue` puts on the stream, as an executable graph.
class Graph {
public:
  template <typename Enqueue> Graph(CuStream stream, Enqueue enqueue) {
    const MeasuringDriver &d = measuringDriver();
    checkCuda(d.cuStreamBeginCapture(stream, 2 /* relaxed */), "begin stream capture");
    CuGraph graph = nullptr;
    try {
      enqueue();
    } catch (...) {
      d.cuStreamEndCapture(stream, &graph);
      throw;
    }
    checkCuda(d.cuStreamEndCapture(stream, &graph), "end stream capture");
    CuResult made = d.cuGraphInstantiate(&executable, graph, 0);
    d.cuGraphDestroy(graph);
    checkCuda(made, "instantiate a graph");
  }
  ~Graph() { measuringDriver().cuGraphExecDestroy(executable); }
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  void launch(CuStream stream) { checkCuda(measuringDriver().cuGraphLaunch(executable, stream), "launch a graph"); }

private:
  CuGraphExec executable = nullptr;
};

/// Launches one after the other; the time of a replay is theirs.
class WarmLaunchable : public Launchable {
public:
  WarmLaunchable(CuStream stream, std::unique_ptr<GpuWork> work) : stream(stream), work(std::move(work)) {}

  void build(int count) override {
    launches = count;
    graph.reset();
    graph = std::make_unique<Graph>(stream, [&] {
      for (int i = 0; i < count; ++i)
        work->enqueue(stream);
    });
  }

  double replay() override {
    start.record(stream);
    graph->launch(stream);
    end.record(stream);
    end.wait();
    return end.microsecondsSince(start) / launches * work->scale();
  }

private:
  CuStream stream;
  std::unique_ptr<GpuWork> work;
  int launches = 1;
  Event start, end;
  std::unique_ptr<Graph> graph;
};

/// Before each launch a buffer larger than the L2 is written; events in the graph enclose the launch alone.
class ColdLaunchable : public Launchable {
public:
  ColdLaunchable(GpuDevice &device, std::unique_ptr<GpuWork> work, std::shared_ptr<DeviceMemory> flushed,
                 int64_t flushedBytes)
      : stream(device.gpu.stream()), work(std::move(work)), flushed(std::move(flushed)), flushedBytes(flushedBytes) {}

  void build(int count) override {
    graph.reset();
    pairs = std::vector<Pair>(count);
    graph = std::make_unique<Graph>(stream, [&] {
      for (Pair &pair : pairs) {
        checkCuda(measuringDriver().cuMemsetD32Async(reinterpret_cast<CuDevicePtr>(flushed->address()), 0,
                                                     static_cast<size_t>(flushedBytes / 4), stream),
                  "flush the L2");
        pair.start.recordInGraph(stream);
        work->enqueue(stream);
        pair.end.recordInGraph(stream);
      }
    });
  }

  double replay() override {
    graph->launch(stream);
    checkCuda(measuringDriver().cuStreamSynchronize(stream), "run a graph");
    double total = 0;
    for (const Pair &pair : pairs)
      total += pair.end.microsecondsSince(pair.start);
    return total / static_cast<double>(pairs.size()) * work->scale();
  }

private:
  struct Pair {
    Event start, end;
  };
  CuStream stream;
  std::unique_ptr<GpuWork> work;
  std::shared_ptr<DeviceMemory> flushed;
  int64_t flushedBytes;
  std::vector<Pair> pairs;
  std::unique_ptr<Graph> graph;
};

/// One of our kernels.
class ChoiceWork : public GpuWork {
public:
  ChoiceWork(GpuTensors &tensors, const fagen_choice &choice)
      : choice(choice), tensors(tensors.tensors),
        workspace(tensors.device, std::max<int64_t>(static_cast<int64_t>(choice.workspace_bytes), 256)) {
    if (fagen_status status = fagen_prepare(&choice, tensors.device.gpu.device()))
      throw CannotRun(fmt::format("{}: {}", fagen_status_name(status), fagen_last_error()));
    fagen_choice_info info = makeAbi<fagen_choice_info>();
    checkStatus(fagen_choice_get_info(&choice, &info), "describe a choice");
    registers = info.registers;
    localBytes = info.local_bytes;
    std::vector<char> zeros(choice.workspace_bytes);
    tensors.device.upload(workspace.address(), zeros.data(), static_cast<int64_t>(zeros.size()));
  }

  void enqueue(CuStream stream) override {
    if (fagen_status status = fagen_run(&choice, &tensors, workspace.address(), choice.workspace_bytes, stream))
      throw CannotRun(fmt::format("fagen_run: {}: {}", fagen_status_name(status), fagen_last_error()));
  }

private:
  fagen_choice choice;
  fagen_tensors tensors;
  DeviceMemory workspace;
};

class GpuProblem : public TimedProblem {
public:
  GpuProblem(GpuDevice &device, const Case &c, uint64_t seed, L2State l2) : tensors(device, c, seed) {
    if (l2 == L2State::Cold) {
      flushedBytes = kFlushFactor * device.gpu.l2Bytes();
      flushed = std::make_shared<DeviceMemory>(device, flushedBytes);
    }
  }

  std::unique_ptr<Launchable> prepare(const fagen_choice &choice) override {
    return makeLaunchable(std::make_unique<ChoiceWork>(tensors, choice));
  }

  std::unique_ptr<Launchable> prepareBaseline(const std::string &name) override {
    std::unique_ptr<Baseline> baseline = makeBaseline(name);
    if (!baseline)
      throw CannotRun(fmt::format("{} is not a baseline of this process", name));
    if (std::string reason = baseline->unavailable(); !reason.empty())
      throw CannotRun(reason);
    return makeLaunchable(baseline->prepare(tensors));
  }

private:
  std::unique_ptr<Launchable> makeLaunchable(std::unique_ptr<GpuWork> work) {
    if (work->computesAttention())
      requireSameResult(*work);
    int registers = work->registers, localBytes = work->localBytes;
    std::string library = work->library;
    std::unique_ptr<Launchable> launchable;
    if (flushed)
      launchable = std::make_unique<ColdLaunchable>(tensors.device, std::move(work), flushed, flushedBytes);
    else
      launchable = std::make_unique<WarmLaunchable>(tensors.device.gpu.stream(), std::move(work));
    launchable->registers = registers;
    launchable->localBytes = localBytes;
    launchable->library = library;
    return launchable;
  }

  /// A contestant that computes something else has no time worth knowing.
  void requireSameResult(GpuWork &work) {
    int64_t elements = tensors.problem.shape.oElements();
    std::vector<uint16_t> o(elements, 0x7fff); // NaN in both formats
    tensors.device.upload(tensors.o.address(), o.data(), elements * 2);
    work.enqueue(tensors.device.gpu.stream());
    checkCuda(measuringDriver().cuStreamSynchronize(tensors.device.gpu.stream()), "run a contestant once");
    tensors.device.download(o.data(), tensors.o.address(), elements * 2);
    if (first.empty()) {
      first = std::move(o);
      return;
    }
    std::atomic<double> difference = 0;
    parallelFor(elements, 1 << 18, [&](int64_t begin, int64_t end) {
      double largest = 0;
      for (int64_t i = begin; i < end; ++i) {
        double apart =
            std::abs(floatOfHalf(tensors.problem.dtype, o[i]) - floatOfHalf(tensors.problem.dtype, first[i]));
        largest = std::isnan(apart) ? std::numeric_limits<double>::infinity() : std::max(largest, apart);
      }
      for (double known = difference; largest > known && !difference.compare_exchange_weak(known, largest);)
        ;
    });
    if (const double allowed = sameResult(tensors.problem.dtype); !(difference <= allowed))
      throw CannotRun(fmt::format("its O differs by {:.3g} from the first contestant's; {} is allowed",
                                  difference.load(), allowed));
  }

  GpuTensors tensors;
  std::shared_ptr<DeviceMemory> flushed;
  int64_t flushedBytes = 0;
  std::vector<uint16_t> first; ///< O of the first contestant
};

} // namespace

GpuTensors::GpuTensors(GpuDevice &device, const Case &c, uint64_t seed)
    : device(device), problem(c), q(device, c.shape.qElements() * 2 + 256), k(device, c.shape.kElements() * 2 + 256),
      v(device, c.shape.vElements() * 2 + 256), o(device, c.shape.oElements() * 2 + 256),
      lse(device, c.shape.rows() * 4 + 256), form(device, c.arguments) {
  DenseInputs inputs = makeInputs(c, seed);
  device.upload(q.address(), inputs.q.data(), c.shape.qElements() * 2);
  auto uploadKeys = [&](DeviceMemory &memory, const std::vector<uint16_t> &tensor) {
    if (c.kv == KvDType::Same)
      return device.upload(memory.address(), tensor.data(), static_cast<int64_t>(tensor.size()) * 2);
    const std::vector<uint8_t> bytes = bytesOf(c, tensor);
    device.upload(memory.address(), bytes.data(), static_cast<int64_t>(bytes.size()));
  };
  uploadKeys(k, inputs.k);
  uploadKeys(v, inputs.v);
  tensors.q = q.address();
  tensors.k = k.address();
  tensors.v = v.address();
  tensors.o = o.address();
  tensors.lse = reinterpret_cast<float *>(lse.address());
  form.addTo(tensors);
}

std::unique_ptr<Launchable> makeWarmLaunchable(CuStream stream, std::unique_ptr<GpuWork> work) {
  const std::string library = work->library;
  auto launchable = std::make_unique<WarmLaunchable>(stream, std::move(work));
  launchable->library = library;
  return launchable;
}

std::unique_ptr<GpuWork> makeChoiceWork(GpuTensors &tensors, const fagen_choice &choice) {
  return std::make_unique<ChoiceWork>(tensors, choice);
}

GpuTiming::GpuTiming() : nvml(gpuDevice.gpu.pciBusId()), meter([this] { return nvml.joules(); }, nvml.missing()) {}

bool GpuTiming::timesBaseline(const std::string &name) const { return !isSdpa(name); }

std::unique_ptr<TimedProblem> GpuTiming::open(const Case &c, uint64_t seed, L2State l2) {
  return std::make_unique<GpuProblem>(gpuDevice, c, seed, l2);
}

double GpuTiming::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void GpuTiming::sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

} // namespace fagen::lab
