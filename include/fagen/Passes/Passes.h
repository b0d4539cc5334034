// fagen: the passes, each a free function on one kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pass gives true when it changed the kernel. What it needs and ensures stands in Passes.td, with the order and
// the reasons. Mistakes are reported through the context's diagnostics; the pipeline stops after the pass.
#pragma once

#include "fagen/IR/Patterns.h"
#include "fagen/Support/Diagnostics.h"

#include "llvm/Support/raw_ostream.h"

namespace fagen {

struct Schedule;
struct Variant;

/// What a pass may know next to the kernel.
/// What lowering finds by trying: the best that fits (fagen/Lower/Lower.h).
struct Arranged {
  unsigned querySlots = 1; ///< 2: the next Q comes while this one is used; results leave through the slot that was read
  unsigned stagedColumns = 0; ///< columns of O that leave through shared memory at once; 0: each thread stores its own
  bool isQueryOverRing = false; ///< Q lies over K and V while it is on its way to registers
};

struct PassContext {
  Diagnostics &diags;
  const Variant *variant = nullptr;     ///< null under fagen-opt, for passes that read only the IR
  llvm::raw_ostream *listing = nullptr; ///< where print-hazards writes
  ir::Program *program = nullptr; ///< that the kernel is of: what its launches hand each other; a pass may add one
  bool runsAll = false;           ///< all passes that are left, in order, and not those that a user picked
  Arranged arranged = {};         ///< of the variant

  /// What helps where a kernel is not as a pass needs it.
  llvm::StringRef advice() const { return runsAll ? "" : ". Run the passes before it first, each once"; }
};

/// The named barrier of the first warp group; those of the others follow. 0 is the CTA's.
inline constexpr int64_t kGroupBarrier = 1;
/// Who merges the splits: a second launch, or where a warp has few rows, as warps that share keys do, the last split.
bool isMergedLater(const Schedule &schedule);
/// Whether the kernel is the launch that merges the splits of the one before it.
bool isCombine(const ir::Kernel &kernel, const PassContext &context);
/// Whether, of a tile of as many rows as keys, a group of four warps sees fewer key tiles than the last one.
bool groupsSkipKeyTiles(const ir::Kernel &kernel, const ir::Role &role, ir::ConstMask mask, unsigned groups);

// bool holdQuery(ir::Kernel &kernel, PassContext &context); and so on.
#define GET_PASS_FUNCTIONS
#include "fagen/Passes/Passes.inc"

} // namespace fagen
