// fagen: which tiles an instruction takes, and which warps can share them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "VariantChecker.h"

#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

void VariantChecker::checkWarpsOfElements() {
  if (schedule.tileRows % schedule.warps == 0) {
    schedule.rowWarps = schedule.warps;
    return;
  }
  unsigned above = (schedule.tileRows / schedule.warps + 1) * schedule.warps;
  Finding &finding = add("warps", OptionKey::Tile,
                         fmt::format("{} warps do not divide {} query rows", schedule.warps, schedule.tileRows));
  finding.notes.push_back({OptionKey::Tile, fmt::format("with tile = {} x {} they do", above, schedule.tileKeys)});
}

/// Row groups and key groups of `groups` groups of warps on `slabs` slabs, if they divide evenly.
static std::optional<std::pair<unsigned, unsigned>> divideWarps(unsigned groups, unsigned slabs) {
  unsigned rowGroups = std::min(groups, slabs);
  if (rowGroups == 0 || slabs % rowGroups != 0 || groups % rowGroups != 0)
    return std::nullopt;
  return std::make_pair(rowGroups, groups / rowGroups);
}

/// "1, 3, 6, 9": the numbers of warps up to `most` that divide over that many slabs.
static std::string warpsThatFit(unsigned slabs, unsigned slabWarps, unsigned most) {
  std::vector<std::string> fitting;
  for (unsigned warps = slabWarps; warps <= std::min(most, optionInfo(OptionKey::Warps).max); warps += slabWarps)
    if (divideWarps(warps / slabWarps, slabs))
      fitting.push_back(std::to_string(warps));
  return join(fitting, ", ");
}

void VariantChecker::checkWarps() {
  const MmaInstrInfo &instr = firstMmaInstr(schedule.mma);
  if (schedule.tileRows % instr.slabRows != 0) {
    unsigned below = std::max(schedule.tileRows / instr.slabRows * instr.slabRows, instr.slabRows);
    add("warps", OptionKey::Tile,
        fmt::format("{} takes a multiple of {} query rows, not {}; the nearest are {} and {}", mmaText(),
                    instr.slabRows, schedule.tileRows, below, below + instr.slabRows));
    return;
  }
  if (schedule.warps % instr.slabWarps != 0) {
    add("warps", OptionKey::Warps,
        fmt::format("{} works in groups of {} warps; {} is not a multiple of it", mmaText(), instr.slabWarps,
                    schedule.warps));
    return;
  }
  const unsigned slabs = schedule.tileRows / instr.slabRows;
  if (hasOpaqueFragments(family()) && schedule.warps > slabs) {
    Finding &finding =
        add("warps", OptionKey::Warps,
            fmt::format("{} warps need {} query rows with {}, not {}: it has no warps side by side over keys",
                        schedule.warps, schedule.warps * instr.slabRows, mmaText(), schedule.tileRows));
    finding.notes.push_back({OptionKey::Warps, fmt::format("warps that can: {}", warpsThatFit(slabs, 1, slabs))});
    return;
  }
  if (auto groups = divideWarps(schedule.warps / instr.slabWarps, slabs)) {
    schedule.rowWarps = groups->first * instr.slabWarps;
    schedule.keyWarps = groups->second;
    return;
  }
  Finding &finding = add("warps", OptionKey::Tile,
                         fmt::format("{} warps cannot share {} query rows evenly: with {} they are {} slabs of {} rows",
                                     schedule.warps, schedule.tileRows, mmaText(), slabs, instr.slabRows));
  const unsigned most = hasOpaqueFragments(family()) ? slabs : optionInfo(OptionKey::Warps).max;
  finding.notes.push_back(
      {OptionKey::Warps, fmt::format("warps that can: {}", warpsThatFit(slabs, instr.slabWarps, most))});
}

void VariantChecker::checkKeys() {
  const unsigned multiple = firstMmaInstr(schedule.mma).keyMultiple * schedule.keyWarps;
  if (schedule.tileKeys % multiple == 0)
    return;
  unsigned below = std::max(schedule.tileKeys / multiple * multiple, multiple);
  std::string who = schedule.keyWarps == 1
                        ? mmaText()
                        : fmt::format("{} with {} warps side by side over keys", mmaText(), schedule.keyWarps);
  add("keys", OptionKey::Tile,
      fmt::format("{} takes a multiple of {} keys, not {}; the nearest are {} and {}", who, multiple, schedule.tileKeys,
                  below, below + multiple));
}

/// What one instruction and one box of a bulk copy take, and how registers can be divided.
void VariantChecker::checkWarpGroupTile() {
  const MmaInstrInfo &instr = firstMmaInstr(schedule.mma);
  const unsigned warpRows = instr.slabRows / instr.slabWarps, mostWarps = target.policy.groups * family().unitWarps;
  const bool isWhole = schedule.tileRows % instr.slabRows == 0; // else no warps fit: said already
  if (schedule.tileKeys > instr.nMax)
    add("keys", OptionKey::Tile,
        fmt::format("{} takes at most {} keys at once, not {}", mmaText(), instr.nMax, schedule.tileKeys));
  auto takes = [&](unsigned warps) {
    add("warps", OptionKey::Warps,
        fmt::format(
            "{} warps for {} query rows are not yet supported with {}; it takes {}, one group of four for 64 rows",
            schedule.warps, schedule.tileRows, mmaText(), warps));
  };
  if (schedule.keyWarps > 1)
    takes(schedule.rowWarps);
  else if (schedule.warps > mostWarps)
    add("warps", OptionKey::Warps,
        fmt::format("{} warps are not yet supported with {}; it takes 4, 8 or {}", schedule.warps, mmaText(),
                    mostWarps));
  else if (isWhole && schedule.rowWarps * warpRows != schedule.tileRows)
    takes(schedule.tileRows / warpRows);
}

} // namespace fagen
