// fagen: compiles and loads the laboratory's own kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu_module.h"
#include "runtime/src/compile/cache.h"
#include "runtime/src/compile/nvrtc.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fagen::lab {

GpuModule::GpuModule(const Gpu &gpu, const std::string &text, const char *name,
                     const std::vector<std::string> &options) {
  const uint32_t sm = gpu.info().compute_capability;
  const bool ptx = !nvrtcSupports(sm);
  std::vector<std::string> all = {fmt::format("-arch={}_{}", ptx ? "compute" : "sm", ptx ? nvrtcNearest(sm) : sm),
                                  "-std=c++17", "-default-device"};
  all.insert(all.end(), options.begin(), options.end());
  const Cache cache = Cache::fromEnvironment("lab");
  const std::string key = hashParts({text, fmt::format("{}", fmt::join(all, " ")), nvrtcVersion()});
  std::string binary, notKept; // what cannot be kept is compiled again
  if (!cache.read(name, key, binary)) {
    checkStatus(nvrtcCompile(text, name, all, ptx, binary), fmt::format("compile {}", name).c_str());
    cache.write(name, key, text, binary, notKept);
  }
  checkCuda(fagen::driver()->cuModuleLoadDataEx(&module, binary.data(), 0, nullptr, nullptr),
            fmt::format("load {}", name).c_str());
}

GpuModule::~GpuModule() { fagen::driver()->cuModuleUnload(module); }

CuFunction GpuModule::function(const char *symbol) const {
  CuFunction found = nullptr;
  checkCuda(fagen::driver()->cuModuleGetFunction(&found, module, symbol), fmt::format("find {}", symbol).c_str());
  return found;
}

} // namespace fagen::lab
