// fagen: clock, power, energy and temperature of a GPU, when its management library is there.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace fagen::lab {

/// One reading; 0 for what is not told.
struct Telemetry {
  double clockMhz = 0; ///< of the SMs
  double watts = 0;
  double celsius = 0;
};

class Nvml {
public:
  /// The GPU at this address ("0000:18:00.0"); the first one when the library does not know it.
  explicit Nvml(const std::string &pciBusId, const char *library = "libnvidia-ml.so.1");
  Nvml(const Nvml &) = delete;
  Nvml &operator=(const Nvml &) = delete;

  Telemetry read() const;
  /// What the whole GPU has taken since the driver was loaded, in joules; 0 when it is not told. From any thread.
  double joules() const;
  /// Why joules are not told; empty: they are.
  const std::string &missing() const { return reason; }

private:
  using Device = struct NvmlDevice *;
  Device device = nullptr;
  std::string reason;
  int (*clockInfo)(Device, int type, unsigned *megahertz) = nullptr;
  int (*powerUsage)(Device, unsigned *milliwatts) = nullptr;
  int (*temperature)(Device, int sensor, unsigned *celsius) = nullptr;
  int (*totalEnergy)(Device, unsigned long long *millijoules) = nullptr;
};

} // namespace fagen::lab
