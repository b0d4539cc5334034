// fagen: writes runtime/include/fagen/device/ptx/mma.inc: one device function per mma.sync instruction.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file is checked in, since the device library is used without a compiler build; test/TableGen proves it fresh.

#include "EmitterSupport.h"

#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;
using namespace fagen::tblgen;

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

/// {%4, %5, %6, %7}: `count` operands of the asm from number `first` on.
std::string operandList(int64_t first, int64_t count) {
  std::string result = "{";
  for (int64_t i = 0; i != count; ++i)
    result += (i == 0 ? "%" : ", %") + std::to_string(first + i);
  return result + "}";
}

/// "+f"(d[0]), "+f"(d[1])
void emitConstraints(raw_ostream &os, StringRef constraint, StringRef array, int64_t count) {
  ListSeparator separator;
  for (int64_t i = 0; i != count; ++i)
    os << separator << '"' << constraint << "\"(" << array << "[" << i << "])";
}

void emitWrapper(raw_ostream &os, const Record &instr) {
  int64_t d = instr.getValueAsInt("DRegisters"), a = instr.getValueAsInt("ARegisters");
  bool isFloat = instr.getValueAsDef("Accum")->getValueAsString("Text") == "f32";
  os << "\n// " << instr.getValueAsString("Mnemonic") << "\n"
     << "// PTX ISA, " << instr.getValueAsString("PtxSection") << ".\n"
     << "__device__ __forceinline__ void " << functionName(instr) << "(" << (isFloat ? "float" : "unsigned") << " (&d)["
     << d << "], const unsigned (&a)[" << a << "], unsigned b0, unsigned b1) {\n"
     << "  asm(\"" << instr.getValueAsString("Mnemonic") << " " << operandList(0, d) << ", " << operandList(d, a)
     << ", " << operandList(d + a, 2) << ", " << operandList(0, d) << ";\"\n      : ";
  emitConstraints(os, isFloat ? "+f" : "+r", "d", d);
  os << "\n      : ";
  emitConstraints(os, "r", "a", a);
  os << ", \"r\"(b0), \"r\"(b1));\n}\n";
}

void emitMmaWrappers(RecordKeeper &records, raw_ostream &os) {
  emitFileHeader(os, "matrix instructions of one warp, D = A * B + D, one instruction a function.", "MmaInstrs.td");
  os << "// A is row-major, B column-major; MmaInstrs.td says which lane holds which element.\n";
  for (const Record *instr : recordsInOrder(records, "MmaM16N8K16"))
    if (instr->getValueAsBit("Implemented"))
      emitWrapper(os, *instr);
}

TableGen::Emitter::Opt registration("gen-mma-wrappers", emitMmaWrappers, "device functions of mma.sync instructions");

} // namespace
