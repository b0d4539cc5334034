// fagen: the text of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Plan.h"
#include "fagen/IR/IR.h"

#include "llvm/ADT/DenseSet.h"

#include <map>
#include <string>

namespace fagen {

/// Whether a kernel also tells where its time goes (docs/Breakdown.md).
enum class Instrument : uint8_t {
  None,
  Stages, ///< clocks of each stage, by warp; of long loops between the waits from some steps
  Every,  ///< from every step
  Trace   ///< and the first steps of some CTAs, stage by stage
};

/// A kernel's source, and where its ops stand in it.
struct KernelText {
  std::string source;
  std::map<const ir::Kernel *, std::vector<OpPlan>> ops; ///< of each launch, or of all by the first; by lines
  llvm::DenseSet<const ir::Buffer *> registers;          ///< fragments that the source names
};

/// Other launches of a program, which stand in the same text; null where there is none.
struct OtherLaunches {
  const ir::Kernel *combine = nullptr;    ///< merges the splits
  const ir::Kernel *classifier = nullptr; ///< finds beforehand what rows see of key tiles
};
OtherLaunches otherLaunches(const ir::Program &program);

/// The CUDA C++17 source of one verified kernel (phase Verified): a head with shared-memory map, roles and barrier
/// ledger, named constants with their origin, then prologue, steps, epilogue and entry. The same kernel gives the same
/// bytes on any machine. Clean under clang-format's LLVM style without a column limit.
KernelText emitKernel(const ir::Kernel &kernel, Instrument instrument = Instrument::None,
                      const OtherLaunches &others = {});

} // namespace fagen
