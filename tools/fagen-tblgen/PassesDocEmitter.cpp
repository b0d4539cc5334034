// fagen: writes docs/internals/Passes.md: what each pass does, needs and ensures, and where it stands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"

#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::passesDocEmitter {
namespace {

void emitPass(raw_ostream &os, const Record &pass) {
  os << "\n### " << pass.getValueAsString("Name") << "\n\n"
     << pass.getValueAsString("Summary") << ".\n\n"
     << "* needs: " << pass.getValueAsString("Needs") << "\n"
     << "* ensures: " << pass.getValueAsString("Ensures") << "\n"
     << "* for: " << pass.getValueAsDef("For")->getValueAsString("Doc") << "\n";
  if (const StringRef place = pass.getValueAsString("Place"); !place.empty())
    os << "* why there: " << place << "\n";
}

void emitPassesDoc(RecordKeeper &records, raw_ostream &os) {
  os << "# Passes\n\nGenerated from Passes.td by fagen-tblgen. Do not edit.\n";
  for (bool inPipeline : {true, false}) {
    os << (inPipeline ? "\n## In the pipeline, in order\n" : "\n## Run by name\n");
    for (const Record *pass : recordsInOrder(records, "Pass"))
      if (pass->getValueAsBit("InPipeline") == inPipeline)
        emitPass(os, *pass);
  }
}

TableGen::Emitter::Opt registration("gen-passes-doc", emitPassesDoc, "docs/internals/Passes.md");

} // namespace
} // namespace fagen::tblgen::passesDocEmitter
