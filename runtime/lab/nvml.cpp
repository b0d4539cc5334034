// fagen: loads libnvidia-ml at run time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "nvml.h"

#include <dlfcn.h>
#include <type_traits>

namespace fagen::lab {

Nvml::Nvml() {
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return;
  auto find = [&](const char *symbol, auto &function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
  };
  int (*init)() = nullptr;
  int (*deviceByIndex)(unsigned, Device *) = nullptr;
  find("nvmlInit_v2", init);
  find("nvmlDeviceGetHandleByIndex_v2", deviceByIndex);
  if (!init || !deviceByIndex || init() != 0 || deviceByIndex(0, &device) != 0)
    return;
  find("nvmlDeviceGetClockInfo", clockInfo);
  find("nvmlDeviceGetPowerUsage", powerUsage);
  find("nvmlDeviceGetTotalEnergyConsumption", totalEnergy);
}

double Nvml::smClockMhz() const {
  unsigned megahertz = 0;
  constexpr int kSmClock = 1;
  return clockInfo && clockInfo(device, kSmClock, &megahertz) == 0 ? megahertz : 0;
}

double Nvml::watts() const {
  unsigned milliwatts = 0;
  return powerUsage && powerUsage(device, &milliwatts) == 0 ? milliwatts / 1e3 : 0;
}

double Nvml::joules() const {
  unsigned long long millijoules = 0;
  return totalEnergy && totalEnergy(device, &millijoules) == 0 ? static_cast<double>(millijoules) / 1e3 : 0;
}

} // namespace fagen::lab
