// fagen: writes runtime/include/fagen/device/ptx/mma.h: one device function per mma.sync instruction.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file is checked in, since the device library is used without a compiler build; test/TableGen proves it fresh.

#include "AsmText.h"
#include "EmitterSupport.h"

#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::mmaWrappersEmitter {
namespace {

/// mma_m16n8k16_f32_f16
std::string functionName(const Record &instr) {
  std::string result;
  raw_string_ostream os(result);
  os << "mma_m" << instr.getValueAsInt("M") << "n" << instr.getValueAsInt("N") << "k" << instr.getValueAsInt("K") << "_"
     << instr.getValueAsDef("Accum")->getValueAsString("Text") << "_"
     << instr.getValueAsDef("Operand")->getValueAsString("Text");
  return result;
}

/// "+f"(d[0]), "+f"(d[1])
void emitConstraints(raw_ostream &os, StringRef constraint, StringRef array, int64_t count) {
  ListSeparator separator;
  for (int64_t i = 0; i != count; ++i)
    os << separator << '"' << constraint << "\"(" << array << "[" << i << "])";
}

void emitWrapper(raw_ostream &os, const Record &instr) {
  int64_t d = instr.getValueAsInt("DRegisters"), a = instr.getValueAsInt("ARegisters");
  StringRef operand = instr.getValueAsDef("Operand")->getValueAsString("Text");
  StringRef accum = instr.getValueAsDef("Accum")->getValueAsString("Text");
  std::string head = "__device__ __forceinline__ void " + functionName(instr) + "(";
  os << "\n/// D += A B for one m" << instr.getValueAsInt("M") << "n" << instr.getValueAsInt("N") << "k"
     << instr.getValueAsInt("K") << " tile of " << operand << " with " << accum << " accumulators.\n"
     << "/// PTX ISA, " << instr.getValueAsString("PtxSection") << ".\n"
     << head << (accum == "f32" ? "float" : "unsigned") << " (&d)[" << d << "], const unsigned (&a)[" << a
     << "], unsigned b0, unsigned b1,\n"
     << std::string(head.size(), ' ') << "Site = Site::here()) {\n"
     << "  asm(\"" << instr.getValueAsString("Mnemonic") << " \"\n      \"" << operandList(0, d) << ", "
     << operandList(d, a) << ", " << operandList(d + a, 2) << ", " << operandList(0, d) << ";\"\n      : ";
  emitConstraints(os, accum == "f32" ? "+f" : "+r", "d", d);
  os << "\n      : ";
  emitConstraints(os, "r", "a", a);
  os << ", \"r\"(b0), \"r\"(b1));\n}\n";
}

void emitMmaWrappers(RecordKeeper &records, raw_ostream &os) {
  emitFileHeader(os, "matrix instructions of one warp, one instruction a function.", "MmaInstrs.td");
  os << "//\n// A is row-major, B column-major; MmaInstrs.td says which lane holds which element.\n"
     << "#pragma once\n\n#include <fagen/device/ptx/site.h>\n#include <fagen/device/types.h>\n\n"
     << "namespace fagen::device::ptx {\n";
  for (const Record *instr : recordsInOrder(records, "MmaM16N8K16"))
    if (instr->getValueAsBit("Implemented"))
      emitWrapper(os, *instr);
  os << "\n} // namespace fagen::device::ptx\n";
}

TableGen::Emitter::Opt registration("gen-mma-wrappers", emitMmaWrappers, "device functions of mma.sync instructions");

} // namespace
} // namespace fagen::tblgen::mmaWrappersEmitter
