// fagen: writes fagen/Target/MmaInstrs.inc: the table of matrix instructions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "EmitterSupport.h"
#include "GoesWith.h"

#include "llvm/TableGen/Error.h"
#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::mmaInstrsEmitter {
namespace {

void validate(const Record &instr) {
  if (instr.getValueAsInt("SlabRows") <= 0 || instr.getValueAsInt("SlabWarps") <= 0)
    PrintFatalError(instr.getLoc(), "a slab has at least one row and one warp");
  if (!instr.getValueAsString("Mnemonic").empty() && instr.getValueAsString("PtxSection").empty())
    PrintFatalError(instr.getLoc(), "an instruction with a mnemonic cites its PTX ISA section");
}

/// {.name = "MmaM16N8K16F32F16", .family = Mma::MmaSync, ...},
void emitInstr(raw_ostream &os, const Record &instr) {
  static constexpr std::pair<const char *, const char *> kNumbers[] = {{"m", "M"},
                                                                       {"n", "N"},
                                                                       {"nMax", "NMax"},
                                                                       {"k", "K"},
                                                                       {"slabRows", "SlabRows"},
                                                                       {"slabWarps", "SlabWarps"},
                                                                       {"keyMultiple", "KeyMultiple"},
                                                                       {"headDimMultiple", "HeadDimMultiple"},
                                                                       {"aRegisters", "ARegisters"},
                                                                       {"bRegisters", "BRegisters"},
                                                                       {"dRegisters", "DRegisters"}};
  os << "{.name = " << quoted(instr.getName()) << ",\n"
     << " .family = Mma::" << instr.getValueAsDef("Family")->getValueAsString("Enumerator") << ",\n"
     << " .operand = DType::" << instr.getValueAsDef("Operand")->getValueAsString("Enumerator") << ",\n"
     << " .accum = DType::" << instr.getValueAsDef("Accum")->getValueAsString("Enumerator") << ",\n";
  for (auto [field, value] : kNumbers)
    os << " ." << field << " = " << instr.getValueAsInt(value) << ",\n";
  os << " .mnemonic = " << quoted(instr.getValueAsString("Mnemonic")) << ",\n"
     << " .hasMajors = " << (instr.getValueAsBit("HasMajors") ? "true" : "false")
     << ", .leftInRegisters = " << (instr.getValueAsBit("LeftInRegisters") ? "true" : "false")
     << ", .leftInShared = " << (instr.getValueAsBit("LeftInShared") ? "true" : "false")
     << ", .leftMayBeSums = " << (instr.getValueAsBit("LeftMayBeSums") ? "true" : "false") << ",\n"
     << " .needs = " << featureMask(instr.getValueAsListOfDefs("Needs")) << ",\n"
     << " .implemented = " << (instr.getValueAsBit("Implemented") ? "true" : "false") << "},\n";
}

/// {.family = Mma::Wgmma, .isCollective = true, ...},
void emitFamily(raw_ostream &os, const Record &family) {
  auto flag = [&](StringRef field) { return family.getValueAsBit(field) ? "true" : "false"; };
  os << "{.family = Mma::" << family.getValueAsDef("Family")->getValueAsString("Enumerator")
     << ", .isCollective = " << flag("Collective") << ", .isAsynchronous = " << flag("Asynchronous")
     << ", .keepsResults = " << flag("KeepsResults") << ", .widensRight = " << flag("WidensRight")
     << ", .unitWarps = " << family.getValueAsInt("UnitWarps")
     << ",\n .abt = " << quoted(family.getValueAsString("Abt"))
     << ", .addAbt = " << quoted(family.getValueAsString("AddAbt"))
     << ", .ab = " << quoted(family.getValueAsString("Ab")) << ", .addAb = " << quoted(family.getValueAsString("AddAb"))
     << ", .atb = " << quoted(family.getValueAsString("Atb"))
     << ", .addAtb = " << quoted(family.getValueAsString("AddAtb"))
     << ",\n .async = " << quoted(family.getValueAsString("Async")) << ", .headers = {";
  ListSeparator separator;
  for (StringRef header : family.getValueAsListOfStrings("Headers"))
    os << separator << quoted(header);
  os << "}, .takes = " << goesWithList(family.getRecords(), family.getValueAsListOfDefs("Values")) << "},\n";
}

void emitMmaInstrs(RecordKeeper &records, raw_ostream &os) {
  std::vector<Record *> instrs = recordsInOrder(records, "MmaInstr");
  for (const Record *instr : instrs)
    validate(*instr);
  emitFileHeader(os, "the table of matrix instructions.", "MmaInstrs.td");
  {
    Guard guard(os, "GET_MMA_FAMILY_TABLE");
    for (const Record *family : recordsInOrder(records, "MmaFamily"))
      emitFamily(os, *family);
  }
  Guard guard(os, "GET_MMA_INSTR_TABLE");
  for (const Record *instr : instrs)
    emitInstr(os, *instr);
}

TableGen::Emitter::Opt registration("gen-mma-instrs", emitMmaInstrs, "the table of matrix instructions");

} // namespace
} // namespace fagen::tblgen::mmaInstrsEmitter
