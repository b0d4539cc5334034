// fagen: what policy chooses where a schedule does not say.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Checks.h"

#include "fagen/Spec/GoesWith.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace fagen {

/// Key by key, each by those that are there.
void chooseDefaults(const TargetInfo &target, Schedule &schedule, KeySet given) {
  KeySet open = 0;
  for (OptionKey key : keysWithoutDefault())
    open |= keyBit(key) & ~given;
  const KeyNumbers numbers{
      target, [&](OptionKey key) { return getKey(schedule, key).number; },
      [&](OptionKey key) { return optionInfo(key).block == OptionBlock::Schedule && (open & keyBit(key)) == 0; },
      [](OptionKey) { return false; }};
  for (OptionKey key : keysWithoutDefault()) {
    if ((open & keyBit(key)) == 0)
      continue;
    OptionValue value;
    value.number = bestValue(optionInfo(key), numbers);
    setKey(schedule, key, value);
    open &= ~keyBit(key);
  }
}

unsigned splitKeys(const Problem &problem, const Schedule &schedule) {
  constexpr unsigned kKeys = 512; // few enough to fill a GPU with long rows, many enough to hide what a merge costs
  return problem.invariant && schedule.split == 0 ? alignTo(kKeys, schedule.tileKeys) : 0;
}

} // namespace fagen
