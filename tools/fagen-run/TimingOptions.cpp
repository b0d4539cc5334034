// fagen: options of every command that times, and the device they name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TimingOptions.h"
#include "Command.h"
#include "lab/kernel_set/forms.h"
#include "lab/time/baselines/names.h"
#include "lab/time/gpu_timing.h"
#include "lab/time/simulated_timing.h"

#include <fmt/format.h>

namespace fagen::lab {

static constexpr std::string_view kSimulated = "simulated:";

void TimingFlags::declare(CLI::App &app, const std::string &devices) {
  app.add_option("--device", device, devices)->capture_default_str();
  app.add_option("--shape,--problem,--case", shapes, "b,h,hkv,sq,sk,d[,dv], mission, mission2 (default: both)");
  app.add_flag("--grid", grid, "d 64 and 128 at S 512, 2048, 8192 with B*S = 16384 and H*d = 2048");
  app.add_option("--state", state, "burst (after a second of idling) or steady (after a second of the same load)")
      ->capture_default_str();
  app.add_option("--l2", l2, "warm, or cold: flushed before each launch")->capture_default_str();
  app.add_option("--rounds", rounds, "alternating segments of each contestant")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  app.add_option("--seed", seed, "of the inputs")->capture_default_str();
  app.add_option("--arg", numbers, "a scalar of forms: window=1024, cap=50; may be repeated");
}

TimeOptions TimingFlags::options() const {
  TimeOptions options;
  for (const std::string &shape : shapes)
    options.shapes.push_back(parseShape(shape));
  if (grid)
    for (const Shape &shape : gridShapes({64, 128}, {512, 2048, 8192}))
      options.shapes.push_back(shape);
  if (options.shapes.empty())
    for (const std::string &name : shapeNames())
      options.shapes.push_back(parseShape(name));
  if (state != "burst" && state != "steady")
    throw UserError(fmt::format("unknown state '{}'; known: burst, steady", state));
  if (l2 != "warm" && l2 != "cold")
    throw UserError(fmt::format("unknown L2 state '{}'; known: warm, cold", l2));
  options.state = state == "burst" ? PowerState::Burst : PowerState::Steady;
  options.l2 = l2 == "warm" ? L2State::Warm : L2State::Cold;
  options.rounds = rounds;
  options.seed = seed;
  options.numbers = parseNumbers(numbers);
  return options;
}

bool isSimulated(const std::string &flag) { return flag.starts_with(kSimulated); }

std::unique_ptr<TimingDevice> makeTimingDevice(const std::string &flag) {
  if (isSimulated(flag))
    return makeSimulatedTiming(flag.substr(kSimulated.size()));
  if (flag != "gpu")
    throw UserError(fmt::format(
        "unknown device '{}'; times come from gpu or simulated:FILE.json, and for tune from model:GPU", flag));
  return std::make_unique<GpuTiming>();
}

void requireBaselines(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::vector<std::string> &baselines) {
  std::vector<std::string> variants;
  for (const std::string &baseline : baselines) {
    requireBaseline(baseline);
    if (std::string variant = baselineVariant(baseline); !variant.empty())
      variants.push_back(variant);
  }
  requireVariants(sets, variants);
}

} // namespace fagen::lab
