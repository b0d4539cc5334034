// fagen: what policy chooses where a schedule does not say.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Checks.h"

#include "fagen/Target/MmaInstrs.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace fagen {

/// Bulk copies for warp groups; else the last of the others that the target has.
static Copy bestCopy(const TargetInfo &target, Mma mma) {
  if (mma == Mma::Wgmma)
    return Copy::Tma;
  Copy best = Copy::LdSt;
  for (const OptionValueInfo &value : optionInfo(OptionKey::Copy).values)
    if (target.hasAll(value.needs) && Copy(value.number) != Copy::Tma)
      best = Copy(value.number);
  return best;
}

void chooseDefaults(const TargetInfo &target, Schedule &schedule, KeySet given) {
  auto open = [&](OptionKey key) { return (given & keyBit(key)) == 0; };
  bool isScalar = schedule.mma == Mma::Scalar;
  bool isVectorNarrow = schedule.vectorBytes != 16;
  if (open(OptionKey::Copy))
    schedule.copy = isVectorNarrow && schedule.mma != Mma::Wgmma ? Copy::LdSt : bestCopy(target, schedule.mma);
  if (open(OptionKey::Swizzle)) {
    schedule.swizzle = isScalar                     ? Swizzle::None
                       : schedule.mma == Mma::Wmma  ? Swizzle::Pad
                       : schedule.mma == Mma::Wgmma ? Swizzle::B128
                                                    : Swizzle::Xor;
  }
  if (open(OptionKey::Refill))
    schedule.refill = isScalar ? Refill::Joint : Refill::Split;
  if (open(OptionKey::QIn))
    schedule.qIn = OperandPlace::Shared;
  if (open(OptionKey::PIn))
    schedule.pIn = isScalar || schedule.mma == Mma::Wmma ? OperandPlace::Shared : OperandPlace::Registers;
  if (open(OptionKey::Roles))
    schedule.roles = schedule.mma == Mma::Wgmma ? Roles::Specialized : Roles::Unified;
}

unsigned splitKeys(const Problem &problem, const Schedule &schedule) {
  constexpr unsigned kKeys = 512; // few enough to fill a GPU with long rows, many enough to hide what a merge costs
  return problem.invariant && schedule.split == 0 ? alignTo(kKeys, schedule.tileKeys) : 0;
}

} // namespace fagen
