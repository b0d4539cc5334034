// fagen: GPUs by name, for options: those of Gpus.h, and more that nothing is predicted for. No LLVM: fagen-run uses it
// too. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Target/Gpus.h"

#include <cctype>
#include <optional>
#include <string>
#include <string_view>

namespace fagen {

struct NamedGpu {
  std::string_view name;
  unsigned sm;  ///< compute capability, 10 * major + minor
  unsigned sms; ///< multiprocessors
};

/// From the vendor's data sheets.
constexpr NamedGpu kOtherGpus[] = {{"A30", 80, 56},   {"A40", 86, 84},    {"L40", 89, 142},  {"L40S", 89, 142},
                                   {"H100", 90, 132}, {"GH200", 90, 132}, {"B200", 100, 148}};

/// "RTX 4090" and "rtx4090" are one name.
inline std::string plainGpuName(std::string_view name) {
  std::string plain;
  for (unsigned char c : name)
    if (c != ' ')
      plain += static_cast<char>(std::tolower(c));
  return plain;
}

/// The GPU of this name, or the one that stands for "sm_90" or "sm_90a".
inline std::optional<NamedGpu> gpuNamed(std::string_view name) {
  for (const GpuRates &gpu : kGpuRates) {
    const std::string target = "sm_" + std::to_string(gpu.sm);
    if (plainGpuName(gpu.name) == plainGpuName(name) || name == target || name == target + "a")
      return NamedGpu{gpu.name, gpu.sm, gpu.sms};
  }
  for (const NamedGpu &gpu : kOtherGpus)
    if (plainGpuName(gpu.name) == plainGpuName(name) || name == "sm_" + std::to_string(gpu.sm))
      return gpu;
  return std::nullopt;
}

/// The names of GPUs whose compute capability is wanted, for messages: "A100, A10, ...".
template <typename Wanted> std::string gpuNames(Wanted &&isWanted) {
  std::string names;
  auto add = [&](unsigned sm, std::string_view name) {
    if (isWanted(sm))
      names += (names.empty() ? "" : ", ") + std::string(name);
  };
  for (const GpuRates &gpu : kGpuRates)
    add(gpu.sm, gpu.name);
  for (const NamedGpu &gpu : kOtherGpus)
    add(gpu.sm, gpu.name);
  return names;
}
inline std::string gpuNames() {
  return gpuNames([](unsigned) { return true; });
}

} // namespace fagen
