// fagen: writes fagen/Passes/PassTable.h: name, summary and contract of every pass.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/TableGen/Error.h"
#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::passesEmitter {
namespace {

void validate(const std::vector<Record *> &passes) {
  StringSet<> names;
  for (const Record *pass : passes)
    if (!names.insert(pass->getValueAsString("Name")).second)
      PrintFatalError(pass->getLoc(), "pass '" + pass->getValueAsString("Name") + "' is declared twice");
}

void emitPasses(RecordKeeper &records, raw_ostream &os) {
  std::vector<Record *> passes = recordsInOrder(records, "Pass");
  validate(passes);
  emitFileHeader(os, "the table of passes.", "Passes.td");
  os << "#pragma once\n\n#include \"llvm/ADT/StringRef.h\"\n\nnamespace fagen {\n\n"
     << "struct PassInfo {\n  llvm::StringLiteral name;\n  llvm::StringLiteral summary;\n  llvm::StringLiteral needs;\n"
     << "  llvm::StringLiteral ensures;\n  bool inPipeline; ///< else it is only run by name\n};\n\n"
     << "inline constexpr PassInfo kPasses[] = {\n";
  for (const Record *pass : passes)
    os << "    {" << quoted(pass->getValueAsString("Name")) << ", " << quoted(pass->getValueAsString("Summary"))
       << ",\n     " << quoted(pass->getValueAsString("Needs")) << ", " << quoted(pass->getValueAsString("Ensures"))
       << ", " << (pass->getValueAsBit("InPipeline") ? "true" : "false") << "},\n";
  os << "};\n\n} // namespace fagen\n";
}

TableGen::Emitter::Opt registration("gen-passes", emitPasses, "the table of passes");

} // namespace
} // namespace fagen::tblgen::passesEmitter
