// fagen: which kernels the passes of the pipeline are for. Their order, and why, stands in Passes.td.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Passes/Pipeline.h"

#include "fagen/Target/MmaInstrs.h"

using namespace fagen;
using fagen::ir::Phase;

namespace {

// What a kernel is, or asks for.

bool isAny(const ir::Kernel &) { return true; }
bool asksForLoadRole(const ir::Kernel &kernel) { return kernel.roles.size() == 1 && kernel.options.loadWarps; }
bool multipliesBeside(const ir::Kernel &kernel) { return mmaFamily(kernel.backend).isAsynchronous; }
bool hasRoles(const ir::Kernel &kernel) { return kernel.roles.size() > 1; }
bool persists(const ir::Kernel &kernel) {
  return hasRoles(kernel) && (valueOr(kernel.options.grid, Grid::Tiles) != Grid::Tiles || kernel.grid.isPersistent);
}
bool drawsTiles(const ir::Kernel &kernel) {
  return hasRoles(kernel) && (valueOr(kernel.options.grid, Grid::Tiles) == Grid::LongestFirst || kernel.grid.isDrawn);
}
bool stagesResults(const ir::Kernel &kernel) {
  return hasRoles(kernel) && (kernel.options.querySlots || kernel.options.stagedColumns);
}
bool takesTurns(const ir::Kernel &kernel) {
  const Overlap overlap = valueOr(kernel.options.overlap, Overlap::None);
  return hasRoles(kernel) && (overlap == Overlap::Both || overlap == Overlap::Pingpong);
}

#define GET_PIPELINE
#include "fagen/Passes/Passes.inc"

} // namespace

llvm::ArrayRef<PassEntry> fagen::pipelinePasses() { return kPipeline; }

bool fagen::tellsPassesLeft(Phase phase) { return phase >= Phase::LaidOut; }

const PassEntry *fagen::lookupPass(llvm::StringRef name) {
  for (llvm::ArrayRef<PassEntry> passes : {llvm::ArrayRef(kPipeline), llvm::ArrayRef(kByName)})
    for (const PassEntry &pass : passes)
      if (pass.name == name)
        return &pass;
  return nullptr;
}
