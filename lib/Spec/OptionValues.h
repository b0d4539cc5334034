// fagen: values of keys: from what is written to what it means, checked one by one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "FormAxis.h"
#include "fagen/Parse/AST.h"
#include "fagen/Spec/Options.h"
#include "fagen/Spec/Spec.h"
#include "fagen/Support/Diagnostics.h"

namespace fagen {

/// Keys that the compiler itself sets in the schedule for unaligned tensors.
inline bool isImplicitKey(llvm::StringRef key) { return key == "copy" || key == "vector"; }

/// What a key is set to. `known` is false for a value that was reported: checks that need it are left out.
struct OptionValue {
  unsigned number = 0;                   ///< enumerator, integer, bytes, switch, tile rows, QK head dim
  unsigned second = 0;                   ///< tile keys, V head dim, n of mixed(n)
  std::vector<std::string> names;        ///< places of at(...)
  std::shared_ptr<const form::Use> form; ///< of the key mask, where it is a form of the file
  bool known = true;
  llvm::SMRange range; ///< invalid for a default

  bool operator==(const OptionValue &other) const {
    return number == other.number && second == other.second && names == other.names;
  }
};

/// A set of keys.
using KeySet = uint32_t;
constexpr KeySet kAllKeys = ~KeySet(0);
constexpr KeySet keyBit(OptionKey key) { return KeySet(1) << unsigned(key); }

/// One setting: the items of its axis, each with the choices of its tunes. Never empty.
struct Assignment {
  const OptionInfo *option = nullptr;
  std::vector<std::vector<OptionValue>> items;
  bool isAxis = false;
  llvm::SMRange keyRange;
  llvm::SMRange range; ///< of the value
};

/// Checks the value alone: its form, its spelling, its range. Mistakes are reported and give unknown values. Forms that
/// it names are added to the axis.
Assignment checkSetting(const ast::Setting &setting, const OptionInfo &option, FormAxis &forms, Diagnostics &diags);

/// The key's default, where the table has one.
OptionValue defaultValue(const OptionInfo &option);

/// As a spec would write it: "128 x 64", "192 : 128", "at(after_load)", "16 B".
std::string toText(const OptionInfo &option, const OptionValue &value);
/// As a variant's name has it: "128x64", "192x128", "at_after_load", "v16".
std::string toNamePart(const OptionInfo &option, const OptionValue &value);

void setKey(Problem &problem, OptionKey key, const OptionValue &value);
void setKey(Schedule &schedule, OptionKey key, const OptionValue &value);
OptionValue getKey(const Problem &problem, OptionKey key);
OptionValue getKey(const Schedule &schedule, OptionKey key);

} // namespace fagen
