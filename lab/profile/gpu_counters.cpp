// fagen: hardware counters of the first GPU, by CUPTI or by ncu, in processes of their own; or by CUPTI in this one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "counter_device.h"
#include "cupti_process.h"
#include "cupti_session.h"
#include "lab/time/baselines/baseline.h"
#include "lab/time/gpu_timing.h"
#include "ncu.h"

#include <fmt/format.h>
#include <fstream>

namespace fagen::lab {

std::string nameOf(CounterKind kind) { return kind == CounterKind::Cupti ? "cupti" : "ncu"; }

namespace {

/// A row on the tensors of its problem.
class Workload {
public:
  Workload(GpuDevice &device, const ProfiledRow &row)
      : stream(device.gpu.stream()), tensors(device, row.problem, row.seed), work(makeChoiceWork(tensors, row.choice)) {
  }

  void run() {
    work->enqueue(stream);
    checkCuda(measuringDriver().cuStreamSynchronize(stream), "run a kernel");
  }

private:
  CuStream stream;
  GpuTensors tensors;
  std::unique_ptr<GpuWork> work;
};

class GpuCounters : public CounterDevice {
public:
  GpuCounters(const std::filesystem::path &logFile, CuptiPlace place)
      : logFile(logFile), place(place), log(cupti::openLog(logFile)) {}

  std::string name() const override { return device.name(); }
  uint32_t computeCapability() const override { return device.gpu.info().compute_capability; }
  int sms() const override { return static_cast<int>(device.gpu.info().sm_count); }
  fagen_device *queryDevice() override { return device.gpu.device(); }
  const Gpu *gpu() const override { return &device.gpu; }

  Reading count(CounterKind kind, const ProfiledRow &row, const std::vector<std::string> &metrics) override {
    if (kind == CounterKind::Ncu)
      return countWithNcu(row, metrics);
    return place == CuptiPlace::Here ? countHere(row, metrics) : countWithCuptiProcess(row, metrics, logFile);
  }

  void launch(const ProfiledRow &row, int launches) override {
    Workload workload(device, row);
    for (int i = 0; i < launches; ++i)
      workload.run();
  }

private:
  Reading countHere(const ProfiledRow &row, const std::vector<std::string> &metrics) {
    std::string reason;
    const cupti::Library *library = cupti::library(reason);
    if (!library)
      throw CountersRefused(reason);
    CuContext context = nullptr;
    checkCuda(driver()->cuCtxGetCurrent(&context), "find the context");
    Workload workload(device, row);
    for (int i = 0; i < kProfileWarmups; ++i)
      workload.run();
    cupti::Request request;
    request.deviceIndex = static_cast<size_t>(device.gpu.info().ordinal);
    request.context = context;
    request.metrics = metrics;
    request.launch = [&] { workload.run(); };
    request.log = log.is_open() ? &log : nullptr;
    try {
      cupti::Result result = cupti::count(*library, request);
      return {CounterKind::Cupti,
              fmt::format("{}, {} passes of {}{}", cupti::versionOf(*library), result.passes, result.chip,
                          result.userReplay ? "" : ", replayed by CUPTI"),
              std::move(result.counters)};
    } catch (const cupti::Failure &failure) {
      throw CountersRefused(failure.what());
    }
  }

  GpuDevice device;
  const std::filesystem::path logFile;
  const CuptiPlace place;
  std::ofstream log;
};

} // namespace

std::unique_ptr<CounterDevice> makeGpuCounters(const std::filesystem::path &logFile, CuptiPlace place) {
  return std::make_unique<GpuCounters>(logFile, place);
}

} // namespace fagen::lab
