// fagen: what policy chooses where a schedule does not say.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Checks.h"

#include "fagen/Target/MmaInstrs.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace fagen {

/// Bulk copies next to asynchronous products; else the last of the others that the target has.
static Copy bestCopy(const TargetInfo &target, Mma mma) {
  if (mmaFamily(mma).isAsynchronous)
    return Copy::Tma;
  Copy best = Copy::LdSt;
  for (const OptionValueInfo &value : optionInfo(OptionKey::Copy).values)
    if (target.hasAll(value.needs) && Copy(value.number) != Copy::Tma)
      best = Copy(value.number);
  return best;
}

void chooseDefaults(const TargetInfo &target, Schedule &schedule, KeySet given) {
  auto open = [&](OptionKey key) { return (given & keyBit(key)) == 0; };
  const MmaFamilyInfo &family = mmaFamily(schedule.mma);
  const bool isVectorNarrow = schedule.vectorBytes != 16;
  if (open(OptionKey::Copy))
    schedule.copy = isVectorNarrow && !family.isAsynchronous ? Copy::LdSt : bestCopy(target, schedule.mma);
  if (open(OptionKey::Swizzle)) {
    schedule.swizzle = !family.isCollective         ? Swizzle::None
                       : hasOpaqueFragments(family) ? Swizzle::Pad
                       : family.isAsynchronous      ? Swizzle::B128
                                                    : Swizzle::Xor;
  }
  if (open(OptionKey::Refill))
    schedule.refill = family.isCollective ? Refill::Split : Refill::Joint;
  if (open(OptionKey::QIn))
    schedule.qIn = OperandPlace::Shared;
  if (open(OptionKey::PIn))
    schedule.pIn = family.keepsResults ? OperandPlace::Registers : OperandPlace::Shared;
  if (open(OptionKey::Roles))
    schedule.roles = family.isAsynchronous ? Roles::Specialized : Roles::Unified;
}

unsigned splitKeys(const Problem &problem, const Schedule &schedule) {
  constexpr unsigned kKeys = 512; // few enough to fill a GPU with long rows, many enough to hide what a merge costs
  return problem.invariant && schedule.split == 0 ? alignTo(kKeys, schedule.tileKeys) : 0;
}

} // namespace fagen
