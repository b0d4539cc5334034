// fagen: which values of keys go with which, for tables and docs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GoesWith.h"

#include "EmitterSupport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TableGen/Error.h"

using namespace llvm;

namespace fagen::tblgen {

static const Record &optionOf(const RecordKeeper &records, const Record &rule) {
  const StringRef key = rule.getValueAsString("Key");
  for (const Record *option : records.getAllDerivedDefinitions("Option"))
    if (option->getValueAsString("Key") == key)
      return *option;
  PrintFatalError(rule.getLoc(), "there is no key '" + key + "'");
}

/// unsigned(Overlap::Intra), or of "16 B" and "1" the number.
static std::string numberOf(const Record &rule, const Record &option, StringRef text) {
  for (const Record *value : option.getValueAsListOfDefs("Values")) {
    const Record *const which = value->getValueAsDef("TheCase");
    if (which->getValueAsString("Text") == text)
      return ("unsigned(" + option.getValueAsDef("Enum")->getValueAsString("Name") +
              "::" + which->getValueAsString("Enumerator") + ")")
          .str();
  }
  unsigned number = 0;
  StringRef digits = text;
  digits.consume_back(" B");
  if (!option.getValueAsListOfDefs("Values").empty() || !to_integer(digits, number))
    PrintFatalError(rule.getLoc(), "key '" + option.getValueAsString("Key") + "' has no value '" + text + "'");
  return std::to_string(number);
}

std::string goesWithList(const RecordKeeper &records, const std::vector<Record *> &rules) {
  std::string result = "{";
  for (const Record *rule : rules) {
    const Record &option = optionOf(records, *rule);
    result += ("{OptionKey::" + option.getName().drop_back(StringRef("Option").size()) + ", {").str();
    for (StringRef value : rule->getValueAsListOfStrings("Values"))
      result += numberOf(*rule, option, value) + ", ";
    result += "}, " + quoted(rule->getValueAsString("Because")) + "}, ";
  }
  return result + "}";
}

/// "`overlap = intra` or `both`"
static std::string textOf(StringRef key, ArrayRef<StringRef> values, StringRef because = "") {
  std::string text = "`" + key.str() + " = ";
  for (const auto &[i, value] : enumerate(values))
    text += (i == 0 ? "" : i + 1 == values.size() ? " or `" : ", `") + value.str() + "`";
  return text + (because.empty() ? "" : ", ") + because.str();
}

/// "; goes with `mma = wgmma` and `overlap = intra` or `both`": by families that take the value, and by its own rules.
static std::string textOf(const Record &option, const std::vector<Record *> &rules,
                          function_ref<bool(const Record &)> isTakenBy) {
  std::vector<std::string> texts;
  std::vector<StringRef> takers;
  const std::vector<Record *> families = recordsInOrder(option.getRecords(), "MmaFamily");
  for (const Record *family : families)
    if (all_of(family->getValueAsListOfDefs("Values"), [&](const Record *takes) {
          return takes->getValueAsString("Key") != option.getValueAsString("Key") || isTakenBy(*takes);
        }))
      takers.push_back(family->getValueAsDef("Family")->getValueAsString("Text"));
  if (!takers.empty() && takers.size() != families.size())
    texts.push_back(textOf("mma", takers));
  for (const Record *rule : rules)
    texts.push_back(textOf(rule->getValueAsString("Key"), rule->getValueAsListOfStrings("Values"),
                           rule->getValueAsString("Because")));
  return texts.empty() ? "" : "; goes with " + join(texts, ", and ");
}

std::string goesWithText(const Record &option) {
  const bool isInteger = option.getValueAsListOfDefs("Values").empty();
  return isInteger ? textOf(option, option.getValueAsListOfDefs("With"), [](const Record &) { return false; }) : "";
}

std::string goesWithText(const Record &option, const Record &value) {
  const StringRef text = value.getValueAsDef("TheCase")->getValueAsString("Text");
  return textOf(option, value.getValueAsListOfDefs("With"),
                [&](const Record &takes) { return is_contained(takes.getValueAsListOfStrings("Values"), text); });
}

} // namespace fagen::tblgen
