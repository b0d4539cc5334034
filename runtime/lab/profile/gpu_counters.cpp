// fagen: hardware counters of the first GPU, by CUPTI in this process or by ncu in another.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "baselines/baseline.h"
#include "gpu_timing.h"
#include "profile/counter_device.h"
#include "profile/cupti_session.h"
#include "profile/ncu.h"

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
  explicit GpuCounters(const std::filesystem::path &logFile) {
    if (logFile.empty())
      return;
    log.open(logFile);
    if (!log)
      throw UserError(fmt::format("cannot write {}", logFile.string()));
  }

  std::string name() const override { return device.name(); }
  uint32_t computeCapability() const override { return device.gpu.info().compute_capability; }
  int sms() const override { return static_cast<int>(device.gpu.info().sm_count); }
  fagen_device *queryDevice() override { return device.gpu.device(); }
  const Gpu *gpu() const override { return &device.gpu; }

  Reading count(CounterKind kind, const ProfiledRow &row, const std::vector<std::string> &metrics) override {
    return kind == CounterKind::Ncu ? countWithNcu(row, metrics) : countHere(row, metrics);
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
  std::ofstream log;
};

} // namespace

std::unique_ptr<CounterDevice> makeGpuCounters(const std::filesystem::path &logFile) {
  return std::make_unique<GpuCounters>(logFile);
}

} // namespace fagen::lab
