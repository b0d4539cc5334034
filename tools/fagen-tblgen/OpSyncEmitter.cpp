// fagen: writes fagen/IR/OpSync.h: how ops synchronise.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/TableGen/Error.h"
#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::opSyncEmitter {
namespace {

using Rows = std::vector<const Record *>;

Rows rowsOf(const Record &op, const std::vector<Record *> &all) {
  Rows rows;
  for (const Record *row : all)
    if (row->getValueAsDef("TheOp") == &op)
      rows.push_back(row);
  return rows;
}

std::vector<StringRef> valuesOf(const Record &op, StringRef name) {
  for (const Record *attribute : op.getValueAsListOfDefs("Attributes"))
    if (attribute->getValueAsString("Name") == name)
      return attribute->getValueAsListOfStrings("Values");
  return {};
}

/// One row; or one for each value of one attribute, and no other. They are put into the order of the values.
void validate(const Record &op, Rows &rows) {
  const StringRef attribute = rows.front()->getValueAsString("Attribute");
  const std::string name = ("op '" + op.getValueAsString("Name") + "'").str();
  if (attribute.empty()) {
    if (rows.size() > 1)
      PrintFatalError(rows[1]->getLoc(), name + " synchronises in two ways");
    return;
  }
  Rows sorted;
  for (StringRef value : valuesOf(op, attribute)) {
    auto isOfValue = [&](const Record *row) {
      return row->getValueAsString("Attribute") == attribute && row->getValueAsString("Value") == value;
    };
    auto row = find_if(rows, isOfValue);
    if (row == rows.end())
      PrintFatalError(rows.front()->getLoc(),
                      name + " does not say how it synchronises where " + attribute + " is '" + value + "'");
    sorted.push_back(*row);
  }
  if (sorted.size() != rows.size())
    PrintFatalError(rows.back()->getLoc(), name + " has " + Twine(rows.size()) + " ways to synchronise for " +
                                               Twine(sorted.size()) + " values of '" + attribute + "'");
  rows = sorted;
}

/// enum class Means : uint8_t { Nothing, ... };
void emitEnum(raw_ostream &os, StringRef name, StringRef doc, const std::vector<Record *> &records) {
  os << "\n/// " << doc << "\nenum class " << name << " : uint8_t {\n";
  for (const Record *record : records)
    os << "  " << record->getName() << ", ///< " << record->getValueAsString("Doc") << "\n";
  os << "};\n";
}

/// {Agent::Threads, Means::Nothing, Means::Phases, Means::Nothing, Means::AsyncFence, true, false},
void emitRow(raw_ostream &os, const Record &row) {
  os << "    {Agent::" << row.getValueAsDef("TheAgent")->getName();
  for (const char *field : {"Done", "Releases", "Acquires", "NeedsFence"})
    os << ", Means::" << row.getValueAsDef(field)->getName();
  for (const char *field : {"ByActor", "Together"})
    os << ", " << (row.getValueAsBit(field) ? "true" : "false");
  os << "},\n";
}

constexpr const char *kTypes = R"(
struct SyncInfo {
  Agent agent = Agent::Threads;
  Means done = Means::Nothing;          ///< what says that it is done
  Means releases = Means::Nothing;      ///< by what it tells others how far its threads have come
  Means acquires = Means::Nothing;      ///< by what its threads learn of others
  Means needsFence = Means::AsyncFence; ///< between its accesses by threads and later ones of the async proxy
  bool isByActor = false;  ///< done by those that `by` names, by one thread of the role where that does not say
  bool isTogether = false; ///< the lanes of a warp come to it together, where the family is one of warps
};

namespace table {

/// A row; or one for each value of the attribute `by`.
struct OpSync {
  std::optional<Attr> by;
  llvm::ArrayRef<SyncInfo> rows;
};

inline constexpr SyncInfo kByThreads[] = {{}};
)";

void emitOpSync(RecordKeeper &records, raw_ostream &os) {
  const std::vector<Record *> ops = recordsInOrder(records, "Op"), all = recordsInOrder(records, "SyncOf");
  emitFileHeader(os, "how ops synchronise.", "Ops.td");
  os << "#pragma once\n\n#include \"fagen/IR/Ops.h\"\n\nnamespace fagen::ir {\n";
  emitEnum(os, "Agent", "Who carries out an op.", recordsInOrder(records, "Agent"));
  emitEnum(os, "Means", "By what threads learn of each other, and of what goes on alongside them.",
           recordsInOrder(records, "Means"));
  os << kTypes;
  std::string table;
  for (const Record *op : ops) {
    Rows rows = rowsOf(*op, all);
    if (rows.empty()) {
      table += "    {std::nullopt, kByThreads},\n";
      continue;
    }
    validate(*op, rows);
    const StringRef by = rows.front()->getValueAsString("Attribute");
    const std::string name = ("k" + op->getName() + "Sync").str();
    os << "inline constexpr SyncInfo " << name << "[] = {\n";
    for (const Record *row : rows)
      emitRow(os, *row);
    os << "};\n";
    table += "    {" + (by.empty() ? "std::nullopt" : "Attr::" + upperCamel(by)) + ", " + name + "},\n";
  }
  os << "inline constexpr OpSync kSync[] = {\n" << table << "};\n\n} // namespace table\n\n} // namespace fagen::ir\n";
}

TableGen::Emitter::Opt registration("gen-op-sync", emitOpSync, "how ops synchronise");

} // namespace
} // namespace fagen::tblgen::opSyncEmitter
