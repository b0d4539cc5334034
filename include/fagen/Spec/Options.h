// fagen: the table of spec keys, from SpecOptions.td.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Spec/SpecOptions.h"
#include "fagen/Target/Target.h"

#include <string>
#include <vector>

namespace fagen {

enum class OptionBlock : uint8_t { Problem, Schedule };
enum class OptionType : uint8_t { Enum, Switch, Integer, Bytes, HeadDim, Tile };
enum class ArgumentKind : uint8_t { None, Number, Names };

/// What another key must say: one of these values.
struct GoesWith {
  OptionKey key;
  std::vector<unsigned> numbers; ///< in messages in this order
  llvm::StringRef because;       ///< follows the values in messages; empty: nothing does
};

/// One value of an enumerated key.
struct OptionValueInfo {
  llvm::StringRef text;
  unsigned number; ///< the enumerator
  llvm::StringRef doc;
  FeatureMask needs; ///< of the target
  bool notYet;       ///< known, but nothing is generated for it
  ArgumentKind argument;
  unsigned argumentMin, argumentMax;          ///< of a number
  std::vector<llvm::StringRef> argumentNames; ///< of names
  std::vector<GoesWith> goesWith;
};

struct OptionInfo {
  OptionKey key;
  llvm::StringRef name;
  OptionBlock block;
  OptionType type;
  llvm::StringRef doc;
  llvm::StringRef defaultText; ///< empty: required, or chosen by policy
  bool required;
  llvm::StringRef inName; ///< what stands before an axis value in a variant's name
  unsigned min, max, multipleOf;
  bool takesAuto;                      ///< an integer that may be left to the run time: auto is 0
  std::vector<OptionValueInfo> values; ///< of an enumeration
  std::vector<unsigned> allowed;       ///< of Bytes
  llvm::StringRef constant;            ///< of the kernel, by which a pass gets the number; empty: other code does
  std::vector<GoesWith> goesWith;      ///< of an integer: of numbers other than the default
  unsigned columnsEach;                ///< of Q, which each takes; there may be no more than Q has

  /// Of an integer that has a default.
  unsigned defaultNumber() const;
  const OptionValueInfo *findValue(llvm::StringRef text) const;
  const OptionValueInfo *findValue(unsigned number) const;
  std::vector<llvm::StringRef> valueTexts() const;
  /// The values that something is generated for: what a `not yet` message names.
  std::vector<llvm::StringRef> availableTexts() const;
};

/// Bytes of one element of a tensor.
unsigned elementBytes(DType type);

/// Every key, in the order of the key table.
const std::vector<OptionInfo> &allOptions();
const OptionInfo &optionInfo(OptionKey key);
/// The key of that name in a block, or null. `form` is the key `mask` by its other name.
const OptionInfo *findOption(OptionBlock block, llvm::StringRef name);
std::vector<llvm::StringRef> optionNames(OptionBlock block);

} // namespace fagen
