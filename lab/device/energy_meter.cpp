// fagen: how much energy a load takes, by a counter that steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "energy_meter.h"

#include <atomic>
#include <chrono>
#include <fmt/format.h>
#include <thread>

namespace fagen::lab {

static constexpr std::chrono::milliseconds kPoll{1};

static double monotonicSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void CounterSteps::poll(double began, double ended, double joules) {
  if (joules == 0)
    return;
  if (lastJoules != 0 && joules != lastJoules)
    steps.push_back({(lastBegan + ended) / 2, joules, (ended - lastBegan) / 2});
  lastBegan = began;
  lastJoules = joules;
}

Energy CounterSteps::energy() const {
  const Step *first = nullptr;
  for (const Step &step : steps)
    if (step.moment >= begin + kSettleSeconds && !first)
      first = &step;
  const double seconds = first ? steps.back().moment - first->moment : 0;
  if (seconds < kLeastEnergySeconds)
    return {0, 0, 0,
            fmt::format("the counter's steps within the load are {:.2f} s apart; {:.1f} are needed", seconds,
                        kLeastEnergySeconds)};
  return {steps.back().joules - first->joules, seconds, (first->uncertainty + steps.back().uncertainty) / seconds, ""};
}

struct EnergyMeter::Polling {
  Polling(const std::function<double()> &joules)
      : steps(monotonicSeconds()), thread([this, &joules] { run(joules); }) {}
  ~Polling() { stop(); }

  void stop() {
    ended = true;
    if (thread.joinable())
      thread.join();
  }

  void run(const std::function<double()> &joules) {
    while (!ended) {
      const double began = monotonicSeconds(), read = joules();
      steps.poll(began, monotonicSeconds(), read);
      std::this_thread::sleep_for(kPoll);
    }
  }

  CounterSteps steps;
  std::atomic<bool> ended = false;
  std::thread thread; ///< the last: it uses the others
};

EnergyMeter::EnergyMeter(std::function<double()> joules, std::string missing)
    : joules(std::move(joules)), missing(std::move(missing)) {}
EnergyMeter::~EnergyMeter() = default;

void EnergyMeter::begin() {
  if (missing.empty())
    polling = std::make_unique<Polling>(joules);
}

Energy EnergyMeter::end() {
  if (!polling)
    return {0, 0, 0, missing.empty() ? "no load was measured" : missing};
  polling->stop();
  Energy energy = polling->steps.energy();
  polling.reset();
  return energy;
}

} // namespace fagen::lab
