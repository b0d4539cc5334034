// fagen: the table of contents: every pass in order, which kernels it is for, and one line why it stands there.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The barrier passes stand behind allocate-shared: buffers may overlay others, so who meets whom is a question about
// absolute bytes, which exist only once every buffer has its offset.

#include "fagen/Passes/Pipeline.h"

#include "AskedNumbers.h"
#include "fagen/Target/MmaInstrs.h"

using namespace fagen;
using fagen::ir::Phase;

namespace {

// What a kernel is, or asks for.

bool isAny(const ir::Kernel &) { return true; }
bool asksForLoadRole(const ir::Kernel &kernel) { return kernel.roles.size() == 1 && kernel.options.loadWarps; }
bool multipliesBeside(const ir::Kernel &kernel) { return mmaFamily(kernel.backend).isAsynchronous; }
bool hasRoles(const ir::Kernel &kernel) { return kernel.roles.size() > 1; }
bool holdsSlices(const ir::Kernel &kernel) { return hasRoles(kernel) && askedNumber(kernel, OptionKey::QHeld); }
bool persists(const ir::Kernel &kernel) {
  return hasRoles(kernel) &&
         (valueOr(kernel.options.grid, Grid::Tiles) != Grid::Tiles || kernel.grid.kind == ir::CtaGrid::Persistent);
}
bool drawsTiles(const ir::Kernel &kernel) {
  return hasRoles(kernel) && valueOr(kernel.options.grid, Grid::Tiles) == Grid::LongestFirst;
}
bool stagesResults(const ir::Kernel &kernel) {
  return hasRoles(kernel) && (kernel.options.querySlots || kernel.options.stagedColumns);
}
bool takesTurns(const ir::Kernel &kernel) {
  const Overlap overlap = valueOr(kernel.options.overlap, Overlap::None);
  return hasRoles(kernel) && (overlap == Overlap::Both || overlap == Overlap::Pingpong);
}
bool isOfClusters(const ir::Kernel &kernel) { return hasRoles(kernel) && askedNumber(kernel, OptionKey::Cluster); }

constexpr PassEntry kPipeline[] = {
    // First: from here on numbers are named constants that know their spec key.
    {"resolve-options", resolveOptions, isAny, true, Phase::Built, Phase::Built},
    // The algorithm as plain as it can be written: all later passes move and add ops, none needs to know attention.
    {"build-tiles", buildTiles, isAny, true, Phase::Built, Phase::Built},
    // Before pipelining: there must be one copy of K and V to take as pattern, and the final loops to run ahead of.
    {"split-mask-loops", splitMaskLoops, isAny, false, Phase::Built, Phase::Split},
    // Behind splitting: the copies of all loops make one loop of their own.
    {"split-roles", splitRoles, asksForLoadRole, false, Phase::Split, Phase::Split},
    // Copies are out of the way: what is left between two products is what can run under them.
    {"issue-products", issueProducts, multipliesBeside, false, Phase::Split, Phase::Split},
    // Products overlap the softmax: only then is there a step to shorten. Before anybody asks who reads which slot.
    {"settle-rows", settleRows, multipliesBeside, false, Phase::Split, Phase::Split},
    // The last maximum that can go has gone: between a score and its power nothing is left in some steps.
    {"fold-scores", foldScores, isAny, false, Phase::Split, Phase::Split},
    // Products have their place, and copies follow them. Still before anybody waits for them.
    {"rotate-copies", rotateCopies, hasRoles, false, Phase::Split, Phase::Split},
    // Products have their place: from it follows who waits for which slot. Still before allocation: it adds mbarriers.
    {"order-roles", orderRoles, hasRoles, false, Phase::Split, Phase::Split},
    // Q's arrival is waited for: what is kept of it can be loaded. Before tiles follow each other.
    {"hold-query", holdQuery, holdsSlices, false, Phase::Split, Phase::Split},
    // Who leaves a slot where is known: warp groups can leave some early. Before anything goes around or behind that.
    {"skip-masked-tiles", skipMaskedTiles, hasRoles, false, Phase::Split, Phase::Split},
    // Roles are in step: the loop over tiles goes around what is there. Still before allocation, as above.
    {"persist-tiles", persistTiles, persists, false, Phase::Split, Phase::Split},
    // The loop over tiles is there: where it gets their numbers from is a question of its own.
    {"fetch-tiles", fetchTiles, drawsTiles, false, Phase::Split, Phase::Split},
    // Tiles follow each other: only then is there a second slot of Q, and something that a store may run under.
    {"stage-output", stageOutput, stagesResults, false, Phase::Split, Phase::Split},
    // All loops are there: turns begin before them and end behind them.
    {"take-turns", takeTurns, takesTurns, false, Phase::Split, Phase::Split},
    // Nothing is added any more that begins or ends a role: barriers of the cluster stand around it.
    {"form-clusters", formClusters, isOfClusters, false, Phase::Split, Phase::Split},
    // Behind splitting: copies run ahead across the border of two loops. Beyond this point no copy or wait is added.
    {"pipeline-loads", pipelineLoads, isAny, false, Phase::Split, Phase::Pipelined},
    // Right behind: what it guards against in vain is taken out before anybody orders it.
    {"drop-idle-copies", dropIdleCopies, isAny, false, Phase::Pipelined, Phase::Pipelined},
    // Behind it: the copies that are left have their final order.
    {"strength-reduce-copies", strengthReduceCopies, isAny, false, Phase::Pipelined, Phase::Pipelined},
    // All buffers exist now; offsets and accesses depend on their layout.
    {"assign-layouts", assignLayouts, isAny, false, Phase::Pipelined, Phase::LaidOut},
    // Beyond this point no shared buffer moves.
    {"allocate-shared", allocateShared, isAny, false, Phase::LaidOut, Phase::Allocated},
    // The last pass that changes ops: hazards are those of the final order and the final bytes.
    {"place-barriers", placeBarriers, isAny, false, Phase::Allocated, Phase::Placed},
    // Proof, not trust: hazards recomputed on the final IR; one left open is our mistake.
    {"verify-barriers", verifyBarriers, isAny, false, Phase::Placed, Phase::Verified},
};

constexpr PassEntry kByName[] = {
    {"print-hazards", printHazards, isAny, false, Phase::LaidOut, Phase::Built},
};

} // namespace

llvm::ArrayRef<PassEntry> fagen::pipelinePasses() { return kPipeline; }

const PassEntry *fagen::lookupPass(llvm::StringRef name) {
  for (llvm::ArrayRef<PassEntry> passes : {llvm::ArrayRef(kPipeline), llvm::ArrayRef(kByName)})
    for (const PassEntry &pass : passes)
      if (pass.name == name)
        return &pass;
  return nullptr;
}
