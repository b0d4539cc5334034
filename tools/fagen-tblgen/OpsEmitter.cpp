// fagen: writes fagen/IR/Ops.h: the kinds of ops and the table of their operands and attributes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/TableGen/Error.h"
#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::opsEmitter {
namespace {

bool hasAttribute(const Record &op, StringRef name) {
  return any_of(op.getValueAsListOfDefs("Attributes"),
                [&](const Record *attribute) { return attribute->getValueAsString("Name") == name; });
}

/// Names of operands and attributes of one op must differ; ranges must hold something; rows are counted from `row`.
void validate(const Record &op) {
  StringSet<> seen;
  for (const char *list : {"Operands", "Attributes"})
    for (const Record *field : op.getValueAsListOfDefs(list))
      if (!seen.insert(field->getValueAsString("Name")).second)
        PrintFatalError(op.getLoc(),
                        "op '" + op.getValueAsString("Name") + "' has '" + field->getValueAsString("Name") + "' twice");
  for (const Record *attribute : op.getValueAsListOfDefs("Attributes"))
    if (attribute->getValueAsInt("Min") > attribute->getValueAsInt("Max"))
      PrintFatalError(op.getLoc(), "attribute '" + attribute->getValueAsString("Name") + "' admits no value");
  for (const Record *operand : op.getValueAsListOfDefs("Operands")) {
    if (operand->getValueAsListOfDefs("Spaces").empty())
      PrintFatalError(op.getLoc(), "operand '" + operand->getValueAsString("Name") + "' has no space");
    if (operand->getValueAsBit("RowsOfWarps") && !hasAttribute(op, "row"))
      PrintFatalError(op.getLoc(), "operand '" + operand->getValueAsString("Name") +
                                       "' has rows of warps, but the op has no attribute 'row'");
  }
}

void validate(const std::vector<Record *> &ops) {
  StringSet<> names;
  for (const Record *op : ops) {
    validate(*op);
    if (!names.insert(op->getValueAsString("Name")).second)
      PrintFatalError(op->getLoc(), "op '" + op->getValueAsString("Name") + "' is declared twice");
  }
}

/// enum class OpKind : uint8_t { CopyIssue, ... };
void emitKinds(raw_ostream &os, const std::vector<Record *> &ops) {
  os << "\nenum class OpKind : uint8_t {\n";
  for (const Record *op : ops)
    os << "  " << op->getName() << ", ///< " << op->getValueAsString("Name") << "\n";
  os << "};\ninline constexpr unsigned kOpKinds = " << ops.size() << ";\n";
}

/// enum class Attr : uint8_t { Kind, ... }; each name once, in the order of its first use.
void emitAttrs(raw_ostream &os, const std::vector<Record *> &ops) {
  std::vector<StringRef> names;
  for (const Record *op : ops)
    for (const Record *attribute : op->getValueAsListOfDefs("Attributes"))
      if (StringRef name = attribute->getValueAsString("Name"); !is_contained(names, name))
        names.push_back(name);
  os << "\n/// The names of attributes.\nenum class Attr : uint8_t {\n";
  for (StringRef name : names)
    os << "  " << upperCamel(name) << ",\n";
  os << "};\n\ninline constexpr llvm::StringLiteral kAttrNames[] = {";
  ListSeparator separator;
  for (StringRef name : names)
    os << separator << quoted(name);
  os << "};\n";
}

/// The types of the table's rows.
void emitTypes(raw_ostream &os) {
  os << R"(
enum class Effect : uint8_t { Read, Write, ReadWrite, Sync };
enum class AttributeType : uint8_t { Integer, String, Expression };

struct OperandInfo {
  llvm::StringLiteral name;
  Effect effect;
  uint8_t spaces; ///< bit 1 << unsigned(Space): the spaces a buffer may be in
  bool optional;
  bool rowsOfWarps;       ///< row `row` + r is touched by warp r mod warps of the role only
  bool behindWarpBarrier; ///< of the op's own

  bool reads() const { return effect != Effect::Write; }
  bool writes() const { return effect == Effect::Write || effect == Effect::ReadWrite; }
};

struct AttributeInfo {
  Attr attr;
  llvm::StringLiteral name;
  AttributeType type;
  bool optional;
  int64_t min, max;                          ///< of an integer
  llvm::ArrayRef<llvm::StringLiteral> values; ///< of a string; empty: any
  bool mask;                                 ///< an expression that may name q and k
  bool real;                                 ///< a real number, of elements of the op's operands
};
)";
  os << R"(
struct OpInfo {
  OpKind kind;
  llvm::StringLiteral name;
  llvm::ArrayRef<OperandInfo> operands;
  llvm::ArrayRef<AttributeInfo> attributes;
  bool hasBody;
  bool hasSite; ///< waits or synchronises: has a number in the ledger
  llvm::StringLiteral summary;
};
)";
}

StringRef boolOf(const Record &record, StringRef field) { return record.getValueAsBit(field) ? "true" : "false"; }

/// {"dst", Effect::Write, kShared, false, false, false},
void emitOperands(raw_ostream &os, const Record &op) {
  std::vector<Record *> operands = op.getValueAsListOfDefs("Operands");
  if (operands.empty())
    return;
  os << "inline constexpr OperandInfo k" << op.getName() << "Operands[] = {\n";
  for (const Record *operand : operands) {
    os << "    {" << quoted(operand->getValueAsString("Name"))
       << ", Effect::" << operand->getValueAsDef("TheEffect")->getValueAsString("Enumerator") << ", ";
    ListSeparator separator(" | ");
    for (const Record *space : operand->getValueAsListOfDefs("Spaces"))
      os << separator << "k" << space->getValueAsString("Enumerator");
    os << ", " << boolOf(*operand, "Optional") << ", " << boolOf(*operand, "RowsOfWarps") << ", "
       << boolOf(*operand, "BehindWarpBarrier") << "},\n";
  }
  os << "};\n";
}

/// {Attr::Kind, "kind", AttributeType::String, false, 0, 0, kCopyIssueKindValues, false, false},
void emitAttributes(raw_ostream &os, const Record &op) {
  std::vector<Record *> attributes = op.getValueAsListOfDefs("Attributes");
  std::string prefix = ("k" + op.getName() + "Values_").str();
  for (const Record *attribute : attributes) {
    std::vector<StringRef> values = attribute->getValueAsListOfStrings("Values");
    if (values.empty())
      continue;
    os << "inline constexpr llvm::StringLiteral " << prefix << attribute->getValueAsString("Name") << "[] = {";
    ListSeparator separator;
    for (StringRef value : values)
      os << separator << quoted(value);
    os << "};\n";
  }
  if (attributes.empty())
    return;
  os << "inline constexpr AttributeInfo k" << op.getName() << "Attributes[] = {\n";
  for (const Record *attribute : attributes) {
    StringRef name = attribute->getValueAsString("Name");
    bool listed = !attribute->getValueAsListOfStrings("Values").empty();
    os << "    {Attr::" << upperCamel(name) << ", " << quoted(name)
       << ", AttributeType::" << attribute->getValueAsDef("TheType")->getValueAsString("Enumerator") << ", "
       << boolOf(*attribute, "Optional") << ", " << attribute->getValueAsInt("Min") << ", "
       << attribute->getValueAsInt("Max") << ", " << (listed ? prefix + name.str() : "{}") << ", "
       << boolOf(*attribute, "Mask") << ", " << boolOf(*attribute, "Real") << "},\n";
  }
  os << "};\n";
}

/// {OpKind::CopyIssue, "copy_issue", kCopyIssueOperands, kCopyIssueAttributes, false, false, "..."},
void emitRow(raw_ostream &os, const Record &op) {
  bool hasOperands = !op.getValueAsListOfDefs("Operands").empty();
  bool hasAttributes = !op.getValueAsListOfDefs("Attributes").empty();
  os << "    {OpKind::" << op.getName() << ", " << quoted(op.getValueAsString("Name")) << ", "
     << (hasOperands ? ("k" + op.getName() + "Operands").str() : "{}") << ", "
     << (hasAttributes ? ("k" + op.getName() + "Attributes").str() : "{}") << ", " << boolOf(op, "HasBody") << ", "
     << boolOf(op, "HasSite") << ",\n     " << quoted(op.getValueAsString("Summary")) << "},\n";
}

void emitTable(raw_ostream &os, const std::vector<Record *> &ops) {
  os << "\nnamespace table {\n\ninline constexpr uint8_t kGlobal = 1, kShared = 2, kFragment = 4;\n\n";
  for (const Record *op : ops) {
    emitOperands(os, *op);
    emitAttributes(os, *op);
  }
  os << "\ninline constexpr OpInfo kOps[] = {\n";
  for (const Record *op : ops)
    emitRow(os, *op);
  size_t most = 0, mostPlaced = 0;
  for (const Record *op : ops)
    for (const auto &[number, operand] : llvm::enumerate(op->getValueAsListOfDefs("Operands"))) {
      most = std::max(most, number + 1);
      if (llvm::any_of(operand->getValueAsListOfDefs("Spaces"),
                       [](const Record *space) { return space->getName() != "Global"; }))
        mostPlaced = std::max(mostPlaced, number + 1);
    }
  os << "};\n\n} // namespace table\n\n/// Of any op.\ninline constexpr unsigned kMostOperands = " << most
     << ";\n/// No operand from this number on may be a ring: they lie in global memory.\n"
     << "inline constexpr unsigned kMostPlaced = " << mostPlaced << ";\n";
}

void emitOps(RecordKeeper &records, raw_ostream &os) {
  std::vector<Record *> ops = recordsInOrder(records, "Op");
  validate(ops);
  emitFileHeader(os, "the ops of the IR: kinds, operands with effects, attributes.", "Ops.td");
  os << "#pragma once\n\n#include \"llvm/ADT/ArrayRef.h\"\n#include \"llvm/ADT/StringRef.h\"\n\n"
     << "#include <cstdint>\n#include <optional>\n\nnamespace fagen::ir {\n";
  emitKinds(os, ops);
  emitAttrs(os, ops);
  emitTypes(os);
  emitTable(os, ops);
  os << "\ninline const OpInfo &opInfo(OpKind kind) { return table::kOps[unsigned(kind)]; }\n\n"
     << "/// The kind that is spelled `name` in textual IR.\n"
     << "inline std::optional<OpKind> opKindByName(llvm::StringRef name) {\n"
     << "  for (const OpInfo &info : table::kOps)\n    if (info.name == name)\n      return info.kind;\n"
     << "  return std::nullopt;\n}\n\n"
     << "inline llvm::StringRef nameOf(Attr attr) { return kAttrNames[unsigned(attr)]; }\n\n"
     << "} // namespace fagen::ir\n";
}

TableGen::Emitter::Opt registration("gen-ops", emitOps, "the ops of the IR");

} // namespace
} // namespace fagen::tblgen::opsEmitter
