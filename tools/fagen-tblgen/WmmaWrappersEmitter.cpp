// fagen: writes runtime/include/fagen/device/ptx/wmma.h: loads, products and stores of wmma, one instruction a
// function. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file is checked in, since the device library is used without a compiler build; test/TableGen proves it fresh.

#include "AsmText.h"
#include "EmitterSupport.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::wmmaWrappersEmitter {
namespace {

constexpr const char *kOrders[] = {"row", "col"};

/// One kind of fragment: how many registers of which C++ type and constraint, and the type's name in PTX.
struct Fragment {
  std::string type;
  int64_t registers;
  bool isFloat;
  std::string declaration(StringRef name) const {
    return std::string(isFloat ? "float" : "unsigned") + " (&" + name.str() + ")[" + std::to_string(registers) + "]";
  }
};

Fragment operandOf(const Record &instr, StringRef registers) {
  return {instr.getValueAsDef("Operand")->getValueAsString("Text").str(), instr.getValueAsInt(registers), false};
}

Fragment accumulatorOf(const Record &instr) {
  StringRef type = instr.getValueAsDef("Accum")->getValueAsString("Text");
  return {type.str(), instr.getValueAsInt("DRegisters"), type == "f32"};
}

/// "+f"(d[0]), "+f"(d[1])
std::vector<std::string> constraintsOf(StringRef prefix, const Fragment &fragment, StringRef array) {
  return constraints(prefix.str() + (fragment.isFloat ? "f" : "r"), array, fragment.registers);
}

std::vector<std::string> operator+(std::vector<std::string> list, const std::vector<std::string> &more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

constexpr size_t kAsmIndent = 6, kVolatileIndent = 15; // of the lists of asm and of asm volatile

void emitHead(raw_ostream &os, const std::string &name, const std::string &parameters) {
  const std::string head = "__device__ __forceinline__ void " + name + "(";
  os << head << parameters << ",\n" << std::string(head.size(), ' ') << "Site = Site::here()) {\n";
}

void emitLoad(raw_ostream &os, char matrix, const Fragment &fragment, StringRef order) {
  const StringRef name(&matrix, 1);
  os << "\n/// " << char(matrix - 'a' + 'A') << " of " << fragment.type << ", its "
     << (order == "row" ? "rows" : "columns") << " `stride` elements apart. PTX ISA: wmma.load." << name << ".\n";
  emitHead(os, ("wmma_load_" + name + "_" + fragment.type + (matrix == 'a' ? "" : "_" + order)).str(),
           fragment.declaration(name) + ", unsigned address, unsigned stride");
  os << "  asm volatile(\"wmma.load." << name << ".sync.aligned." << order << ".m16n16k16.shared." << fragment.type
     << " " << operandList(0, fragment.registers) << ", [%" << fragment.registers << "], %" << fragment.registers + 1
     << ";\"\n";
  emitList(os, kVolatileIndent, constraintsOf("=", fragment, name));
  emitList(os, kVolatileIndent, {"\"r\"(address)", "\"r\"(stride)"});
  emitList(os, kVolatileIndent, {"\"memory\""}, ");");
  os << "}\n";
}

void emitStore(raw_ostream &os, const Fragment &fragment) {
  os << "\n/// D of " << fragment.type << ", row-major, its rows `stride` elements apart. PTX ISA: wmma.store.d.\n";
  emitHead(os, "wmma_store_d_" + fragment.type,
           "unsigned address, const " + fragment.declaration("d") + ", unsigned stride");
  os << "  asm volatile(\"wmma.store.d.sync.aligned.row.m16n16k16.shared." << fragment.type << " [%0], "
     << operandList(1, fragment.registers) << ", %" << fragment.registers + 1 << ";\"\n";
  emitList(os, kVolatileIndent, {});
  emitList(os, kVolatileIndent,
           std::vector<std::string>{"\"r\"(address)"} + constraintsOf("", fragment, "d") +
               std::vector<std::string>{"\"r\"(stride)"});
  emitList(os, kVolatileIndent, {"\"memory\""}, ");");
  os << "}\n";
}

void emitProduct(raw_ostream &os, const Record &instr, StringRef order) {
  const Fragment a = operandOf(instr, "ARegisters"), b = operandOf(instr, "BRegisters"), d = accumulatorOf(instr);
  std::string mnemonic = instr.getValueAsString("Mnemonic").str();
  const std::string column = ".row.col.";
  mnemonic.replace(mnemonic.find(column), column.size(), (".row." + order + ".").str());
  const std::string result = operandList(0, d.registers);
  os << "\n/// D += A B of " << a.type << " with " << d.type << " accumulators, B loaded by "
     << (order == "row" ? "rows" : "columns") << ".\n/// PTX ISA, " << instr.getValueAsString("PtxSection") << ".\n";
  emitHead(os, ("wmma_mma_" + StringRef(d.type) + "_" + a.type + "_" + order).str(),
           d.declaration("d") + ", const " + a.declaration("a") + ", const " + b.declaration("b"));
  os << "  asm(\"" << mnemonic << " \"\n      \"" << result << ", \"\n      \"" << operandList(d.registers, a.registers)
     << ", \"\n      \"" << operandList(d.registers + a.registers, b.registers) << ", \"\n      \"" << result
     << ";\"\n";
  emitList(os, kAsmIndent, constraintsOf("+", d, "d"));
  emitList(os, kAsmIndent, constraintsOf("", a, "a") + constraintsOf("", b, "b"), ");");
  os << "}\n";
}

/// Instructions may share a fragment: each load and store is written once.
void emitWmmaWrappers(RecordKeeper &records, raw_ostream &os) {
  emitFileHeader(os, "matrix products of one warp by wmma m16n16k16, one instruction a function.", "MmaInstrs.td");
  os << "//\n// 16 x 16 matrices in shared memory, by the address of their first element: a multiple of 32 bytes, "
        "`stride` a\n"
     << "// multiple of 16 bytes, both the same in all lanes. Which lane holds which element is not specified: a "
        "fragment may\n"
     << "// only be loaded, multiplied, stored, and changed where every element is treated alike.\n"
     << "#pragma once\n\n#include <fagen/device/ptx/site.h>\n\nnamespace fagen::device::ptx {\n";
  SetVector<StringRef> operands, accumulators;
  std::vector<Record *> instrs = recordsInOrder(records, "Wmma16");
  erase_if(instrs, [](const Record *instr) { return !instr->getValueAsBit("Implemented"); });
  for (const Record *instr : instrs)
    if (operands.insert(instr->getValueAsDef("Operand")->getValueAsString("Text"))) {
      emitLoad(os, 'a', operandOf(*instr, "ARegisters"), "row");
      for (const char *order : kOrders)
        emitLoad(os, 'b', operandOf(*instr, "BRegisters"), order);
    }
  for (const Record *instr : instrs)
    for (const char *order : kOrders)
      emitProduct(os, *instr, order);
  for (const Record *instr : instrs)
    if (accumulators.insert(instr->getValueAsDef("Accum")->getValueAsString("Text")))
      emitStore(os, accumulatorOf(*instr));
  os << "\n} // namespace fagen::device::ptx\n";
}

TableGen::Emitter::Opt registration("gen-wmma-wrappers", emitWmmaWrappers, "device functions of wmma instructions");

} // namespace
} // namespace fagen::tblgen::wmmaWrappersEmitter
