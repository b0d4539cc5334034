// fagen: writes runtime/include/fagen/device/ptx/wgmma.h and wgmma_bytes.h: one device function per wgmma instruction
// and kind of A. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The files are checked in, since the device library is used without a compiler build; test/TableGen proves them fresh.
// Products of bytes have a file of their own: no kernel without them reads their text.
// Functions of one pair of types share a name; the size of the accumulator says which N is meant.

#include "AsmText.h"
#include "EmitterSupport.h"

#include "llvm/TableGen/TableGenBackend.h"

using namespace llvm;

namespace fagen::tblgen::wgmmaWrappersEmitter {
namespace {

constexpr size_t kAsmIndent = 15; // of what follows asm volatile(

std::vector<std::string> operator+(std::vector<std::string> list, const std::vector<std::string> &more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

/// Whether operands may run along K or across it, as constants of the instruction say.
bool hasMajors(const Record &instr) { return instr.getValueAsBit("HasMajors"); }

/// The instruction's PTX with N in place, in pieces for lines of their own; `isShared` says where A is, `d` counts the
/// accumulators.
std::vector<std::string> instruction(const Record &instr, int64_t n, int64_t d, bool isShared) {
  std::string mnemonic = instr.getValueAsString("Mnemonic").str();
  const std::string shape = "nNk";
  mnemonic.replace(mnemonic.find(shape), shape.size(), "n" + std::to_string(n) + "k");
  const int64_t aCount = isShared ? 1 : instr.getValueAsInt("ARegisters");
  const int64_t b = d + aCount, accumulate = b + 1, majors = accumulate + 1;
  const auto number = [](int64_t i) { return "%" + std::to_string(i); };
  std::string listOfMajors;
  for (int64_t i = 0, count = hasMajors(instr) ? 1 + isShared : 0; i != count; ++i)
    listOfMajors += ", " + number(majors + i);
  return {"{\\n\\t.reg .pred p;\\n\\tsetp.ne.b32 p, " + number(accumulate) + ", 0;\\n\\t", mnemonic + " ",
          operandList(0, d) + ", ",
          (isShared ? number(d) : operandList(d, aCount)) + ", " + number(b) + ", p, 1, 1" + listOfMajors + ";\\n\\t}"};
}

void emitWrapper(raw_ostream &os, const Record &instr, int64_t n, bool isShared) {
  const int64_t d = instr.getValueAsInt("DRegisters") * (n / instr.getValueAsInt("N"));
  const StringRef operand = instr.getValueAsDef("Operand")->getValueAsString("Text");
  const int64_t aCount = instr.getValueAsInt("ARegisters");
  const std::string name = ("wgmma_" + instr.getValueAsDef("Accum")->getValueAsString("Text") + "_" + operand).str();
  const std::string head = "__device__ __forceinline__ void " + name + "(float (&d)[" + std::to_string(d) + "], ";
  const std::string indent(head.find('(') + 1, ' ');
  const std::string operands =
      (isShared ? "MatrixDescriptor a" : "const unsigned (&a)[" + std::to_string(aCount) + "]") +
      std::string(", MatrixDescriptor b,");
  os << "\n/// m" << instr.getValueAsInt("M") << "n" << n << "k" << instr.getValueAsInt("K") << ", A in "
     << (isShared ? "shared memory" : "registers") << ".\n";
  if (hasMajors(instr))
    os << "template <" << (isShared ? "Major kA, " : "") << "Major kB>\n";
  os << head << operands;
  const std::string flag = " bool accumulate,";
  if (head.size() + operands.size() + flag.size() <= kColumns)
    os << flag << "\n" << indent;
  else
    os << "\n" << indent << flag.substr(1) << " ";
  os << "Site = Site::here()) {\n  asm volatile(";
  const std::vector<std::string> pieces = instruction(instr, n, d, isShared);
  for (size_t i = 0; i != pieces.size(); ++i) {
    os << (i == 0 ? "" : std::string(kAsmIndent, ' '));
    emitLiterals(os, kAsmIndent, pieces[i]);
  }
  emitList(os, kAsmIndent, constraints("+f", "d", d));
  const std::vector<std::string> a =
      isShared ? std::vector<std::string>{"\"l\"(a.bits)"} : constraints("r", "a", aCount);
  std::vector<std::string> rest = {"\"l\"(b.bits)", "\"r\"(static_cast<int>(accumulate))"};
  if (hasMajors(instr) && isShared)
    rest.push_back("\"n\"(static_cast<int>(kA))");
  if (hasMajors(instr))
    rest.push_back("\"n\"(static_cast<int>(kB))");
  emitList(os, kAsmIndent, a + rest);
  emitList(os, kAsmIndent, {"\"memory\""}, ");");
  os << "}\n";
}

void emitWrappers(const RecordKeeper &records, StringRef instrs, raw_ostream &os) {
  os << "#pragma once\n\n#include <fagen/device/ptx/matrix_descriptor.h>\n#include <fagen/device/ptx/site.h>\n\n"
     << "namespace fagen::device::ptx {\n";
  for (const Record *instr : recordsInOrder(records, instrs)) {
    if (instr->getValueAsDef("Accum")->getValueAsString("Text") != "f32")
      continue;
    for (int64_t n = instr->getValueAsInt("N"); n <= instr->getValueAsInt("NMax"); n += instr->getValueAsInt("N"))
      for (bool isShared : {true, false})
        emitWrapper(os, *instr, n, isShared);
  }
  os << "\n} // namespace fagen::device::ptx\n";
}

void emitWgmmaWrappers(RecordKeeper &records, raw_ostream &os) {
  emitFileHeader(os, "products of a warp group by wgmma, one instruction a function.", "MmaInstrs.td");
  os << "//\n// D = A B, plus D if `accumulate`, with f32 accumulators; A is 64 x 16, B 16 x N, N twice the size of "
        "`d`. "
        "All four\n"
     << "// warps come with the same descriptors; warp w of the group holds rows 16w to 16w + 15 of D and, in "
        "registers, "
        "of A in\n"
     << "// the fragments of mma.m16n8k16, that of D for each 8 columns after the other. The product runs on after "
        "the "
        "call;\n"
     << "// ptx/warpgroup.h says what must stand around it. sm_90a.\n";
  emitWrappers(records, "WgmmaM64K16", os);
}

void emitWgmmaByteWrappers(RecordKeeper &records, raw_ostream &os) {
  emitFileHeader(os, "products of bytes of a warp group by wgmma, one instruction a function.", "MmaInstrs.td");
  os << "//\n// As those of ptx/wgmma.h, but that A is 64 x 32 and B 32 x N, and both run along K. Register i of A "
        "holds row g (g + 8\n"
     << "// where i is odd) at 16 (i / 2) + 4t to 16 (i / 2) + 4t + 3 of K, where g = lane / 4 and t = lane % 4. "
        "sm_90a.\n"
     << "//\n// The tensor cores keep 13 bits of a sum (docs/internals/Arithmetic.md).\n";
  emitWrappers(records, "WgmmaM64K32", os);
}

TableGen::Emitter::Opt registration("gen-wgmma-wrappers", emitWgmmaWrappers, "device functions of wgmma instructions");
TableGen::Emitter::Opt ofBytes("gen-wgmma-byte-wrappers", emitWgmmaByteWrappers,
                               "device functions of wgmma instructions on bytes");

} // namespace
} // namespace fagen::tblgen::wgmmaWrappersEmitter
