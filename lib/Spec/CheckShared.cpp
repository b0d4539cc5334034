// fagen: whether variants, by their lowered kernels, take no more shared memory and registers than their targets have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelAnalysis.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

using namespace llvm;

namespace fagen {

bool exceedsShared(const Variant &variant) { return variant.schedule.shared.total > variant.target->sharedPerBlock; }

std::optional<std::string> findSharedProblem(const Variant &variant) {
  if (!exceedsShared(variant))
    return std::nullopt;
  const Schedule &schedule = variant.schedule;
  return fmt::format("tile {} x {} with {} stage{} needs {} B of shared memory; {} has {} B", schedule.tileRows,
                     schedule.tileKeys, schedule.stages, schedule.stages == 1 ? "" : "s", schedule.shared.total,
                     variant.target->name.str(), variant.target->sharedPerBlock);
}

/// "Q 32768 B, K 49152 B, V 49152 B at head_dim 64"; what counts arrivals takes a few bytes, and is left out.
static std::string describeShared(const Variant &variant) {
  static const std::map<StringRef, StringRef> kTitles = {
      {"pv", "P V"}, {"partial", "partial results"}, {"scratch", "reductions"}, {"out", "results"}};
  std::string text;
  for (const SharedBuffer &buffer : variant.schedule.shared.buffers) {
    if (!buffer.isTile)
      continue;
    auto title = kTitles.find(buffer.name);
    text += fmt::format("{}{} {} B{}", text.empty() ? "" : ", ",
                        title == kTitles.end() ? StringRef(buffer.name).upper() : title->second.str(), buffer.bytes,
                        buffer.overRing ? " (over K and V)" : "");
  }
  return text + " at head_dim " + toText(optionInfo(OptionKey::HeadDim), getKey(variant.problem, OptionKey::HeadDim));
}

namespace {

/// Registers of a thread that computes: what its share of the tiles takes at least, what it may have, and what it needs
/// besides: with less it is known to spill, with `margin` it is known not to.
struct ThreadRegisters {
  unsigned least, most, besides, margin;
  bool areTooFew() const { return least + besides > most; }
  bool areEnough() const { return least + margin <= most; }
};

} // namespace

/// By what nvcc made of mma_sync for sm_89: with 224 of 255 registers in tiles nothing spills, with 232 something does,
/// and with 192 there is a margin. Of wgmma for sm_90a, 236 of 240 may do and 240 may not.
static ThreadRegisters registersOf(const Variant &variant) {
  const RegisterFigures &figures = variant.schedule.figures;
  if (mmaFamily(variant.schedule.mma).isAsynchronous)
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

/// "with tile = 64 x 64 and warps = 8 it is 98304 B and at least 168 registers, which fit": the nearest schedule that
/// breaks no rule at all.
static std::string whatFits(const Variant &variant, SharedMeter &meter) {
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
    meter.measure(measured);
    const Schedule &found = candidate.schedule;
    if (found.shared.total == 0 || exceedsShared(candidate) || !registersOf(candidate).areEnough())
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

/// A variant with mistakes as far as it is right, with defaults in the place of the rest: what does not fit as that
/// would not fit with those mended. An unknown mma is the one that keeps least in shared memory.
static std::optional<Variant> withoutMistakes(const Variant &variant, KeySet given, KeySet unknown) {
  constexpr KeySet kNeeded = keyBit(OptionKey::Tile) | keyBit(OptionKey::Stages) | keyBit(OptionKey::HeadDim) |
                             keyBit(OptionKey::DType) | keyBit(OptionKey::QIn) | keyBit(OptionKey::Warps);
  if ((unknown & kNeeded) != 0)
    return std::nullopt;
  Variant plain = variant;
  const Schedule &written = variant.schedule;
  Schedule schedule;
  schedule.tileRows = written.tileRows;
  schedule.tileKeys = written.tileKeys;
  schedule.warps = written.warps;
  schedule.stages = written.stages;
  schedule.qIn = written.qIn;
  schedule.mma = (unknown & keyBit(OptionKey::Mma)) != 0 ? fallbackFamily().family : written.mma;
  chooseDefaults(*variant.target, schedule, given & keyBit(OptionKey::QIn));
  plain.schedule = schedule;
  if (!checkVariant(*plain.target, plain.problem, plain.schedule, 0, std::numeric_limits<KeySet>::max()).empty())
    return std::nullopt;
  return plain;
}

void KernelAnalysis::reportShared(const Variant &measured, size_t index) {
  std::optional<std::string> problem = findSharedProblem(measured);
  if (!problem)
    return;
  const ScheduleChoice &made = madeOfVariant[index];
  const SMRange schedule = schedules[measured.scheduleIndex].range;
  auto tile = made.ranges.find(OptionKey::Tile);
  if (reported.count({(tile == made.ranges.end() ? schedule : tile->second).Start.getPointer(), "shared"}))
    return;
  Finding finding{"shared", OptionKey::Tile, *problem, {{OptionKey::Tile, describeShared(measured)}}};
  if (std::string text = whatFits(measured, *options.meter); !text.empty())
    finding.notes.push_back({OptionKey::Tile, text});
  report(finding, *pointOfVariant[index], made, schedule);
}

/// Says where a thread cannot hold its share of the tiles, so that every step spills.
void KernelAnalysis::warnOfRegisters(const Variant &measured, size_t index) {
  const ThreadRegisters registers = registersOf(measured);
  if (!registers.areTooFew())
    return;
  const Schedule &schedule = measured.schedule;
  const ScheduleChoice &made = madeOfVariant[index];
  const auto tile = made.ranges.find(OptionKey::Tile);
  const SMRange range = tile == made.ranges.end() ? schedules[measured.scheduleIndex].range : tile->second;
  if (!reported.insert({range.Start.getPointer(), "registers"}).second)
    return;
  const std::string which =
      fmt::format("tile {} x {} with {} warps", schedule.tileRows, schedule.tileKeys, schedule.warps);
  const std::string dim = toText(optionInfo(OptionKey::HeadDim), getKey(measured.problem, OptionKey::HeadDim));
  diags.warning(range, registers.least > registers.most
                           ? fmt::format("{} needs at least {} registers a thread at head_dim {}; a thread has {}, and "
                                         "the rest spills to memory",
                                         which, registers.least, dim, registers.most)
                           : fmt::format("{} takes {} of the {} registers of a thread at head_dim {}; addresses need "
                                         "more than is left, and the rest spills to memory",
                                         which, registers.least, registers.most, dim));
  if (const std::string text = whatFits(measured, *options.meter); !text.empty())
    diags.note(range, text);
}

/// Lowers every variant. Of those with mistakes what is right of them, so that one run shows all mistakes.
void KernelAnalysis::checkShared() {
  if (!options.meter || !lookupTarget(targets.front()->name))
    return;
  const unsigned before = diags.errorCount();
  const bool isSound = all_of(madeOfVariant, [](const ScheduleChoice &made) { return made.isSound; });
  std::deque<Variant> substitutes;
  std::vector<const Variant *> measured;
  std::vector<Variant *> asked;
  for (auto [index, made] : enumerate(madeOfVariant)) {
    Variant *variant = &spec.variants[index];
    if (!made.isSound) {
      auto plain = withoutMistakes(*variant, made.given, made.unknown | pointOfVariant[index]->unknown);
      variant = plain ? &substitutes.emplace_back(std::move(*plain)) : nullptr;
    }
    measured.push_back(variant);
    if (variant)
      asked.push_back(variant);
  }
  for (Variant &variant : spec.variants)
    if (isSound && variant.schedule.implicit)
      asked.push_back(&variant);
  if (isSound)
    for (TuneCandidate &candidate : tuneCandidates)
      if (candidate.dropped.empty())
        asked.push_back(&candidate.variant);
  options.meter->measure(asked);
  for (auto [index, variant] : enumerate(measured))
    if (variant)
      reportShared(*variant, index);
  if (isSound && diags.errorCount() == before)
    for (auto [index, variant] : enumerate(measured))
      warnOfRegisters(*variant, index);
}

} // namespace fagen
