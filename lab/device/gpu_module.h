// fagen: a kernel text of the laboratory's own, compiled by NVRTC for the GPU at hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "cuda.h"

#include <string>
#include <vector>

namespace fagen::lab {

class GpuModule {
public:
  /// `name` is for messages; `options` are NVRTC's beyond target and language. DeviceError when it does not compile.
  GpuModule(const Gpu &gpu, const std::string &text, const char *name, const std::vector<std::string> &options = {});
  ~GpuModule();
  GpuModule(const GpuModule &) = delete;
  GpuModule &operator=(const GpuModule &) = delete;

  CuFunction function(const char *symbol) const;

private:
  CuModule module = nullptr;
};

} // namespace fagen::lab
