// fagen: draws a spec that fagen must accept: targets, kernels, select, require.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Draw.h"

#include "Conditions.h"
#include "Rules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen::random {

/// Variants of a kernel, before fagen adds its own: more take the emulator too long.
static constexpr unsigned kMostVariants = 8;

/// The one asked for; else one, sometimes two. A target has a lot for each of its features.
static std::vector<const TargetInfo *> drawTargets(Random &random, const TargetInfo *only) {
  if (only)
    return {only};
  std::vector<const TargetInfo *> lots;
  for (const TargetInfo &target : allTargets())
    lots.insert(lots.end(), llvm::popcount(target.features), &target);
  std::vector<const TargetInfo *> targets = {random.pick(lots)};
  if (const TargetInfo *other = random.pick(lots); random.percent(15) && other != targets.front())
    targets.push_back(other);
  return targets;
}

static void drawSchedules(Random &random, Kernel &kernel) {
  static constexpr StringLiteral kNames[] = {"prefill", "decode", "short_rows", "wide", "x",
                                             "tune",    "when",   "_s",         "s2"};
  static constexpr unsigned kCounts[] = {1, 1, 1, 2, 2, 3};
  std::vector<StringRef> names(std::begin(kNames), std::end(kNames));
  random.shuffle(names);
  const unsigned room = kMostVariants / kernel.points.size();
  const unsigned count = std::min(random.pick(kCounts), room);
  for (unsigned i = 0; i != count; ++i) {
    Schedule &schedule = kernel.schedules.emplace_back();
    schedule.name = count == 1 && random.percent(50) ? "" : names[i].str();
    drawSchedule(random, kernel.points, std::max(1u, room / count), schedule);
  }
}

static void drawSelect(Random &random, Kernel &kernel) {
  if (kernel.schedules.front().name.empty() || (kernel.schedules.size() == 1 && random.percent(50)))
    return;
  for (unsigned lines = random.between(kernel.schedules.size() - 1, kernel.schedules.size() + 1); lines != 0; --lines) {
    const std::string condition = drawSelectCondition(random, kernel.points);
    kernel.select.push_back("when " + condition + " : " + random.pick(kernel.schedules).name);
  }
  kernel.select.push_back("otherwise : " + random.pick(kernel.schedules).name);
}

//===-- require
//----------------------------------------------------------------------------------------------------===//

/// Bytes of the variant that takes most.
static uint64_t mostSharedBytes(Kernel &kernel) {
  uint64_t most = 0;
  for (Schedule &schedule : kernel.schedules)
    for (size_t point = 0; point != kernel.points.size(); ++point)
      forEachVariant(resolve(schedule, point),
                     [&](const Values &values) { most = std::max(most, sharedBytes(kernel.points[point], values)); });
  return most;
}

/// A gate that holds: fagen itself checks `shared` only.
static std::string drawSharedGate(Random &random, uint64_t most) {
  switch (random.below(4)) {
  case 0:
    return fmt::format("shared <= {} KiB", (most + 1023) / 1024);
  case 1:
    return fmt::format("shared < {} B + {}", most, random.between(1, 1000));
  case 2:
    return fmt::format("shared <= {}", most);
  default:
    return fmt::format("shared <= 2 * ({} - {} / 2)", most, most);
  }
}

static void drawGates(Random &random, Kernel &kernel) {
  static constexpr StringLiteral kOthers[] = {
      "registers <= 248",   "registers < 2 * 64 + 1", "spills == 0",
      "spills <= 4 KiB",    "error <= 0.002",         "error < (1 / 256)",
      "time < 0.95 * sdpa", "time <= fa2 / 2",        "time < cudnn * 1.5 - 0.25 * cudnn",
      "time != cublas",     "time <= 120.5",          "ctas >= 2"};
  if (!random.percent(50))
    return;
  if (random.percent(70))
    kernel.gates.push_back(drawSharedGate(random, mostSharedBytes(kernel)));
  for (unsigned count = random.below(3); count != 0; --count)
    kernel.gates.push_back(random.pick(kOthers).str());
}

Spec drawSpec(Random &random, const TargetInfo *target) {
  static constexpr StringLiteral kNames[] = {"attention", "k1", "Mha", "x", "kernel", "_k", "fwd64", "problem"};
  std::vector<StringRef> names(std::begin(kNames), std::end(kNames));
  random.shuffle(names);
  Spec spec;
  spec.targets = drawTargets(random, target);
  const unsigned count = random.percent(92) ? 1 : 2;
  for (unsigned i = 0; i != count; ++i) {
    Kernel &kernel = spec.kernels.emplace_back();
    kernel.name = names[i].str();
    drawProblem(random, spec.targets, 4, kernel);
    drawSchedules(random, kernel);
    drawSelect(random, kernel);
    drawGates(random, kernel);
  }
  return spec;
}

} // namespace fagen::random
