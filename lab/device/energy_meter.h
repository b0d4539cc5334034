// fagen: how much energy a load takes, by a counter that steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVML counts the energy of the whole GPU, idle power and memory included. The counter steps every 20 to 100 ms, so a
// reading may be a step away from the moment it is taken at. A thread polls it while the load runs, and only steps that
// it saw count: the energy between the first of them, kSettleSeconds after the load began, and the last, over the time
// between them. measure/energy.py has the same for PyTorch's processes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fagen::lab {

/// Between two steps of a counter.
struct Energy {
  double joules = 0, seconds = 0;
  double error = 0;    ///< what the moments of the two steps may be wrong by, as a share of the seconds
  std::string missing; ///< why it is not known; empty: it is

  bool told() const { return missing.empty() && seconds > 0; }
  double watts() const { return told() ? joules / seconds : 0; }
};

/// Later readings are of the load alone: the counter lags.
constexpr double kSettleSeconds = 0.15;
/// Less than this between the first step and the last says too little.
constexpr double kLeastEnergySeconds = 0.5;

/// Polls of a counter, and the energy between its steps.
class CounterSteps {
public:
  explicit CounterSteps(double begin) : begin(begin) {}
  /// A poll that took from `began` to `ended`, in seconds, and read `joules`; 0: it told nothing.
  void poll(double began, double ended, double joules);
  Energy energy() const;

private:
  struct Step {
    double moment, joules, uncertainty;
  };
  double begin, lastBegan = 0, lastJoules = 0;
  std::vector<Step> steps;
};

/// Polls a counter in a thread of its own, from begin() to end().
class EnergyMeter {
public:
  /// `joules` is called from the meter's thread; `missing` says why it tells nothing, or is empty.
  EnergyMeter(std::function<double()> joules, std::string missing);
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter &) = delete;
  EnergyMeter &operator=(const EnergyMeter &) = delete;

  void begin();
  Energy end();

private:
  struct Polling;
  std::function<double()> joules;
  std::string missing;
  std::unique_ptr<Polling> polling;
};

} // namespace fagen::lab
