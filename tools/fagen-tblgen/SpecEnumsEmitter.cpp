// fagen: writes fagen/Spec/SpecOptions.h: the enumerations of spec values, with their spellings.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/TableGen/Error.h"
#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::specEnumsEmitter {
namespace {

/// Two cases of one enumeration must not share a spelling or a name.
void validate(const Record &enumeration) {
  StringSet<> seen;
  for (const Record *enumCase : enumeration.getValueAsListOfDefs("Cases"))
    if (!seen.insert(enumCase->getValueAsString("Text")).second)
      PrintFatalError(enumeration.getLoc(), "enumeration '" + enumeration.getValueAsString("Name") +
                                                "' has the case '" + enumCase->getValueAsString("Text") + "' twice");
}

/// enum class Mask : uint8_t { None = 1, Causal = 2 };
void emitEnum(raw_ostream &os, const Record &enumeration) {
  os << "\n/// " << enumeration.getValueAsString("Doc") << "\n";
  os << "enum class " << enumeration.getValueAsString("Name") << " : uint8_t { ";
  ListSeparator separator;
  for (const Record *enumCase : enumeration.getValueAsListOfDefs("Cases")) {
    os << separator << enumCase->getValueAsString("Enumerator");
    if (int64_t number = enumCase->getValueAsInt("Number"); number >= 0)
      os << " = " << number;
  }
  os << " };\n";
}

/// constexpr llvm::StringRef toString(Mask value) { switch (value) { ... } }
void emitToString(raw_ostream &os, const Record &enumeration) {
  StringRef name = enumeration.getValueAsString("Name");
  os << "constexpr llvm::StringRef toString(" << name << " value) {\n  switch (value) {\n";
  for (const Record *enumCase : enumeration.getValueAsListOfDefs("Cases"))
    os << "  case " << name << "::" << enumCase->getValueAsString("Enumerator") << ":\n    return "
       << quoted(enumCase->getValueAsString("Text")) << ";\n";
  os << "  }\n  return {};\n}\n";
}

/// inline std::optional<Mask> parseMask(llvm::StringRef text) { ... }
void emitParse(raw_ostream &os, const Record &enumeration) {
  StringRef name = enumeration.getValueAsString("Name");
  os << "inline std::optional<" << name << "> parse" << name << "(llvm::StringRef text) {\n";
  for (const Record *enumCase : enumeration.getValueAsListOfDefs("Cases"))
    os << "  if (text == " << quoted(enumCase->getValueAsString("Text")) << ")\n    return " << name
       << "::" << enumCase->getValueAsString("Enumerator") << ";\n";
  os << "  return std::nullopt;\n}\n";
}

/// template <> inline constexpr std::array kValuesOf<Mask> = {Mask::None, Mask::Causal};
void emitValues(raw_ostream &os, const Record &enumeration) {
  StringRef name = enumeration.getValueAsString("Name");
  os << "template <> inline constexpr std::array kValuesOf<" << name << "> = {";
  ListSeparator separator;
  for (const Record *enumCase : enumeration.getValueAsListOfDefs("Cases"))
    os << separator << name << "::" << enumCase->getValueAsString("Enumerator");
  os << "};\n";
}

void emitSpecEnums(RecordKeeper &records, raw_ostream &os) {
  std::vector<Record *> enumerations = recordsInOrder(records, "Enumeration");
  for (const Record *enumeration : enumerations)
    validate(*enumeration);

  emitFileHeader(os, "the enumerations of spec values.", "SpecOptions.td");
  os << "#pragma once\n\n#include \"llvm/ADT/StringRef.h\"\n\n#include <array>\n#include <cstdint>\n#include "
        "<optional>\n\n"
     << "namespace fagen {\n\n/// All values of an enumeration, in the order of its declaration.\n"
     << "template <typename Enum> inline constexpr std::array<Enum, 0> kValuesOf = {};\n";
  for (const Record *enumeration : enumerations) {
    emitEnum(os, *enumeration);
    emitToString(os, *enumeration);
    emitParse(os, *enumeration);
    emitValues(os, *enumeration);
  }
  os << "\n/// The keys of a spec, in the order of the key table.\nenum class OptionKey : uint8_t {\n";
  for (const Record *option : recordsInOrder(records, "Option"))
    os << "  " << option->getName().drop_back(StringRef("Option").size()) << ",\n";
  os << "};\n\n} // namespace fagen\n";
}

TableGen::Emitter::Opt registration("gen-spec-enums", emitSpecEnums, "C++ enumerations of spec values");

} // namespace
} // namespace fagen::tblgen::specEnumsEmitter
