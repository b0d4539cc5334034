// fagen: conformance kernels on a GPU, compiled by NVRTC.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conformance.h"
#include "lab/device/gpu_device.h"
#include "runtime/src/compile/nvrtc.h"
#include "runtime/src/maps.h"

#include <fmt/format.h>
#include <map>

namespace fagen::lab {

namespace {

class GpuRunner : public KernelRunner {
public:
  explicit GpuRunner(GpuDevice &device) : device(device) {}
  ~GpuRunner() override {
    for (const auto &[kernels, module] : modules)
      fagen::driver()->cuModuleUnload(module);
  }

  std::string name() const override { return device.name(); }

  bool canRun(KernelText kernels) const override {
    return kernels == KernelText::Any || device.gpu.info().compute_capability == 90;
  }

  std::string run(const KernelJob &job, const WordList &in, WordList &out) override {
    const CuModule module = load(job);
    const Driver &d = *fagen::driver();
    CuFunction function = nullptr;
    checkCuda(d.cuModuleGetFunction(&function, module, job.symbol.c_str()), fmt::format("find {}", job.symbol).c_str());
    const auto inBytes = static_cast<int64_t>(in.size() * 4), outBytes = static_cast<int64_t>(out.size() * 4);
    DeviceMemory from(device, std::max<int64_t>(256, inBytes)), to(device, std::max<int64_t>(256, outBytes));
    device.upload(from.address(), in.data(), inBytes);
    device.upload(to.address(), out.data(), outBytes);
    ConformanceParams params{from.address(), to.address(), out.size()};
    encode(job.inMap, from.address(), params.inMap);
    encode(job.outMap, to.address(), params.outMap);
    void *arguments[] = {&params};
    checkCuda(d.cuLaunchKernel(function, job.grid, 1, 1, job.threads, 1, 1, job.sharedBytes, device.gpu.stream(),
                               arguments, nullptr),
              fmt::format("launch {}", job.symbol).c_str());
    checkCuda(measuringDriver().cuStreamSynchronize(device.gpu.stream()), fmt::format("run {}", job.symbol).c_str());
    device.download(out.data(), to.address(), outBytes);
    return "";
  }

private:
  void encode(const MapShape &shape, void *words, device::TensorMap &map) {
    if (shape.sizes.empty())
      return;
    checkStatus(encodeMap(*fagen::driver(), describeMap(shape, words), "a case", map), "encode a tensor map");
  }

  CuModule load(const KernelJob &job) {
    CuModule &module = modules[job.kernels];
    if (module)
      return module;
    const uint32_t sm = device.gpu.info().compute_capability;
    const bool ptx = !nvrtcSupports(sm);
    std::string binary;
    const char *exact = job.kernels == KernelText::Any ? "" : "a";
    checkStatus(nvrtcCompile(job.text, "conformance.cu",
                             {fmt::format("-arch={}_{}{}", ptx ? "compute" : "sm", ptx ? nvrtcNearest(sm) : sm, exact),
                              "-std=c++17", "-default-device", "-no-source-include"},
                             ptx, binary),
                "compile the conformance kernels");
    checkCuda(fagen::driver()->cuModuleLoadDataEx(&module, binary.data(), 0, nullptr, nullptr),
              "load the conformance kernels");
    return module;
  }

  GpuDevice &device;
  std::map<KernelText, CuModule> modules;
};

} // namespace

std::unique_ptr<KernelRunner> makeGpuRunner(GpuDevice &device) { return std::make_unique<GpuRunner>(device); }

} // namespace fagen::lab
