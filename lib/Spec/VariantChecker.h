// fagen: what the keys of one variant must satisfy together, rule by rule.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   CheckTile.cpp   tiles and the warps that share them
//   Checks.cpp      everything else
#pragma once

#include "Checks.h"
#include "fagen/Target/MmaInstrs.h"

namespace fagen {

class VariantChecker {
public:
  VariantChecker(const TargetInfo &target, const Problem &problem, Schedule &schedule, KeySet unknown, KeySet given)
      : target(target), problem(problem), schedule(schedule), unknown(unknown), given(given) {}

  std::vector<Finding> run();

private:
  template <typename... Keys> bool known(Keys... keys) const { return (unknown & (keyBit(keys) | ...)) == 0; }
  bool isGiven(OptionKey key) const { return (given & keyBit(key)) != 0 && known(key); }
  Finding &add(llvm::StringRef check, OptionKey key, std::string message) {
    return findings.emplace_back(Finding{check, key, std::move(message), {}});
  }
  const MmaFamilyInfo &family() const { return mmaFamily(schedule.mma); }
  std::string mmaText() const { return toString(schedule.mma).str(); }

  void checkInstruction();
  void checkValues();
  void checkValue(OptionKey key, const OptionValue &value);
  void checkHeadDim();
  void checkWarpsOfElements();
  void checkWarps();
  void checkKeys();
  void checkGoesWith();
  std::string textOf(OptionKey key) const;
  void checkColumns();
  bool isOnTarget(OptionKey key, unsigned number) const {
    return target.hasAll(optionInfo(key).findValue(number)->needs);
  }
  void checkUnits();
  void checkBoxes();
  void checkWarpGroupTile();
  void checkRefill();
  void checkInvariantSplit();
  void checkNoMaximum();
  void checkHalfScores();
  void checkPanels();

  const TargetInfo &target;
  const Problem &problem;
  Schedule &schedule;
  KeySet unknown, given;
  std::vector<Finding> findings;
};

} // namespace fagen
