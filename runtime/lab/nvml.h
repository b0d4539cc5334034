// fagen: clock, power and energy of a GPU, when its management library is there.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::lab {

/// Readings of the first GPU; 0 for what NVML does not tell.
class Nvml {
public:
  Nvml();
  Nvml(const Nvml &) = delete;
  Nvml &operator=(const Nvml &) = delete;

  double smClockMhz() const;
  double watts() const;
  double joules() const; ///< since the driver was loaded

private:
  using Device = struct NvmlDevice *;
  Device device = nullptr;
  int (*clockInfo)(Device, int type, unsigned *megahertz) = nullptr;
  int (*powerUsage)(Device, unsigned *milliwatts) = nullptr;
  int (*totalEnergy)(Device, unsigned long long *millijoules) = nullptr;
};

} // namespace fagen::lab
