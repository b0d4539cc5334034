// fagen: the order of passes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Passes/Passes.h"

namespace fagen {

/// A pass changes one kernel and knows nothing of the others; true when it changed it.
using PassFunction = bool (*)(ir::Kernel &kernel, PassContext &context);

struct PassEntry {
  llvm::StringLiteral name; ///< as --run-pass= spells it
  PassFunction function;
  bool (*appliesTo)(const ir::Kernel &kernel); ///< the others stay as they are
  bool needsVariant;                           ///< reads the schedule, so it cannot run on IR from text
  ir::Phase needs;                             ///< at least
  /// At most, too, before it; a pass that only looks leaves an earlier one, and runs in all later.
  ir::Phase leaves;

  bool run(ir::Kernel &kernel, PassContext &context) const { return appliesTo(kernel) && function(kernel, context); }
};

/// The passes of the default pipeline, in order. Passes.td says why each stands where it stands.
llvm::ArrayRef<PassEntry> pipelinePasses();
/// Any pass, also those that are only run by name; null when there is none of that name.
const PassEntry *lookupPass(llvm::StringRef name);
/// Whether the phase says by itself which passes are left: from there on, each has one that changes ops, and proofs are
/// done again.
bool tellsPassesLeft(ir::Phase phase);

} // namespace fagen
