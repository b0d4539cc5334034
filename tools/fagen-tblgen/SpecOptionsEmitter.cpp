// fagen: writes fagen/Spec/SpecOptions.inc: the table of keys that lib/Spec/Options.cpp includes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"
#include "GoesWith.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/TableGen/Error.h"
#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::specOptionsEmitter {
namespace {

std::string keyName(const Record &option) { return option.getName().drop_back(StringRef("Option").size()).str(); }

/// A default must be one of the values; a value must be a case of the key's enumeration.
void validateEnum(const Record &option) {
  const Record *enumeration = option.getValueAsDef("Enum");
  StringSet<> cases, values;
  for (const Record *enumCase : enumeration->getValueAsListOfDefs("Cases"))
    cases.insert(enumCase->getValueAsString("Text"));
  for (const Record *value : option.getValueAsListOfDefs("Values")) {
    StringRef text = value->getValueAsDef("TheCase")->getValueAsString("Text");
    if (!cases.count(text))
      PrintFatalError(option.getLoc(),
                      "value '" + text + "' is not a case of '" + enumeration->getValueAsString("Name") + "'");
    values.insert(text);
  }
  StringRef fallback = option.getValueAsString("Default");
  if (!fallback.empty() && !values.count(fallback))
    PrintFatalError(option.getLoc(), "default '" + fallback + "' is none of the key's values");
}

void validate(const std::vector<Record *> &options) {
  StringSet<> keys;
  for (const Record *option : options) {
    if (!option->getName().ends_with("Option"))
      PrintFatalError(option->getLoc(), "the record of a key must be named <Key>Option");
    if (!keys.insert(option->getValueAsString("Key")).second)
      PrintFatalError(option->getLoc(), "key '" + option->getValueAsString("Key") + "' is declared twice");
    bool chosen = option->getValueAsBit("Required") || !option->getValueAsString("DefaultDoc").empty();
    if (option->getValueAsString("Default").empty() != chosen)
      PrintFatalError(option->getLoc(), "a key needs exactly one of Default, DefaultDoc and Required");
    if (option->getValueAsDef("TheType")->getValueAsString("Enumerator") == "Enum")
      validateEnum(*option);
  }
}

/// ArgumentKind, min, max, names
void emitArgument(raw_ostream &os, const Record &argument) {
  if (argument.isSubClassOf("Number")) {
    os << "ArgumentKind::Number, " << argument.getValueAsInt("Min") << ", " << argument.getValueAsInt("Max") << ", {}";
    return;
  }
  if (!argument.isSubClassOf("Names")) {
    os << "ArgumentKind::None, 0, 0, {}";
    return;
  }
  os << "ArgumentKind::Names, 0, 0, {";
  ListSeparator separator;
  for (StringRef name : argument.getValueAsListOfStrings("Allowed"))
    os << separator << quoted(name);
  os << "}";
}

/// {"causal", unsigned(Mask::Causal), "doc", needs, notYet, argument, rules}
void emitValue(raw_ostream &os, const Record &option, const Record &value) {
  const Record *enumCase = value.getValueAsDef("TheCase");
  const StringRef enumName = option.getValueAsDef("Enum")->getValueAsString("Name");
  const std::string doc = value.getValueAsString("Doc").str() + goesWithText(option, value);
  os << "     {" << quoted(enumCase->getValueAsString("Text")) << ", unsigned(" << enumName
     << "::" << enumCase->getValueAsString("Enumerator") << "), " << quoted(doc) << ", "
     << featureMask(value.getValueAsListOfDefs("Needs")) << ", " << (value.getValueAsBit("NotYet") ? "true" : "false")
     << ", ";
  emitArgument(os, *value.getValueAsDef("TheArgument"));
  os << ", " << goesWithList(option.getRecords(), value.getValueAsListOfDefs("With")) << "},\n";
}

/// {OptionKey::Mask, "mask", OptionBlock::Problem, OptionType::Enum, ..., {values}, {allowed}, "", {rules}, 0}
void emitOption(raw_ostream &os, const Record &option) {
  bool problem = option.getValueAsString("Block") == "problem";
  os << "    {OptionKey::" << keyName(option) << ", " << quoted(option.getValueAsString("Key"))
     << ", OptionBlock::" << (problem ? "Problem" : "Schedule")
     << ", OptionType::" << option.getValueAsDef("TheType")->getValueAsString("Enumerator") << ", "
     << quoted(option.getValueAsString("Doc").str() + goesWithText(option)) << ", "
     << quoted(option.getValueAsString("Default")) << ", " << (option.getValueAsBit("Required") ? "true" : "false")
     << ", " << quoted(option.getValueAsString("InName")) << ", " << option.getValueAsInt("Min") << ", "
     << option.getValueAsInt("Max") << ", " << option.getValueAsInt("MultipleOf") << ", "
     << (option.getValueAsBit("TakesAuto") ? "true" : "false") << ", {";
  std::vector<Record *> values = option.getValueAsListOfDefs("Values");
  if (!values.empty()) {
    os << "\n";
    for (const Record *value : values)
      emitValue(os, option, *value);
    os << "    ";
  }
  os << "}, {";
  ListSeparator separator;
  for (int64_t allowed : option.getValueAsListOfInts("Allowed"))
    os << separator << allowed;
  os << "}, " << quoted(option.getValueAsString("Constant")) << ", "
     << goesWithList(option.getRecords(), option.getValueAsListOfDefs("With")) << ", "
     << option.getValueAsInt("ColumnsEach") << "},\n";
}

void emitSpecOptions(RecordKeeper &records, raw_ostream &os) {
  std::vector<Record *> options = recordsInOrder(records, "Option");
  validate(options);
  emitFileHeader(os, "the table of spec keys.", "SpecOptions.td");
  Guard guard(os, "GET_OPTION_TABLE");
  for (const Record *option : options)
    emitOption(os, *option);
}

TableGen::Emitter::Opt registration("gen-spec-options", emitSpecOptions, "the table of spec keys");

} // namespace
} // namespace fagen::tblgen::specOptionsEmitter
