// fagen: whether a variant's tiles fit registers and shared memory, and the nearest that do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Spec/Fit.h"

#include "Checks.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace llvm;

namespace fagen {

/// By what nvcc made of mma_sync for sm_89: with 224 of 255 registers in tiles nothing spills, with 232 something does,
/// and with 192 there is a margin. Of wgmma for sm_90a, 236 of 240 may do and 240 may not.
ThreadRegisters registersOf(const Variant &variant) {
  const RegisterFigures &figures = variant.schedule.figures;
  if (mmaFamily(variant.schedule.mma).unitWarps > 1) // groups of warps take registers by role
    return {figures.leastRegisters, figures.mostRegisters, 0, 24};
  const unsigned ofCta = variant.target->registersPerSm / (variant.schedule.warps * 32);
  return {figures.leastRegisters, std::min(figures.mostRegisters, ofCta), 24, 64};
}

namespace {

/// A schedule near to one that does not fit.
struct NearSchedule {
  Schedule schedule;
  double distance; ///< of the changes together: halving a tile counts 1, doubling the warps and a stage less count half
};

} // namespace

/// The nearest first.
static std::vector<NearSchedule> nearSchedules(const Schedule &asked) {
  constexpr unsigned kMostKeys = 256;
  std::vector<NearSchedule> near;
  for (unsigned warps = asked.warps; warps <= optionInfo(OptionKey::Warps).max; warps *= 2)
    for (unsigned stages = asked.stages; stages != 0; --stages)
      for (unsigned rows = asked.tileRows; rows != 0; rows /= 2)
        for (unsigned keys = asked.tileKeys; keys != 0; keys = keys > kMostKeys ? kMostKeys : (keys - 1) / 16 * 16) {
          NearSchedule &candidate = near.emplace_back(NearSchedule{asked, 0});
          candidate.schedule.warps = warps;
          candidate.schedule.stages = stages;
          candidate.schedule.tileRows = rows;
          candidate.schedule.tileKeys = keys;
          candidate.distance = 0.5 * std::log2(double(warps) / asked.warps) + 0.5 * (asked.stages - stages) +
                               std::log2(double(asked.tileRows) / rows * asked.tileKeys / keys);
        }
  stable_sort(near, [](const NearSchedule &a, const NearSchedule &b) { return a.distance < b.distance; });
  return near;
}

std::string nearestThatFits(const Variant &variant, SharedMeter &meter, const FitLimits &limits) {
  constexpr unsigned kMostMeasured = 300;
  const Schedule &asked = variant.schedule;
  Variant candidate = variant;
  unsigned count = 0;
  const std::vector<NearSchedule> candidates = nearSchedules(asked);
  for (const NearSchedule &near : drop_begin(candidates)) {
    candidate.schedule = near.schedule;
    Variant *const measured = &candidate;
    if (!checkVariant(*candidate.target, candidate.problem, candidate.schedule, 0, 0).empty())
      continue;
    if (++count > kMostMeasured)
      break;
    noteMeasures(meter, measured);
    const Schedule &found = candidate.schedule;
    if (found.shared.total == 0 || exceedsShared(candidate) || found.shared.total > limits.sharedBytes)
      continue;
    ThreadRegisters registers = registersOf(candidate);
    registers.most = std::min(registers.most, limits.registers);
    if (!registers.areEnough() || registers.least > limits.leastRegisters)
      continue;
    std::vector<std::string> settings;
    if (found.tileRows != asked.tileRows || found.tileKeys != asked.tileKeys)
      settings.push_back(fmt::format("tile = {} x {}", found.tileRows, found.tileKeys));
    if (found.warps != asked.warps)
      settings.push_back(fmt::format("warps = {}", found.warps));
    if (found.stages != asked.stages)
      settings.push_back(fmt::format("stages = {}", found.stages));
    return fmt::format("with {} it is {} B of shared memory and at least {} registers a thread, which fit",
                       fmt::join(settings, " and "), found.shared.total, found.figures.leastRegisters);
  }
  return {};
}

} // namespace fagen
