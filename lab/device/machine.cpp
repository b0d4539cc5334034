// fagen: the machine that results are of.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "machine.h"
#include "cuda.h"
#include "runtime/src/compile/nvrtc.h"

#include <cctype>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <sys/utsname.h>
#include <thread>

namespace fagen::lab {

static std::string cpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string driverVersionOf(const std::string &line) {
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos)
      return word;
  return line;
}

Json describeMachine(const Gpu *gpu) {
  utsname system{};
  uname(&system);
  Json machine{{"cpu", cpuModel()},
               {"threads", std::thread::hardware_concurrency()},
               {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)}};
  if (gpu) {
    const fagen_device_info &info = gpu->info();
    machine["gpu"] = info.name;
    machine["compute_capability"] = info.compute_capability;
    machine["sms"] = info.sm_count;
    machine["driver_cuda"] = gpu->driverVersion();
    machine["nvrtc"] = nvrtcVersion();
    std::ifstream version("/proc/driver/nvidia/version");
    if (std::string line; std::getline(version, line))
      machine["driver"] = driverVersionOf(line);
  }
  return machine;
}

} // namespace fagen::lab
