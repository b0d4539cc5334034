// fagen: matrix instructions and what they ask of a kernel's tile, from MmaInstrs.td.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Spec/Options.h"
#include "fagen/Target/Target.h"

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace fagen {

/// What kernels must know of all instructions of a family.
struct MmaFamilyInfo {
  Mma family = Mma::Scalar;
  bool isCollective = false;   ///< threads of a warp, or of a unit, work on a product together; else each alone
  bool isAsynchronous = false; ///< a product is issued and waited for
  bool keepsResults = false;   ///< which lane holds which element of a result is known: results stay in registers
  bool widensRight = false;    ///< takes a right operand of one-byte floats next to a left one of 16 bits
  unsigned unitWarps = 1;      ///< that issue a product together
  llvm::StringRef abt, addAbt, ab, addAb, atb, addAtb; ///< device functions; add: to what is there; empty: none
  llvm::StringRef async; ///< what begins the names of ptx functions that fence, commit and wait for products
  std::vector<llvm::StringRef> headers; ///< below <fagen/device/>
  std::vector<GoesWith> takes; ///< values of keys that kernels are generated for, the best first; not listed: all

  /// Of the key; null: any value.
  const GoesWith *taken(OptionKey key) const;
};

/// Of the family, or of the one that specs and IR spell `name`.
const MmaFamilyInfo &mmaFamily(Mma family);
const MmaFamilyInfo &mmaFamily(llvm::StringRef name);

/// In the order of MmaInstrs.td.
llvm::ArrayRef<MmaFamilyInfo> allMmaFamilies();

/// Each thread alone: also of kernels without products.
const MmaFamilyInfo &plainFamily();

/// Warps by themselves, results in registers, on the most targets: what a kernel is of where nothing else fits.
const MmaFamilyInfo &fallbackFamily();

/// Warps work together on fragments whose layout nobody knows: what they hold reaches other threads by shared memory.
inline bool hasOpaqueFragments(const MmaFamilyInfo &family) { return family.isCollective && !family.keepsResults; }

struct MmaInstrInfo {
  llvm::StringRef name;
  Mma family = Mma::Scalar;
  DType operand = DType::F16;
  DType accum = DType::F32;
  unsigned m = 0, n = 0, nMax = 0, k = 0; ///< nMax > n: N takes every multiple of n up to nMax
  unsigned slabRows = 0;                  ///< query rows that one warp (or slabWarps together) takes at least
  unsigned slabWarps = 0;                 ///< warps that work on a slab together
  unsigned keyMultiple = 0;               ///< keys of one warp's share of a tile
  unsigned headDimMultiple = 0;
  unsigned aRegisters = 0, bRegisters = 0, dRegisters = 0; ///< fragments, in 32-bit registers of a thread
  llvm::StringRef mnemonic;                                ///< PTX; empty for scalar arithmetic
  bool hasMajors = false; ///< operands in shared memory run along what is summed over, or across it; else along it
  bool leftInRegisters = false; ///< where the left operand may lie; the right one is in shared memory
  bool leftInShared = false;
  bool leftMayBeSums = false; ///< the left operand may have the sums' type, as products leave them
  FeatureMask needs = 0;
  bool implemented = false;
};

/// Every instruction, in the order of MmaInstrs.td.
llvm::ArrayRef<MmaInstrInfo> allMmaInstrs();

/// The instruction of a family for these types, or null when it has none.
const MmaInstrInfo *findMmaInstr(Mma family, DType operand, DType accum);

/// Any instruction of a family: for facts that all of them share (slabs, multiples).
const MmaInstrInfo &firstMmaInstr(Mma family);

} // namespace fagen
