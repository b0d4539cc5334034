// fagen: programs on a GPU, compiled by NVRTC.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "from_table.h"
#include "run.h"
#include "turns.h"

#include "lab/cases/problem.h"
#include "lab/device/gpu_device.h"
#include "lab/time/baselines/cublas.h"
#include "lab/time/gpu_timing.h"
#include "runtime/src/compile/nvrtc.h"
#include "runtime/src/maps.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace fagen::lab {

namespace {

/// After each buffer, to see whether a kernel writes there.
constexpr int64_t kGuardBytes = 4096;
constexpr unsigned char kGuard = 0xa5;

/// All launches of a program over memory of its own.
class ProgramWork : public GpuWork {
public:
  ProgramWork(GpuDevice &device, CuModule module, const ProgramPlan &plan, const Sizes &sizes,
              const ProgramMemory &memory)
      : device(device), plan(plan), sizes(sizes) {
    std::vector<const void *> addresses;
    for (const std::vector<unsigned char> &bytes : memory) {
      places.push_back(std::make_unique<DeviceMemory>(device, static_cast<int64_t>(bytes.size()) + kGuardBytes));
      addresses.push_back(places.back()->address());
      upload(*places.back(), bytes);
    }
    if (plan.table) {
      prepareRow(addresses);
      return;
    }
    params =
        packParams(plan, sizes, addresses, [](const device::TensorMapDescription &map, const char *name, void *place) {
          checkStatus(encodeMap(*driver(), map, name, *static_cast<device::TensorMap *>(place)), "encode a tensor map");
        });
    for (const ProgramLaunch &launch : plan.launches)
      functions.push_back(find(module, launch));
  }

  void enqueue(CuStream stream) override {
    if (plan.table)
      return checkStatus(fagen_run_program(&choice, &row->call, workspace ? workspace->address() : nullptr,
                                           choice.workspace_bytes, stream),
                         fmt::format("run {}", plan.name).c_str());
    for (size_t i = 0; i < plan.launches.size(); ++i) {
      const ProgramLaunch &launch = plan.launches[i];
      const uint32_t ctas = ctasOf(launch, sizes);
      void *arguments[] = {params.data()};
      if (ctas != 0)
        checkCuda(driver()->cuLaunchKernel(functions[i], ctas, 1, 1, launch.threads, 1, 1,
                                           static_cast<unsigned>(launch.sharedBytes.evaluate(sizes)), stream, arguments,
                                           nullptr),
                  fmt::format("launch {}", launch.symbol).c_str());
    }
  }

  std::vector<Failure> download(ProgramMemory &memory) {
    std::vector<Failure> failures;
    for (size_t i = 0; i < memory.size(); ++i)
      download(*places[i], plan.buffers[i], memory[i], failures);
    return failures;
  }

private:
  /// As the runtime runs it: the row that it finds, its code, its recipe.
  void prepareRow(const std::vector<const void *> &addresses) {
    row = std::make_unique<TableCall>(plan, sizes, addresses);
    if (fagen_query_program(&plan.table, 1, &row->call, device.gpu.device(), &choice))
      throw UserError(fagen_last_error());
    checkStatus(fagen_prepare(&choice, device.gpu.device()), fmt::format("prepare {}", plan.name).c_str());
    if (choice.workspace_bytes == 0)
      return;
    workspace = std::make_unique<DeviceMemory>(device, static_cast<int64_t>(choice.workspace_bytes));
    const std::vector<unsigned char> zeros(choice.workspace_bytes);
    device.upload(workspace->address(), zeros.data(), static_cast<int64_t>(zeros.size()));
  }

  void upload(DeviceMemory &place, const std::vector<unsigned char> &bytes) {
    std::vector<unsigned char> all = bytes;
    all.resize(bytes.size() + kGuardBytes, kGuard);
    device.upload(place.address(), all.data(), static_cast<int64_t>(all.size()));
  }

  CuFunction find(CuModule module, const ProgramLaunch &launch) const {
    CuFunction function = nullptr;
    checkCuda(driver()->cuModuleGetFunction(&function, module, launch.symbol.c_str()),
              fmt::format("find {}", launch.symbol).c_str());
    checkCuda(driver()->cuFuncSetAttribute(function, kFunctionMaxDynamicShared,
                                           static_cast<int>(launch.sharedBytes.evaluate(sizes))),
              "ask for shared memory");
    return function;
  }

  /// What is only read must be as it was.
  void download(DeviceMemory &place, const ProgramBuffer &buffer, std::vector<unsigned char> &bytes,
                std::vector<Failure> &failures) {
    std::vector<unsigned char> all(bytes.size() + kGuardBytes);
    device.download(all.data(), place.address(), static_cast<int64_t>(all.size()));
    const auto end = all.begin() + static_cast<int64_t>(bytes.size());
    if (std::any_of(end, all.end(), [](unsigned char byte) { return byte != kGuard; }))
      failures.push_back({"guard", fmt::format("bytes after '{}' were written", buffer.name)});
    if (!buffer.isWritten && !std::equal(bytes.begin(), bytes.end(), all.begin()))
      failures.push_back({"input", fmt::format("'{}' was changed, which the program only reads", buffer.name)});
    bytes.assign(all.begin(), end);
  }

  GpuDevice &device;
  const ProgramPlan &plan;
  const Sizes &sizes;
  std::vector<std::unique_ptr<DeviceMemory>> places;
  std::vector<unsigned char> params;
  std::vector<CuFunction> functions; ///< of the launches
  std::unique_ptr<TableCall> row;    ///< of a table's program
  fagen_choice choice = fagen_choice_init();
  std::unique_ptr<DeviceMemory> workspace;
};

class GpuProgram : public ProgramRunner {
public:
  ~GpuProgram() override { unload(); }
  std::string name() const override { return device.name(); }
  int64_t sms() const override { return device.gpu.info().sm_count; }
  const Gpu *gpu() const override { return &device.gpu; }

  std::vector<Failure> run(const ProgramPlan &plan, const Sizes &sizes, ProgramMemory &memory, int) override {
    load(plan);
    ProgramWork work(device, module, plan, sizes, memory);
    work.enqueue(device.gpu.stream());
    checkCuda(measuringDriver().cuStreamSynchronize(device.gpu.stream()), fmt::format("run {}", plan.name).c_str());
    return work.download(memory);
  }

  std::vector<ProgramTime> time(const ProgramPlan &plan, const Sizes &sizes, const ProgramMemory &memory,
                                const ProgramTiming &timing) override {
    for (const ProgramBuffer &buffer : plan.buffers)
      if (buffer.isZeroed && !buffer.isRestored)
        throw UserError(fmt::format("{} is not timed: '{}' begins as zeros, which a second run would not find",
                                    plan.name, buffer.name));
    load(plan);
    const CuStream stream = device.gpu.stream();
    std::vector<Contestant> contestants;
    contestants.push_back(
        {plan.name, makeWarmLaunchable(stream, std::make_unique<ProgramWork>(device, module, plan, sizes, memory))});
    if (timing.productRows > 0)
      contestants.push_back(
          {"cublas-product",
           makeWarmLaunchable(stream, makeCublasProduct(device, halfTypeOf(plan), timing.productRows,
                                                        timing.productColumns, timing.productLength))});
    return timeInTurns(std::move(contestants), timing.rounds);
  }

private:
  static DType halfTypeOf(const ProgramPlan &plan) {
    const ProgramBuffer &first = plan.buffers.front();
    if (first.element == Element::F16)
      return DType::F16;
    if (first.element == Element::BF16)
      return DType::BF16;
    throw UserError(fmt::format("--cublas multiplies f16 and bf16; '{}' is of {}", first.name, nameOf(first.element)));
  }

  /// Text for one kind of GPU (sm_90a) is for that alone; other text is compiled for this GPU, if it is no older.
  std::string archFor(const ProgramPlan &plan) const {
    if (!std::isdigit(static_cast<unsigned char>(plan.target.back())))
      return plan.target;
    const uint32_t wanted = static_cast<uint32_t>(parseInteger(plan.target.substr(3), "the plan's target"));
    const uint32_t found = device.gpu.info().compute_capability;
    if (found < wanted)
      throw UserError(fmt::format("{} is for {} and newer; this GPU is sm_{}", plan.name, plan.target, found));
    return fmt::format("sm_{}", found);
  }

  void load(const ProgramPlan &plan) {
    if (plan.table || source == plan.source) // the runtime loads those of tables
      return;
    unload();
    std::ifstream file(plan.source);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf()))
      throw UserError(fmt::format("cannot read '{}'", plan.source));
    std::string binary;
    checkStatus(nvrtcCompile(text.str(), plan.source, {"-arch=" + archFor(plan), "-std=c++17", "-default-device"},
                             /*ptx=*/false, binary),
                fmt::format("compile {}", plan.source).c_str());
    checkCuda(driver()->cuModuleLoadDataEx(&module, binary.data(), 0, nullptr, nullptr),
              fmt::format("load {}", plan.source).c_str());
    source = plan.source;
  }

  void unload() {
    if (module)
      driver()->cuModuleUnload(module);
    module = nullptr;
  }

  GpuDevice device;
  CuModule module = nullptr;
  std::string source; ///< what the module was made of
};

} // namespace

std::unique_ptr<ProgramRunner> makeGpuProgram() { return std::make_unique<GpuProgram>(); }

} // namespace fagen::lab
