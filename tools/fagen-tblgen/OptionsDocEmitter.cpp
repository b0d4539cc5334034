// fagen: writes docs/Options.md: every key of a spec, its values, default and meaning, and the targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"
#include "GoesWith.h"

#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::optionsDocEmitter {
namespace {

StringRef typeOf(const Record &option) { return option.getValueAsDef("TheType")->getValueAsString("Enumerator"); }

std::string codeList(const std::vector<StringRef> &names) {
  std::string result;
  for (StringRef name : names)
    result += (result.empty() ? "`" : ", `") + name.str() + "`";
  return result;
}

/// "1 to 16", "4 B, 8 B, 16 B", ...: values of a key that is no enumeration.
std::string plainValues(const Record &option) {
  std::string result;
  raw_string_ostream os(result);
  int64_t min = option.getValueAsInt("Min"), max = option.getValueAsInt("Max");
  if (typeOf(option) == "Switch")
    os << "`on`, `off`";
  else if (typeOf(option) == "Tile")
    os << "rows x keys, each " << min << " to " << max;
  else if (typeOf(option) == "HeadDim")
    os << "multiple of " << option.getValueAsInt("MultipleOf") << " from " << min << " to " << max << ", or `QK : V`";
  else if (typeOf(option) == "Bytes") {
    ListSeparator separator;
    for (int64_t allowed : option.getValueAsListOfInts("Allowed"))
      os << separator << "`" << allowed << " B`";
  } else
    os << (option.getValueAsBit("TakesAuto") ? "`auto`, " : "") << min << " to " << max;
  return result;
}

std::string defaultText(const Record &option) {
  if (option.getValueAsBit("Required"))
    return "must be given";
  if (StringRef chosen = option.getValueAsString("DefaultDoc"); !chosen.empty())
    return chosen.str();
  return ("`" + option.getValueAsString("Default") + "`").str();
}

/// * `tma`: the bulk copy engine (needs tma; not yet)
void emitValue(raw_ostream &os, const Record &option, const Record &value) {
  const Record *argument = value.getValueAsDef("TheArgument");
  os << "* `" << value.getValueAsDef("TheCase")->getValueAsString("Text");
  if (argument->isSubClassOf("Number"))
    os << "(n)";
  else if (argument->isSubClassOf("Names"))
    os << "(place, ...)";
  os << "`: " << value.getValueAsString("Doc");
  if (argument->isSubClassOf("Number"))
    os << "; n is " << argument->getValueAsInt("Min") << " to " << argument->getValueAsInt("Max");
  else if (argument->isSubClassOf("Names"))
    os << ": " << codeList(argument->getValueAsListOfStrings("Allowed"));
  os << goesWithText(option, value);
  for (const Record *feature : value.getValueAsListOfDefs("Needs"))
    os << "; needs a target with `" << feature->getValueAsString("Text") << "`";
  if (value.getValueAsBit("NotYet"))
    os << "; **not yet**";
  os << "\n";
}

void emitOption(raw_ostream &os, const Record &option) {
  os << "\n### " << option.getValueAsString("Key") << "\n\n"
     << option.getValueAsString("Doc") << ".\n\nDefault: " << defaultText(option) << ".\n\n";
  if (typeOf(option) != "Enum") {
    os << "Values: " << plainValues(option) << ".";
    if (const std::string rules = goesWithText(option); !rules.empty())
      os << " Another number than the default " << StringRef(rules).substr(2) << ".";
    os << "\n";
    return;
  }
  for (const Record *value : option.getValueAsListOfDefs("Values"))
    emitValue(os, option, *value);
}

void emitTargets(raw_ostream &os, const RecordKeeper &records) {
  os << "\n## Targets\n\n"
     << "| target | features | shared memory of a CTA | runs on |\n| --- | --- | --- | --- |\n";
  for (const Record *target : recordsInOrder(records, "Target")) {
    std::vector<StringRef> features;
    for (const Record *feature : target->getValueAsListOfDefs("Features"))
      features.push_back(feature->getValueAsString("Text"));
    os << "| `" << target->getValueAsString("Name") << "` | " << codeList(features) << " | "
       << target->getValueAsInt("SharedPerBlock") << " B | compute capability " << target->getValueAsInt("FirstSm") / 10
       << "." << target->getValueAsInt("FirstSm") % 10 << (target->getValueAsBit("Exact") ? " only" : " and newer")
       << " |\n";
  }
}

void emitOptionsDoc(RecordKeeper &records, raw_ostream &os) {
  os << "# Options of a spec\n\n"
     << "Generated from SpecOptions.td and Targets.td by fagen-tblgen. Do not edit.\n"
     << "[Language.md](Language.md) says how a spec is written; this page lists what its keys take.\n";
  for (StringRef block : {"problem", "schedule"}) {
    os << "\n## Keys of `" << block << "`\n";
    for (const Record *option : recordsInOrder(records, "Option"))
      if (option->getValueAsString("Block") == block)
        emitOption(os, *option);
  }
  emitTargets(os, records);
}

TableGen::Emitter::Opt registration("gen-options-doc", emitOptionsDoc, "docs/Options.md");

} // namespace
} // namespace fagen::tblgen::optionsDocEmitter
