// fagen: lookup in the table of matrix instructions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"

#include <cassert>

using namespace llvm;

namespace fagen {

static constexpr MmaInstrInfo kMmaInstrs[] = {
#define GET_MMA_INSTR_TABLE
#include "fagen/Target/MmaInstrs.inc"
};

static const MmaFamilyInfo kMmaFamilies[] = {
#define GET_MMA_FAMILY_TABLE
#include "fagen/Target/MmaInstrs.inc"
};

const GoesWith *MmaFamilyInfo::taken(OptionKey key) const {
  const auto found = find_if(takes, [&](const GoesWith &values) { return values.key == key; });
  return found == takes.end() ? nullptr : &*found;
}

ArrayRef<MmaFamilyInfo> allMmaFamilies() { return kMmaFamilies; }

const MmaFamilyInfo &mmaFamily(Mma family) {
  const MmaFamilyInfo *found = find_if(kMmaFamilies, [&](const MmaFamilyInfo &info) { return info.family == family; });
  assert(found != std::end(kMmaFamilies) && "every family has a record");
  return *found;
}

const MmaFamilyInfo &mmaFamily(StringRef name) {
  const std::optional<Mma> family = parseMma(name);
  assert(family && "the verifier knows all families");
  return mmaFamily(*family);
}

const MmaFamilyInfo &plainFamily() { return mmaFamily(Mma::Scalar); }
const MmaFamilyInfo &fallbackFamily() { return mmaFamily(Mma::MmaSync); }

ArrayRef<MmaInstrInfo> allMmaInstrs() { return kMmaInstrs; }

const MmaInstrInfo *findMmaInstr(Mma family, DType operand, DType accum) {
  const MmaInstrInfo *found = find_if(kMmaInstrs, [&](const MmaInstrInfo &instr) {
    return instr.family == family && instr.operand == operand && instr.accum == accum;
  });
  return found == std::end(kMmaInstrs) ? nullptr : found;
}

const MmaInstrInfo &firstMmaInstr(Mma family) {
  const MmaInstrInfo *found = find_if(kMmaInstrs, [&](const MmaInstrInfo &instr) { return instr.family == family; });
  assert(found != std::end(kMmaInstrs) && "every family has an instruction");
  return *found;
}

} // namespace fagen
