// fagen: loads CUPTI at run time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cupti.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <type_traits>
#include <vector>

namespace fagen::lab::cupti {

namespace {

struct Loaded {
  Library functions{};
  std::string reason; ///< empty: every function is there
};

void *openLibrary(std::string &reason) {
  auto open = [](const std::filesystem::path &file) { return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); };
  if (const char *named = getenv("FAGEN_CUPTI"); named && *named) {
    void *library = open(named);
    if (!library)
      reason = fmt::format("FAGEN_CUPTI names {}, which cannot be loaded: {}", named, dlerror());
    return library;
  }
  constexpr const char *kNames[] = {"libcupti.so.13", "libcupti.so.12"};
  for (const char *name : kNames)
    if (void *library = open(name))
      return library;
  std::vector<std::filesystem::path> roots;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *root = getenv(variable); root && *root)
      roots.emplace_back(root);
  roots.emplace_back("/usr/local/cuda");
  for (const auto &root : roots)
    for (const char *inside : {"extras/CUPTI/lib64", "targets/x86_64-linux/lib", "lib64", "lib"})
      for (const char *name : kNames)
        if (void *library = open(root / inside / name))
          return library;
  reason = "libcupti.so.13 or .12 is not found; FAGEN_CUPTI can name the file";
  return nullptr;
}

Loaded load() {
  Loaded loaded;
  void *library = openLibrary(loaded.reason);
  if (!library)
    return loaded;
  auto find = [&](const char *symbol, auto &function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (!function && loaded.reason.empty())
      loaded.reason = fmt::format("libcupti has no {}: its range profiler came with CUDA 12.6", symbol);
  };
  Library &f = loaded.functions;
  find("cuptiGetVersion", f.getVersion);
  find("cuptiGetResultString", f.getResultString);
  find("cuptiDeviceGetChipName", f.deviceGetChipName);
  find("cuptiProfilerInitialize", f.profilerInitialize);
  find("cuptiProfilerDeInitialize", f.profilerDeInitialize);
  find("cuptiProfilerGetCounterAvailability", f.profilerGetCounterAvailability);
  find("cuptiProfilerHostInitialize", f.hostInitialize);
  find("cuptiProfilerHostDeinitialize", f.hostDeinitialize);
  find("cuptiProfilerHostGetBaseMetrics", f.hostGetBaseMetrics);
  find("cuptiProfilerHostGetMetricProperties", f.hostGetMetricProperties);
  find("cuptiProfilerHostConfigAddMetrics", f.hostConfigAddMetrics);
  find("cuptiProfilerHostGetConfigImageSize", f.hostGetConfigImageSize);
  find("cuptiProfilerHostGetConfigImage", f.hostGetConfigImage);
  find("cuptiProfilerHostGetNumOfPasses", f.hostGetNumOfPasses);
  find("cuptiProfilerHostEvaluateToGpuValues", f.hostEvaluateToGpuValues);
  find("cuptiRangeProfilerEnable", f.rangeEnable);
  find("cuptiRangeProfilerDisable", f.rangeDisable);
  find("cuptiRangeProfilerStart", f.rangeStart);
  find("cuptiRangeProfilerGetCounterDataSize", f.rangeGetCounterDataSize);
  find("cuptiRangeProfilerCounterDataImageInitialize", f.rangeCounterDataImageInitialize);
  find("cuptiRangeProfilerSetConfig", f.rangeSetConfig);
  find("cuptiRangeProfilerStop", f.rangeStop);
  find("cuptiRangeProfilerDecodeData", f.rangeDecodeData);
  find("cuptiRangeProfilerGetCounterDataInfo", f.rangeGetCounterDataInfo);
  return loaded;
}

} // namespace

const Library *library(std::string &reason) {
  static const Loaded loaded = load();
  reason = loaded.reason;
  return reason.empty() ? &loaded.functions : nullptr;
}

} // namespace fagen::lab::cupti
