// fagen: what the keys of one variant must satisfy together.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Hints.h"
#include "VariantChecker.h"

#include "fagen/Spec/GoesWith.h"
#include "fagen/Support/Suggest.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <fmt/format.h>

using namespace llvm;

namespace fagen {

std::vector<Finding> VariantChecker::run() {
  schedule.rowWarps = schedule.keyWarps = 1;
  if (!known(OptionKey::Mma))
    schedule.mma = fallbackFamily().family; // keeps least in shared memory: what does not fit now fits with no mma
  checkInstruction();
  checkValues();
  checkHeadDim();
  if (known(OptionKey::Mma, OptionKey::Tile, OptionKey::Warps)) {
    if (family().isCollective)
      checkWarps();
    else
      checkWarpsOfElements();
    checkKeys();
  }
  checkGoesWith();
  checkColumns();
  checkUnits();
  checkBoxes();
  checkRefill();
  checkNoMaximum();
  checkHalfScores();
  checkInvariantSplit();
  checkPanels();
  return std::move(findings);
}

void VariantChecker::checkInstruction() {
  if (!known(OptionKey::Mma, OptionKey::DType, OptionKey::Accum))
    return;
  if (problem.accum == DType::F32)
    return;
  const MmaInstrInfo *instr = findMmaInstr(schedule.mma, problem.dtype, problem.accum);
  if (!instr)
    add("value", OptionKey::Accum,
        fmt::format("{} has no {} accumulator for {}", mmaText(), toString(problem.accum).str(),
                    toString(problem.dtype).str()));
  else if (!instr->implemented)
    add("value", OptionKey::Accum,
        fmt::format("accum = {} is not yet supported with {}; it takes f32", toString(problem.accum).str(), mmaText()));
}

void VariantChecker::checkValues() {
  for (const OptionInfo &option : allOptions()) {
    if (option.type != OptionType::Enum || !isGiven(option.key))
      continue;
    bool isProblem = option.block == OptionBlock::Problem;
    checkValue(option.key, isProblem ? getKey(problem, option.key) : getKey(schedule, option.key));
  }
}

// First what nothing is generated for, then what the target cannot do.
void VariantChecker::checkValue(OptionKey key, const OptionValue &value) {
  if (value.form) // what a form asks of the target is arithmetic that all have
    return;
  const OptionInfo &option = optionInfo(key);
  const OptionValueInfo &info = *option.findValue(value.number);
  if (info.notYet) {
    add("value", key,
        fmt::format("{} is not yet supported; {} takes {}", toText(option, value), option.name.str(),
                    describeValues(option, &target)));
  } else if (!target.hasAll(info.needs)) {
    const TargetInfo *first = firstTargetWith(info.needs);
    add("value", key,
        fmt::format("{} needs {}; the target is {}, on which {} takes {}", info.text.str(),
                    first ? first->name.str() : "another target", target.name.str(), option.name.str(),
                    describeValues(option, &target)));
  }
}

void VariantChecker::checkHeadDim() {
  if (!known(OptionKey::Mma, OptionKey::HeadDim))
    return;
  constexpr unsigned kWidened = 32; // columns of bytes that ldmatrix reads at once
  const unsigned ofFamily = firstMmaInstr(schedule.mma).headDimMultiple;
  const bool isWidened = known(OptionKey::KvDType) && problem.kvDType != KvDType::Same && ofFamily < kWidened;
  const unsigned multiple = isWidened ? kWidened : ofFamily;
  const std::string needs = isWidened ? "kv_dtype = " + textOf(OptionKey::KvDType) : mmaText();
  for (unsigned headDim : {problem.headDimQK, problem.headDimV}) {
    if (headDim % multiple == 0)
      continue;
    unsigned below = std::max(headDim / multiple * multiple, multiple);
    Finding &finding = add("head_dim", OptionKey::HeadDim,
                           fmt::format("head_dim {} is not a multiple of {}, which {} needs; the nearest are {} and {}",
                                       headDim, multiple, needs, below, below + multiple));
    finding.notes.push_back({isWidened ? OptionKey::KvDType : OptionKey::Mma, fmt::format("{} is chosen here", needs)});
    return;
  }
}

/// "intra or both"
static std::string textOf(const OptionInfo &option, ArrayRef<unsigned> numbers) {
  std::vector<std::string> texts;
  for (unsigned number : numbers) {
    OptionValue value;
    value.number = number;
    texts.push_back(toText(option, value));
  }
  return alternatives(std::vector<StringRef>(texts.begin(), texts.end()));
}

std::string VariantChecker::textOf(OptionKey key) const {
  const OptionInfo &option = optionInfo(key);
  if (key == OptionKey::Mask)
    return maskText(problem);
  return toText(option, option.block == OptionBlock::Problem ? getKey(problem, key) : getKey(schedule, key));
}

void VariantChecker::checkGoesWith() {
  const KeyNumbers numbers{target,
                           [&](OptionKey key) {
                             if (key == OptionKey::Mask) // a form may hide keys, too
                               return unsigned(formOf(problem).mask ? Mask::Causal : Mask::None);
                             return optionInfo(key).block == OptionBlock::Problem ? getKey(problem, key).number
                                                                                  : getKey(schedule, key).number;
                           },
                           [&](OptionKey key) { return known(key) && (known(OptionKey::Mma) || isGiven(key)); },
                           [&](OptionKey key) { return isGiven(key); }};
  for (const Clash &clash : findClashes(numbers)) {
    const std::string value = clash.option->name.str() + " = " + textOf(clash.option->key),
                      fitting = fagen::textOf(*clash.option, valuesThatFit(clash, numbers));
    const OptionInfo &other = optionInfo(clash.with);
    const std::string because = clash.because.empty() ? "" : ", " + clash.because.str();
    std::string message;
    if (clash.with != OptionKey::Mma)
      message = fmt::format("{} goes with {} = {}{}, not with {}{}", value, other.name.str(),
                            fagen::textOf(other, clash.rule->numbers), because, textOf(clash.with),
                            fitting.empty() ? "" : "; there it takes " + fitting);
    else if (because.empty())
      message = fmt::format("{} is not yet supported with {}; it takes {}", value, mmaText(), fitting);
    else
      message = fmt::format("{} does not go with {}{}; it takes {}", value, mmaText(), because, fitting);
    erase_if(findings, [&](const Finding &earlier) { // what any family takes is said less closely
      return earlier.check == "value" && earlier.key == clash.option->key;
    });
    add(clash.option->name, clash.blamed, std::move(message));
  }
}

/// Slices of Q that a pass takes: no more than there are.
void VariantChecker::checkColumns() {
  for (const OptionInfo &option : allOptions()) {
    if (option.constant.empty() || !known(option.key, OptionKey::HeadDim))
      continue;
    const unsigned number = schedule.number(option.key), columns = number * option.columnsEach;
    if (columns > problem.headDimQK)
      add("columns", option.key,
          fmt::format("{} = {} is {} columns; Q has {} of them", option.name.str(), number, columns,
                      problem.headDimQK));
  }
}

// A bulk copy brings boxes of at most 256 rows, of whole panels: 64 columns, or 32 where those do not divide. Who loads
// is not there for the barriers of warps that merge what they have of a row.
void VariantChecker::checkBoxes() {
  constexpr unsigned kMostRows = 256, kPanelColumns = 32;
  if (!known(OptionKey::Copy, OptionKey::Mma) || schedule.copy != Copy::Tma || family().unitWarps > 1 ||
      !isOnTarget(OptionKey::Copy, unsigned(schedule.copy)))
    return;
  if (known(OptionKey::Tile) && std::max(schedule.tileRows, schedule.tileKeys) > kMostRows)
    add("keys", OptionKey::Tile,
        fmt::format("copy = tma brings at most {} rows at once, not {}", kMostRows,
                    std::max(schedule.tileRows, schedule.tileKeys)));
  if (known(OptionKey::Tile, OptionKey::Warps) && schedule.keyWarps > 1)
    add("warps", OptionKey::Warps,
        fmt::format("{} warps for {} query rows are not yet supported with copy = tma, {} side by side over keys; it "
                    "takes {}",
                    schedule.warps, schedule.tileRows, schedule.keyWarps, schedule.rowWarps));
  for (unsigned headDim : {problem.headDimQK, problem.headDimV})
    if (known(OptionKey::HeadDim) && headDim % kPanelColumns != 0) {
      add("head_dim", OptionKey::HeadDim,
          fmt::format("head_dim {} is not a multiple of {}, which copy = tma needs; the nearest are {} and {}", headDim,
                      kPanelColumns, headDim / kPanelColumns * kPanelColumns,
                      (headDim / kPanelColumns + 1) * kPanelColumns));
      return;
    }
}

/// Warps that issue products together.
void VariantChecker::checkUnits() {
  if (!known(OptionKey::Mma) || !isOnTarget(OptionKey::Mma, unsigned(schedule.mma)) || family().unitWarps == 1)
    return;
  if (known(OptionKey::Overlap, OptionKey::Warps) && schedule.warps == family().unitWarps &&
      (schedule.overlap == Overlap::Both || schedule.overlap == Overlap::Pingpong))
    add("overlap", OptionKey::Overlap,
        fmt::format("overlap = {} needs at least {} warps: one warp group has nobody to take turns with",
                    toString(schedule.overlap).str(), 2 * family().unitWarps));
  if (known(OptionKey::Tile, OptionKey::Warps))
    checkWarpGroupTile();
}

// Copies after Q K^T fill the slot that the step before has left; with one stage that is the one being read.
void VariantChecker::checkRefill() {
  if (known(OptionKey::Refill, OptionKey::Stages) && schedule.refill == Refill::Late && schedule.stages == 1)
    add("refill", OptionKey::Refill, "refill = late needs at least 2 stages; with 1 it takes split or joint");
}

void VariantChecker::checkInvariantSplit() {
  if (!known(OptionKey::Split, OptionKey::Invariant) || schedule.split <= 1 || !problem.invariant)
    return;
  add("split", OptionKey::Split,
      fmt::format("split = {} divides the keys by their number, and with invariant = on they are divided at fixed "
                  "places; it takes 1 or auto",
                  schedule.split));
}

// Without a maximum a term is as large as the score says. 2^80 leaves room in f32 for sums over 2^30 keys, and for |V|
// below 2^17; terms have the type of the product's operands, and f16 has no room.
void VariantChecker::checkNoMaximum() {
  if (schedule.rescale != RescalePolicy::None || !known(OptionKey::Rescale, OptionKey::DType, OptionKey::Mask))
    return;
  constexpr double kMostBits = 80, kLog2E = 1.4426950408889634;
  const std::string given = fmt::format("rescale = {}", toString(schedule.rescale).str());
  const form::RealRange score = problem.form ? scoreRange(*problem.form) : form::RealRange{};
  const double bits = std::max(-score.low, score.high) * kLog2E;
  if (!(bits <= kMostBits) || score.mayBeNan || score.mayBePositiveInfinity)
    add("rescale", OptionKey::Rescale,
        std::isfinite(bits) && !score.mayBeNan
            ? fmt::format("{} goes with scores between -80 and 80 in powers of two, {:.2f} in magnitude; that of {} "
                          "reaches {:.2f}: bind its params, or give them a smaller range",
                          given, kMostBits / kLog2E, maskText(problem), bits / kLog2E)
            : fmt::format("{} goes with a form whose score is bounded, as cap * tanh(s / cap); that of {} is not",
                          given, maskText(problem)));
}

// Scores that lie in shared memory have the type of the sums. f16 has no number for a bias of -1e9, and it would hide
// its key.
void VariantChecker::checkHalfScores() {
  if (!known(OptionKey::Mma, OptionKey::Accum, OptionKey::Mask) || problem.accum != DType::F16 ||
      !hasOpaqueFragments(family()) || !problem.form || !mayBeLarge(*problem.form))
    return;
  add("accum", OptionKey::Accum,
      fmt::format(
          "accum = f16 with {} keeps scores in f16, and that of {} may be larger than f16 has numbers: give its "
          "params a range, or take accum = f32",
          mmaText(), maskText(problem)));
}

// The pattern permutes whole chunks of 16 B inside panels of at least two chunks: 16 columns (device/tile/layout.h).
void VariantChecker::checkPanels() {
  static constexpr unsigned kPanelColumns = 16;
  if (!known(OptionKey::Swizzle, OptionKey::HeadDim, OptionKey::Mma) || schedule.swizzle != Swizzle::Xor ||
      firstMmaInstr(schedule.mma).headDimMultiple % kPanelColumns == 0) // the instruction asks for it already
    return;
  for (unsigned headDim : {problem.headDimQK, problem.headDimV}) {
    if (headDim % kPanelColumns == 0)
      continue;
    Finding &finding =
        add("swizzle", OptionKey::Swizzle,
            fmt::format("swizzle = xor needs head dims that are multiples of {}, not {}", kPanelColumns, headDim));
    finding.notes.push_back({OptionKey::Swizzle, "with swizzle = none any head dim will do"});
    return;
  }
}

std::vector<Finding> checkVariant(const TargetInfo &target, const Problem &problem, Schedule &schedule, KeySet unknown,
                                  KeySet given) {
  return VariantChecker(target, problem, schedule, unknown, given).run();
}

} // namespace fagen
