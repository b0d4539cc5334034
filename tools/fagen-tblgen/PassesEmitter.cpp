// fagen: writes fagen/Passes/PassTable.h, name, summary and contract of every pass, and Passes.inc: their functions,
// and the pipeline. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/TableGen/Error.h"
#include "llvm/TableGen/TableGenBackend.h"

#include <algorithm>

using namespace llvm;

namespace fagen::tblgen::passesEmitter {
namespace {

void validate(const std::vector<Record *> &passes) {
  StringSet<> names;
  for (const Record *pass : passes) {
    if (!names.insert(pass->getValueAsString("Name")).second)
      PrintFatalError(pass->getLoc(), "pass '" + pass->getValueAsString("Name") + "' is declared twice");
    if (pass->getValueAsBit("InPipeline") && pass->getValueAsString("Place").empty())
      PrintFatalError(pass->getLoc(), "Place of pass '" + pass->getValueAsString("Name") +
                                          "' is empty; it says why the pass stands where it stands");
  }
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

/// hold-query: holdQuery
std::string functionOf(const Record &pass) {
  std::string name = pass.getValueAsString("Name").str();
  std::replace(name.begin(), name.end(), '-', '_');
  return lowerCamel(name);
}

/// {"hold-query", holdQuery, hasRoles, false, Phase::Split, Phase::Split},
void emitEntries(const std::vector<Record *> &passes, StringRef array, bool inPipeline, raw_ostream &os) {
  os << "constexpr PassEntry " << array << "[] = {\n";
  for (const Record *pass : passes)
    if (pass->getValueAsBit("InPipeline") == inPipeline)
      os << "    {" << quoted(pass->getValueAsString("Name")) << ", " << functionOf(*pass) << ", "
         << pass->getValueAsDef("For")->getValueAsString("Function") << ", "
         << (pass->getValueAsBit("NeedsVariant") ? "true" : "false") << ", Phase::" << pass->getValueAsString("From")
         << ", Phase::" << pass->getValueAsString("To") << "},\n";
  os << "};\n";
}

void emitPipeline(RecordKeeper &records, raw_ostream &os) {
  const std::vector<Record *> passes = recordsInOrder(records, "Pass");
  validate(passes);
  emitFileHeader(os, "the passes' functions, and the pipeline.", "Passes.td");
  {
    Guard guard(os, "GET_PASS_FUNCTIONS");
    for (const Record *pass : passes)
      os << "bool " << functionOf(*pass) << "(ir::Kernel &kernel, PassContext &context);\n";
  }
  Guard guard(os, "GET_PIPELINE");
  emitEntries(passes, "kPipeline", true, os);
  emitEntries(passes, "kByName", false, os);
}

TableGen::Emitter::Opt registration("gen-passes", emitPasses, "the table of passes");
TableGen::Emitter::Opt pipeline("gen-pipeline", emitPipeline, "the passes' functions, and the pipeline");

} // namespace
} // namespace fagen::tblgen::passesEmitter
