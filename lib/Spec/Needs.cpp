// fagen: which GPUs have what a variant's instructions need.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OptionValues.h"

#include "fagen/Spec/Spec.h"

#include <algorithm>

namespace fagen {

static FeatureMask needsOf(const Variant &variant) {
  FeatureMask needs = 0;
  for (const OptionInfo &option : allOptions()) {
    if (option.type != OptionType::Enum)
      continue;
    const OptionValue value = option.block == OptionBlock::Problem ? getKey(variant.problem, option.key)
                                                                   : getKey(variant.schedule, option.key);
    if (const OptionValueInfo *const info = value.form ? nullptr : option.findValue(value.number))
      needs |= info->needs;
  }
  return needs;
}

unsigned firstSmOf(const Variant &variant) {
  const TargetInfo *const first = firstTargetWith(needsOf(variant));
  return std::max(variant.target->firstSm, first ? first->sm : 0);
}

} // namespace fagen
