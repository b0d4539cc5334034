// fagen: writes fagen/IR/OpEnums.h and OpClasses.h: enumerations of attributes; a class an op, and what makes it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/TableGen/Error.h"
#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::opClassesEmitter {
namespace {

std::vector<std::string> enumeratorsOf(const Record &type) {
  std::vector<std::string> names;
  for (StringRef name : type.getValueAsListOfStrings("Enumerators"))
    names.push_back(name.str());
  if (names.empty())
    for (StringRef value : type.getValueAsListOfStrings("Values"))
      names.push_back(upperCamel(value));
  return names;
}

void validate(const Record &type) {
  StringSet<> seen;
  const std::vector<std::string> names = enumeratorsOf(type);
  if (names.size() != type.getValueAsListOfStrings("Values").size())
    PrintFatalError(type.getLoc(), "enumeration '" + type.getValueAsString("Name") + "' names " + Twine(names.size()) +
                                       " enumerators for its values");
  for (const std::string &name : names)
    if (!seen.insert(name).second)
      PrintFatalError(type.getLoc(),
                      "enumeration '" + type.getValueAsString("Name") + "' has the enumerator '" + name + "' twice");
}

/// enum class CopyKind : uint8_t { LdSt, CpAsync, Bulk }; with toString() and parse<CopyKind>().
void emitEnum(raw_ostream &os, const Record &type) {
  StringRef name = type.getValueAsString("Name");
  const std::vector<std::string> enumerators = enumeratorsOf(type);
  const std::vector<StringRef> values = type.getValueAsListOfStrings("Values");
  os << "\n/// " << type.getValueAsString("Doc") << "\nenum class " << name << " : uint8_t { "
     << join(enumerators, ", ") << " };\n\n";
  os << "constexpr llvm::StringRef toString(" << name << " value) {\n  switch (value) {\n";
  for (size_t i = 0; i != values.size(); ++i)
    os << "  case " << name << "::" << enumerators[i] << ":\n    return " << quoted(values[i]) << ";\n";
  os << "  }\n  return {};\n}\n\n";
  os << "inline constexpr std::array k" << name << "s = {";
  ListSeparator separator;
  for (const std::string &enumerator : enumerators)
    os << separator << name << "::" << enumerator;
  os << "};\n\n";
  os << "template <> inline " << name << " parse<" << name << ">([[maybe_unused]] llvm::StringRef text) {\n";
  for (size_t i = 0; i + 1 < values.size(); ++i)
    os << "  if (text == " << quoted(values[i]) << ")\n    return " << name << "::" << enumerators[i] << ";\n";
  os << "  assert(text == " << quoted(values.back()) << " && \"the verifier knows all values\");\n  return " << name
     << "::" << enumerators.back() << ";\n}\n";
}

/// One attribute, as C++ sees it.
struct Field {
  explicit Field(const Record &record)
      : name(lowerCamel(record.getValueAsString("Name"))), attr("Attr::" + upperCamel(record.getValueAsString("Name"))),
        isOptional(record.getValueAsBit("Optional")), isFlag(false) {
    StringRef kind = record.getValueAsDef("TheType")->getValueAsString("Enumerator");
    const Record *type = record.getValueAsOptionalDef("TheEnum");
    isFlag = kind == "Integer" && record.getValueAsInt("Min") == 0 && record.getValueAsInt("Max") == 1;
    isExpression = kind == "Expression";
    isEnum = type != nullptr;
    isText = kind == "String" && !type;
    base = isFlag         ? "bool"
           : isExpression ? "Expr"
           : type         ? type->getValueAsString("Name").str()
           : isText       ? "std::string"
                          : "int64_t";
    if (!isa<UnsetInit>(record.getValueInit("Default")))
      fallback = std::to_string(record.getValueAsInt("Default"));
  }

  std::string name, attr, base, fallback;
  bool isOptional, isFlag, isExpression = false, isEnum = false, isText = false;

  /// What is absent by its own value: a null expression, an empty text, false.
  bool hasNull() const { return isFlag || isExpression || isText; }
  std::string argument() const { return isOptional && !hasNull() ? "std::optional<" + base + ">" : base; }
};

std::vector<Field> fieldsOf(const Record &op) {
  std::vector<Field> fields;
  for (const Record *attribute : op.getValueAsListOfDefs("Attributes"))
    fields.emplace_back(*attribute);
  return fields;
}

/// CopyKind kind() const { return this->template choice<CopyKind>(Attr::Kind); }
void emitGetter(raw_ostream &os, const Field &field) {
  std::string type = field.isText ? "llvm::StringRef" : field.isOptional ? field.argument() : field.base;
  std::string value = field.isFlag         ? "this->flag(" + field.attr + ")"
                      : field.isExpression ? "this->expression(" + field.attr + ")"
                      : field.isText       ? "this->text(" + field.attr + ")"
                      : field.isEnum       ? "this->template choice<" + field.base + ">(" + field.attr + ")"
                                           : "this->integer(" + field.attr + ")";
  if (!field.fallback.empty()) {
    type = field.base;
    value = "this->has(" + field.attr + ") ? " + value + " : " + field.fallback;
  } else if (field.isOptional && !field.hasNull()) {
    value = "this->has(" + field.attr + ") ? std::optional(" + value + ") : std::nullopt";
  }
  os << "  " << type << " " << field.name << "() const { return " << value << "; }\n";
}

/// void setKind(CopyKind value) const { this->set(Attr::Kind, toString(value).str()); }
void emitSetter(raw_ostream &os, const Field &field) {
  std::string name = "set" + field.name;
  name[3] = toUpper(name[3]);
  StringRef value = field.isFlag ? "int64_t(value)" : field.isEnum ? "toString(value).str()" : "std::move(value)";
  os << "  void " << name << "(" << field.base << " value) const { this->set(" << field.attr << ", " << value
     << "); }\n";
}

/// template <typename T = Op> class CopyIssueOp : public OpView<T, OpKind::CopyIssue> { ... };
void emitClass(raw_ostream &os, const Record &op) {
  const std::string base = ("OpView<T, OpKind::" + op.getName() + ">").str();
  os << "\n/// " << op.getValueAsString("Name") << ": " << op.getValueAsString("Summary") << ".\n"
     << "template <typename T = Op> class " << op.getName() << "Op : public " << base << " {\npublic:\n"
     << "  explicit " << op.getName() << "Op(T &op) : " << base << "(op) {}\n";
  unsigned index = 0;
  for (const Record *operand : op.getValueAsListOfDefs("Operands")) {
    StringRef name = operand->getValueAsString("Name");
    os << "  static constexpr unsigned k" << upperCamel(name) << " = " << index++ << ";\n"
       << "  auto &" << lowerCamel(name) << "() const { return this->operand(k" << upperCamel(name) << "); }\n";
  }
  for (const Field &field : fieldsOf(op)) {
    emitGetter(os, field);
    emitSetter(os, field);
  }
  os << "};\n";
}

/// struct CopyIssueArgs { Operand dst; ... };
void emitArguments(raw_ostream &os, const Record &op) {
  os << "\n/// What " << op.getValueAsString("Name") << " is made of.\nstruct " << op.getName() << "Args {\n";
  for (const Record *operand : op.getValueAsListOfDefs("Operands"))
    os << "  Operand " << lowerCamel(operand->getValueAsString("Name"))
       << (operand->getValueAsBit("Optional") ? " = {}" : "") << ";\n";
  for (const Field &field : fieldsOf(op))
    os << "  " << field.argument() << " " << field.name << (field.isOptional ? " = {}" : "") << ";\n";
  os << "  Location location = {};\n  std::string note = {};\n};\n";
}

/// inline std::unique_ptr<Op> makeCopyIssue(CopyIssueArgs args) { ... }
void emitMaker(raw_ostream &os, const Record &op) {
  StringRef name = op.getName();
  os << "inline std::unique_ptr<Op> make" << name << "(" << name << "Args args) {\n"
     << "  auto op = std::make_unique<Op>(OpKind::" << name << ");\n  op->operands = {";
  ListSeparator separator;
  for (const Record *operand : op.getValueAsListOfDefs("Operands"))
    os << separator << "args." << lowerCamel(operand->getValueAsString("Name"));
  os << "};\n";
  for (const Field &field : fieldsOf(op)) {
    const std::string argument = "args." + field.name;
    if (field.isOptional)
      os << "  if (" << argument << (field.isText ? ".size()" : field.hasNull() ? "" : ".has_value()") << ")\n  ";
    const std::string value = field.isOptional && !field.hasNull() ? "*" + argument : argument;
    os << "  op->set(" << field.attr << ", "
       << (field.isFlag   ? "int64_t(" + value + ")"
           : field.isEnum ? "toString(" + value + ").str()"
                          : value)
       << ");\n";
  }
  os << "  op->location = std::move(args.location);\n  op->note = std::move(args.note);\n  return op;\n}\n";
}

void emitOpEnums(RecordKeeper &records, raw_ostream &os) {
  std::vector<Record *> types = recordsInOrder(records, "Enum");
  for (const Record *type : types)
    validate(*type);
  emitFileHeader(os, "the enumerations of the attributes of ops, with their spellings.", "Ops.td");
  os << "#pragma once\n\n#include \"llvm/ADT/StringRef.h\"\n\n#include <array>\n#include <cassert>\n#include "
        "<cstdint>\n\n"
     << "namespace fagen::ir {\n\n"
     << "/// The enumerator that is spelled `text`: one of those that the verifier lets through.\n"
     << "template <typename EnumType> EnumType parse(llvm::StringRef text);\n";
  for (const Record *type : types)
    emitEnum(os, *type);
  os << "\n} // namespace fagen::ir\n";
}

void emitOpClasses(RecordKeeper &records, raw_ostream &os) {
  emitFileHeader(os, "the ops of the IR as C++ classes: accessors by name and type, and functions that make them.",
                 "Ops.td");
  os << "#pragma once\n\n#include \"fagen/IR/OpView.h\"\n\nnamespace fagen::ir {\n";
  for (const Record *op : recordsInOrder(records, "Op")) {
    emitClass(os, *op);
    emitArguments(os, *op);
    emitMaker(os, *op);
  }
  os << "\n} // namespace fagen::ir\n";
}

TableGen::Emitter::Opt enums("gen-op-enums", emitOpEnums, "the enumerations of attributes");
TableGen::Emitter::Opt classes("gen-op-classes", emitOpClasses, "the ops of the IR as C++ classes");

} // namespace
} // namespace fagen::tblgen::opClassesEmitter
