// fagen: which values of a schedule's keys go with which: the rules of SpecOptions.td and MmaInstrs.td, looked up.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Spec/Options.h"
#include "fagen/Target/Target.h"

#include <functional>

namespace fagen {

/// What a variant says.
struct KeyNumbers {
  const TargetInfo &target;
  std::function<unsigned(OptionKey)> of;  ///< the number of a key; of `mask` that of none where it hides no keys
  std::function<bool(OptionKey)> isKnown; ///< rules that read another key are left out
  std::function<bool(OptionKey)> isGiven; ///< whether the spec says it: it is blamed first
};

/// A value and that of another key, which do not go together.
struct Clash {
  const OptionInfo *option = nullptr; ///< of the value
  OptionKey with = OptionKey::Mma;    ///< the other key
  const GoesWith *rule = nullptr;     ///< what `with` may be instead; null: the family of `mma` does not take the value
  llvm::StringRef because;            ///< empty: nothing is said of it
  OptionKey blamed = OptionKey::Mma;  ///< where the message stands
};

/// The first rule of each key of the schedule that its value breaks. Where the target lacks the instructions or a
/// value, nothing is said of what goes with them.
std::vector<Clash> findClashes(const KeyNumbers &numbers);

/// The values of the clash's key that go with what its other key says: of an integer the default, else the family's
/// best first.
std::vector<unsigned> valuesThatFit(const Clash &clash, const KeyNumbers &numbers);

/// Keys of the schedule that have neither a default nor must be given, each after those that its values ask about.
std::vector<OptionKey> keysWithoutDefault();

/// What the key is where the spec does not say: the first value of the family, on the target, that goes with the known
/// keys, and they with it.
unsigned bestValue(const OptionInfo &option, const KeyNumbers &numbers);

} // namespace fagen
