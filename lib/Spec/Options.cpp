// fagen: the table of spec keys.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Spec/Options.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace fagen {

const std::vector<OptionInfo> &allOptions() {
  static const std::vector<OptionInfo> options = {
#define GET_OPTION_TABLE
#include "fagen/Spec/SpecOptions.inc"
  };
  return options;
}

const OptionInfo &optionInfo(OptionKey key) { return allOptions()[unsigned(key)]; }

const OptionInfo *findOption(OptionBlock block, StringRef name) {
  if (block == OptionBlock::Problem && name == "form")
    return &optionInfo(OptionKey::Mask);
  for (const OptionInfo &option : allOptions())
    if (option.block == block && option.name == name)
      return &option;
  return nullptr;
}

std::vector<StringRef> optionNames(OptionBlock block) {
  std::vector<StringRef> names;
  for (const OptionInfo &option : allOptions())
    if (option.block == block)
      names.push_back(option.name);
  return names;
}

unsigned OptionInfo::defaultNumber() const {
  unsigned number = 0;
  const bool isNumber = to_integer(defaultText, number);
  assert(isNumber && "the default is not a number");
  (void)isNumber;
  return number;
}

const OptionValueInfo *OptionInfo::findValue(StringRef text) const {
  auto found = find_if(values, [&](const OptionValueInfo &value) { return value.text == text; });
  return found == values.end() ? nullptr : &*found;
}

const OptionValueInfo *OptionInfo::findValue(unsigned number) const {
  auto found = find_if(values, [&](const OptionValueInfo &value) { return value.number == number; });
  return found == values.end() ? nullptr : &*found;
}

std::vector<StringRef> OptionInfo::valueTexts() const {
  std::vector<StringRef> texts;
  for (const OptionValueInfo &value : values)
    texts.push_back(value.text);
  return texts;
}

std::vector<StringRef> OptionInfo::availableTexts() const {
  std::vector<StringRef> texts;
  for (const OptionValueInfo &value : values)
    if (!value.notYet)
      texts.push_back(value.text);
  return texts;
}

unsigned elementBytes(DType type) {
  switch (type) {
  case DType::E4M3:
    return 1;
  case DType::F16:
  case DType::BF16:
    return 2;
  case DType::F32:
    return 4;
  }
  return 0;
}

} // namespace fagen
