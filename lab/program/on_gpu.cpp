// fagen: programs on a GPU, compiled by NVRTC.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.h"

#include "lab/cases/problem.h"
#include "lab/device/gpu_device.h"
#include "runtime/src/compile/nvrtc.h"
#include "runtime/src/maps.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace fagen::lab {

namespace {

/// Behind each buffer, to see whether a kernel writes there.
constexpr int64_t kGuardBytes = 4096;
constexpr unsigned char kGuard = 0xa5;

class GpuProgram : public ProgramRunner {
public:
  ~GpuProgram() override { unload(); }
  std::string name() const override { return device.name(); }
  int64_t sms() const override { return device.gpu.info().sm_count; }

  std::vector<Failure> run(const ProgramPlan &plan, const Sizes &sizes, ProgramMemory &memory, int) override {
    load(plan);
    std::vector<std::unique_ptr<DeviceMemory>> places;
    std::vector<const void *> addresses;
    for (const std::vector<unsigned char> &bytes : memory) {
      places.push_back(std::make_unique<DeviceMemory>(device, static_cast<int64_t>(bytes.size()) + kGuardBytes));
      addresses.push_back(places.back()->address());
      upload(*places.back(), bytes);
    }
    std::vector<unsigned char> params = packParams(
        plan, sizes, addresses, [](const device::TensorMapDescription &map, const ProgramBuffer &buffer, void *place) {
          checkStatus(encodeMap(*driver(), map, buffer.name.c_str(), *static_cast<device::TensorMap *>(place)),
                      "encode a tensor map");
        });
    for (const ProgramLaunch &launch : plan.launches)
      launchOne(launch, sizes, params);
    checkCuda(measuringDriver().cuStreamSynchronize(device.gpu.stream()), fmt::format("run {}", plan.name).c_str());
    std::vector<Failure> failures;
    for (size_t i = 0; i < memory.size(); ++i)
      download(*places[i], plan.buffers[i], memory[i], failures);
    return failures;
  }

private:
  void upload(DeviceMemory &place, const std::vector<unsigned char> &bytes) {
    std::vector<unsigned char> all = bytes;
    all.resize(bytes.size() + kGuardBytes, kGuard);
    device.upload(place.address(), all.data(), static_cast<int64_t>(all.size()));
  }

  /// What is only read must be as it was.
  void download(DeviceMemory &place, const ProgramBuffer &buffer, std::vector<unsigned char> &bytes,
                std::vector<Failure> &failures) {
    std::vector<unsigned char> all(bytes.size() + kGuardBytes);
    device.download(all.data(), place.address(), static_cast<int64_t>(all.size()));
    const auto end = all.begin() + static_cast<int64_t>(bytes.size());
    if (std::any_of(end, all.end(), [](unsigned char byte) { return byte != kGuard; }))
      failures.push_back({"guard", fmt::format("bytes behind '{}' were written", buffer.name)});
    if (!buffer.isWritten && !std::equal(bytes.begin(), bytes.end(), all.begin()))
      failures.push_back({"input", fmt::format("'{}' was changed, which the program only reads", buffer.name)});
    bytes.assign(all.begin(), end);
  }

  void launchOne(const ProgramLaunch &launch, const Sizes &sizes, std::vector<unsigned char> &params) {
    const Driver &d = *driver();
    const uint32_t ctas = ctasOf(launch, sizes);
    const auto sharedBytes = static_cast<int>(launch.sharedBytes.evaluate(sizes));
    if (ctas == 0)
      return;
    CuFunction function = nullptr;
    checkCuda(d.cuModuleGetFunction(&function, module, launch.symbol.c_str()),
              fmt::format("find {}", launch.symbol).c_str());
    checkCuda(d.cuFuncSetAttribute(function, kFunctionMaxDynamicShared, sharedBytes), "ask for shared memory");
    void *arguments[] = {params.data()};
    checkCuda(d.cuLaunchKernel(function, ctas, 1, 1, launch.threads, 1, 1, static_cast<unsigned>(sharedBytes),
                               device.gpu.stream(), arguments, nullptr),
              fmt::format("launch {}", launch.symbol).c_str());
  }

  void load(const ProgramPlan &plan) {
    if (source == plan.source)
      return;
    unload();
    std::ifstream file(plan.source);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf()))
      throw UserError(fmt::format("cannot read '{}'", plan.source));
    std::string binary;
    checkStatus(nvrtcCompile(text.str(), plan.source, {"-arch=" + plan.target, "-std=c++17", "-default-device"},
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
