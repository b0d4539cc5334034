// fagen: what the keys of one variant must satisfy together.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Hints.h"
#include "VariantChecker.h"

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
  checkOperandPlaces();
  checkPassNumbers();
  checkWarpGroups();
  checkCopy();
  checkRefill();
  checkRescale();
  checkNoMaximum();
  checkHalfScores();
  checkGqa();
  checkSplit();
  checkCluster();
  checkSettleApart();
  checkHalveMasked();
  checkVector();
  checkSwizzle();
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
  const unsigned multiple = firstMmaInstr(schedule.mma).headDimMultiple;
  for (unsigned headDim : {problem.headDimQK, problem.headDimV}) {
    if (headDim % multiple == 0)
      continue;
    unsigned below = std::max(headDim / multiple * multiple, multiple);
    Finding &finding = add("head_dim", OptionKey::HeadDim,
                           fmt::format("head_dim {} is not a multiple of {}, which {} needs; the nearest are {} and {}",
                                       headDim, multiple, mmaText(), below, below + multiple));
    finding.notes.push_back({OptionKey::Mma, fmt::format("{} is chosen here", mmaText())});
    return;
  }
}

// Where operands live and how reductions cross threads is fixed by the implemented instruction families.
void VariantChecker::checkOperandPlaces() {
  if (!known(OptionKey::Mma))
    return;
  const bool isCollective = family().isCollective, keepsResults = family().keepsResults;
  if (isGiven(OptionKey::QIn) && (!isCollective || family().isAsynchronous) && schedule.qIn == OperandPlace::Registers)
    refuse("operand", OptionKey::QIn, "shared");
  if (isGiven(OptionKey::PIn) && !keepsResults && schedule.pIn == OperandPlace::Registers)
    refuse("operand", OptionKey::PIn, "shared");
  if (isGiven(OptionKey::PIn) && keepsResults && isOnTarget(OptionKey::Mma, unsigned(schedule.mma)) &&
      schedule.pIn == OperandPlace::Shared)
    refuse("operand", OptionKey::PIn, "registers");
  if (isGiven(OptionKey::Reduce) && isCollective && schedule.reduce == Reduce::Shared)
    refuse("operand", OptionKey::Reduce, "warp");
}

// Numbers that a pass reads, perhaps one for kernels of one family.
void VariantChecker::checkPassNumbers() {
  for (const OptionInfo &option : allOptions()) {
    if (option.constant.empty() || !known(option.key, OptionKey::Mma))
      continue;
    const unsigned number = schedule.number(option.key), columns = number * option.columnsEach;
    if (known(OptionKey::HeadDim) && columns > problem.headDimQK)
      add("columns", option.key,
          fmt::format("{} = {} is {} columns; Q has {} of them", option.name.str(), number, columns,
                      problem.headDimQK));
    if (!option.onlyWith.empty() && option.onlyWith != mmaText() && number != option.defaultNumber() &&
        isOnTarget(OptionKey::Mma, unsigned(schedule.mma)))
      refuse(option.name, option.key, option.defaultText);
  }
}

/// A value that is not generated for with this mma; `accepted` is closer than what any mma takes.
void VariantChecker::refuse(StringRef check, OptionKey key, StringRef accepted) {
  const OptionInfo &option = optionInfo(key);
  erase_if(findings, [&](const Finding &earlier) { return earlier.check == "value" && earlier.key == key; });
  add(check, key,
      fmt::format("{} = {} is not yet supported with {}; it takes {}", option.name.str(),
                  toText(option, getKey(schedule, key)), mmaText(), accepted.str()));
}

// A kernel of asynchronous products is of one kind: bulk copies by warps of their own, waited for at mbarriers.
void VariantChecker::checkWarpGroups() {
  if (!known(OptionKey::Mma) || !isOnTarget(OptionKey::Mma, unsigned(schedule.mma)))
    return;
  const bool isAsynchronous = family().isAsynchronous;
  if (isGiven(OptionKey::Roles) && (schedule.roles == Roles::Specialized) != isAsynchronous)
    refuse("roles", OptionKey::Roles, isAsynchronous ? "specialized" : "unified");
  if (isGiven(OptionKey::Grid) && !isAsynchronous && schedule.grid != Grid::Tiles)
    refuse("grid", OptionKey::Grid, "tiles");
  if (isGiven(OptionKey::Grid) && isAsynchronous && schedule.grid == Grid::Persistent && known(OptionKey::Mask) &&
      formOf(problem).mask)
    add("grid", OptionKey::Grid,
        fmt::format("grid = persistent is not yet supported with mask = {}; it takes tiles, longest_first",
                    maskText(problem)));
  if (isGiven(OptionKey::Overlap) && !isAsynchronous && schedule.overlap != Overlap::None)
    refuse("overlap", OptionKey::Overlap, "none");
  if (!isAsynchronous)
    return;
  if (known(OptionKey::Overlap, OptionKey::Warps) && schedule.warps == 4 &&
      (schedule.overlap == Overlap::Both || schedule.overlap == Overlap::Pingpong))
    add("overlap", OptionKey::Overlap,
        fmt::format("overlap = {} needs at least 8 warps: one warp group has nobody to take turns with",
                    toString(schedule.overlap).str()));
  if (isGiven(OptionKey::Refill) && schedule.refill != Refill::Split)
    refuse("refill", OptionKey::Refill, "split");
  if (isGiven(OptionKey::Barriers) && schedule.barriers != BarrierPolicy::Minimal)
    refuse("barriers", OptionKey::Barriers, "minimal");
  if (known(OptionKey::Tile, OptionKey::Warps))
    checkWarpGroupTile();
}

void VariantChecker::checkCopy() {
  if (!known(OptionKey::Mma) || !isGiven(OptionKey::Copy) || !isOnTarget(OptionKey::Mma, unsigned(schedule.mma)) ||
      !isOnTarget(OptionKey::Copy, unsigned(schedule.copy)))
    return;
  const bool isAsynchronous = family().isAsynchronous;
  if ((schedule.copy == Copy::Tma) != isAsynchronous)
    refuse("copy", OptionKey::Copy, isAsynchronous ? "tma" : "ld_st or cp_async");
}

// Copies after Q K^T fill the slot that the step before has left; with one stage that is the one being read.
void VariantChecker::checkRefill() {
  if (known(OptionKey::Refill, OptionKey::Stages) && schedule.refill == Refill::Late && schedule.stages == 1)
    add("refill", OptionKey::Refill, "refill = late needs at least 2 stages; with 1 it takes split or joint");
}

// Only tensor-core kernels with results in registers leave them to a second launch, and a CTA has one tile and one
// split.
void VariantChecker::checkSplit() {
  if (!known(OptionKey::Split) || !schedule.isSplit())
    return;
  const std::string split = toText(optionInfo(OptionKey::Split), getKey(schedule, OptionKey::Split));
  if (known(OptionKey::Mma) && !family().keepsResults)
    add("split", OptionKey::Split,
        fmt::format("split = {} is not yet supported with {}; it takes 1", split, mmaText()));
  if (known(OptionKey::Mma, OptionKey::Grid) && family().isAsynchronous && schedule.grid != Grid::Tiles)
    add("split", OptionKey::Split,
        fmt::format("split = {} is not yet supported with grid = {}; it takes 1, or any with grid = tiles", split,
                    toString(schedule.grid).str()));
  if (known(OptionKey::Invariant) && problem.invariant && schedule.split != 0)
    add("split", OptionKey::Split,
        fmt::format("split = {} divides the keys by their number, and with invariant = on they are divided at fixed "
                    "places; it takes 1 or auto",
                    split));
}

// CTAs of a cluster go through the same key tiles step by step: their tiles of query rows see as many keys.
void VariantChecker::checkCluster() {
  const unsigned ctas = schedule.number(OptionKey::Cluster);
  if (known(OptionKey::Cluster, OptionKey::Mma, OptionKey::Grid) && ctas != 1 && family().isAsynchronous &&
      isOnTarget(OptionKey::Mma, unsigned(schedule.mma)) && schedule.grid != Grid::Persistent)
    add("cluster", OptionKey::Cluster,
        fmt::format(
            "cluster = {} is not yet supported with grid = {}; it takes 1, or 2 with grid = persistent and no mask",
            ctas, toString(schedule.grid).str()));
}

// Only optimistic steps have something that is rare.
void VariantChecker::checkSettleApart() {
  if (known(OptionKey::SettleApart, OptionKey::Mma, OptionKey::Rescale) &&
      schedule.number(OptionKey::SettleApart) != 0 && family().isAsynchronous &&
      isOnTarget(OptionKey::Mma, unsigned(schedule.mma)) && schedule.rescale != RescalePolicy::Optimistic)
    add("settle_apart", OptionKey::SettleApart,
        fmt::format("settle_apart = 1 goes with rescale = optimistic, not with {}", toString(schedule.rescale).str()));
}

// Only rotated steps have a first one, which stands alone.
void VariantChecker::checkHalveMasked() {
  if (known(OptionKey::HalveMasked, OptionKey::Mma, OptionKey::Overlap) &&
      schedule.number(OptionKey::HalveMasked) != 0 && family().isAsynchronous &&
      isOnTarget(OptionKey::Mma, unsigned(schedule.mma)) && schedule.overlap != Overlap::Intra &&
      schedule.overlap != Overlap::Both)
    add("halve_masked", OptionKey::HalveMasked,
        fmt::format("halve_masked = 1 goes with overlap = intra or both, not with {}",
                    toString(schedule.overlap).str()));
}

// Probabilities may be 2^8 times as large as usual, or 2^15 or 2^40 times, and with them P V of a tile. A step can be
// done again while the slots of Q and K are there, and there is something to gain where its softmax runs alongside P V.
void VariantChecker::checkRescale() {
  const std::string given = fmt::format("rescale = {}", toString(schedule.rescale).str());
  if (known(OptionKey::Rescale, OptionKey::Accum) && schedule.rescale != RescalePolicy::Always &&
      problem.accum == DType::F16)
    add("rescale", OptionKey::Rescale, given + " with accum = f16 could overflow; it takes always");
  if (!known(OptionKey::Rescale, OptionKey::Mma) || schedule.rescale != RescalePolicy::Optimistic ||
      !isOnTarget(OptionKey::Mma, unsigned(schedule.mma)))
    return;
  if (!family().isAsynchronous)
    add("rescale", OptionKey::Rescale,
        fmt::format("{} is not yet supported with {}; it takes always or lazy", given, mmaText()));
  else if (known(OptionKey::Overlap) && schedule.overlap != Overlap::Intra && schedule.overlap != Overlap::Both)
    add("rescale", OptionKey::Rescale,
        fmt::format("{} goes with overlap = intra or both, not with {}", given, toString(schedule.overlap).str()));
}

// Without a maximum a term is as large as the score says. 2^80 leaves room in f32 for sums over 2^30 keys, and for |V|
// below 2^17; terms have the type of the product's operands, and f16 has no room.
void VariantChecker::checkNoMaximum() {
  if (schedule.rescale != RescalePolicy::None || !known(OptionKey::Rescale, OptionKey::DType, OptionKey::Mask))
    return;
  constexpr double kMostBits = 80, kLog2E = 1.4426950408889634;
  const std::string given = fmt::format("rescale = {}", toString(schedule.rescale).str());
  if (problem.dtype != DType::BF16)
    add("rescale", OptionKey::Rescale,
        fmt::format("{} goes with dtype = bf16, whose range is that of f32, not with {}", given,
                    toString(problem.dtype).str()));
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

// The bulk copy engine takes rows at one stride; the heads of a query and its neighbours have two.
void VariantChecker::checkGqa() {
  if (known(OptionKey::Gqa, OptionKey::Copy) && schedule.gqa == Gqa::Pack && schedule.copy == Copy::Tma &&
      isOnTarget(OptionKey::Mma, unsigned(schedule.mma)))
    add("gqa", OptionKey::Gqa, "gqa = pack goes with copy = ld_st or cp_async, not with tma");
}

void VariantChecker::checkVector() {
  if (!known(OptionKey::Copy, OptionKey::Vector) || schedule.copy == Copy::LdSt || schedule.vectorBytes == 16)
    return;
  const bool isBulk = schedule.copy == Copy::Tma;
  Finding &finding =
      add("vector", OptionKey::Vector,
          isBulk ? fmt::format("tma goes with results stored 16 B at a time, not {} B", schedule.vectorBytes)
                 : fmt::format("cp_async copies 16 B at a time, not {} B", schedule.vectorBytes));
  if (!isBulk)
    finding.notes.push_back(
        {OptionKey::Vector, fmt::format("vector = {} B goes with copy = ld_st", schedule.vectorBytes)});
}

// The pattern permutes whole chunks of 16 B inside panels of at least two chunks: 16 columns (device/tile/layout.h).
void VariantChecker::checkSwizzle() {
  static constexpr unsigned kPanelColumns = 16;
  if (!known(OptionKey::Swizzle, OptionKey::HeadDim, OptionKey::Mma))
    return;
  if (isGiven(OptionKey::Swizzle) && isOnTarget(OptionKey::Mma, unsigned(schedule.mma)) &&
      (schedule.swizzle == Swizzle::B128) != family().isAsynchronous)
    return refuse("swizzle", OptionKey::Swizzle, family().isAsynchronous ? "b128" : "none, xor or pad");
  if (schedule.swizzle != Swizzle::Xor)
    return;
  if (hasOpaqueFragments(family())) {
    add("swizzle", OptionKey::Swizzle,
        fmt::format("swizzle = xor has no constant stride from row to row, which {} needs; it takes pad or none",
                    mmaText()));
    return;
  }
  if (firstMmaInstr(schedule.mma).headDimMultiple % kPanelColumns == 0)
    return; // the instruction asks for it already
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
