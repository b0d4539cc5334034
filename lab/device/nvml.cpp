// fagen: loads libnvidia-ml at run time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <type_traits>

namespace fagen::lab {

Nvml::Nvml(const std::string &pciBusId, const char *name) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    reason = fmt::format("NVML is not here: {}", why ? why : name);
    return;
  }
  auto find = [&](const char *symbol, auto &function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
  };
  int (*init)() = nullptr;
  int (*deviceByBus)(const char *, Device *) = nullptr;
  int (*deviceByIndex)(unsigned, Device *) = nullptr;
  find("nvmlInit_v2", init);
  find("nvmlDeviceGetHandleByPciBusId_v2", deviceByBus);
  find("nvmlDeviceGetHandleByIndex_v2", deviceByIndex);
  const bool found = init && init() == 0 &&
                     ((deviceByBus && deviceByBus(pciBusId.c_str(), &device) == 0) ||
                      (deviceByIndex && deviceByIndex(0, &device) == 0));
  if (!found) {
    reason = fmt::format("NVML ({}) finds no GPU", name);
    return;
  }
  find("nvmlDeviceGetClockInfo", clockInfo);
  find("nvmlDeviceGetPowerUsage", powerUsage);
  find("nvmlDeviceGetTemperature", temperature);
  find("nvmlDeviceGetTotalEnergyConsumption", totalEnergy);
  if (joules() == 0)
    reason = fmt::format("NVML ({}) tells no energy of this GPU", name);
}

Telemetry Nvml::read() const {
  Telemetry reading;
  unsigned value = 0;
  constexpr int kSmClock = 1, kGpuSensor = 0;
  if (clockInfo && clockInfo(device, kSmClock, &value) == 0)
    reading.clockMhz = value;
  if (powerUsage && powerUsage(device, &value) == 0)
    reading.watts = value / 1e3;
  if (temperature && temperature(device, kGpuSensor, &value) == 0)
    reading.celsius = value;
  return reading;
}

double Nvml::joules() const {
  unsigned long long millijoules = 0;
  return totalEnergy && totalEnergy(device, &millijoules) == 0 ? static_cast<double>(millijoules) / 1e3 : 0;
}

} // namespace fagen::lab
