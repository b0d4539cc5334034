// fagen: whether variants, by their lowered kernels, take no more shared memory and registers than their targets have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelAnalysis.h"
#include "fagen/Spec/Fit.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"

#include <deque>
#include <fmt/format.h>
#include <limits>

using namespace llvm;

namespace fagen {

void noteMeasures(SharedMeter &meter, ArrayRef<Variant *> variants) {
  const std::vector<const Variant *> asked(variants.begin(), variants.end());
  for (auto &&[variant, measured] : zip(variants, meter.measure(asked))) {
    variant->schedule.shared = std::move(measured.shared);
    variant->schedule.figures = measured.figures;
  }
}

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
  if (std::string text = nearestThatFits(measured, *options.meter); !text.empty())
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
  if (const std::string text = nearestThatFits(measured, *options.meter); !text.empty())
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
  noteMeasures(*options.meter, asked);
  for (auto [index, variant] : enumerate(measured))
    if (variant)
      reportShared(*variant, index);
  if (isSound && diags.errorCount() == before)
    for (auto [index, variant] : enumerate(measured))
      warnOfRegisters(*variant, index);
}

} // namespace fagen
