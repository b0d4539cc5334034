// fagen: the table of contents: every pass in order, and one line why it stands there.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The barrier passes stand behind allocate-shared: buffers may overlay others, so who meets whom is a question about
// absolute bytes, which exist only once every buffer has its offset.

#include "fagen/Passes/Pipeline.h"

using namespace fagen;
using fagen::ir::Phase;

namespace {

constexpr PassEntry kPipeline[] = {
    // First: from here on numbers are named constants that know their spec key.
    {"resolve-options", resolveOptions, true, Phase::Built, Phase::Built},
    // The algorithm as plain as it can be written: all later passes move and add ops, none needs to know attention.
    {"build-tiles", buildTiles, true, Phase::Built, Phase::Built},
    // Before pipelining: there must be one copy of K and V to take as pattern, and the final loops to run ahead of.
    {"split-mask-loops", splitMaskLoops, false, Phase::Built, Phase::Split},
    // Behind splitting: the copies of all loops make one loop of their own. No effect without `roles = specialized`.
    {"split-roles", splitRoles, false, Phase::Split, Phase::Split},
    // Copies are out of the way: what is left between two products is what can run under them.
    {"issue-products", issueProducts, false, Phase::Split, Phase::Split},
    // Products overlap the softmax: only then is there a step to shorten. Before anybody asks who reads which slot.
    {"settle-rows", settleRows, false, Phase::Split, Phase::Split},
    // Products have their place, and copies follow them. Still before anybody waits for them.
    {"rotate-copies", rotateCopies, false, Phase::Split, Phase::Split},
    // Products have their place: from it follows who waits for which slot. Still before allocation: it adds mbarriers.
    {"order-roles", orderRoles, false, Phase::Split, Phase::Split},
    // Q's arrival is waited for: what is kept of it can be loaded. Before tiles follow each other.
    {"hold-query", holdQuery, false, Phase::Split, Phase::Split},
    // Who leaves a slot where is known: warp groups can leave some early. Before anything goes around or behind that.
    {"skip-masked-tiles", skipMaskedTiles, false, Phase::Split, Phase::Split},
    // Roles are in step: the loop over tiles goes around what is there. Still before allocation, as above.
    {"persist-tiles", persistTiles, false, Phase::Split, Phase::Split},
    // The loop over tiles is there: where it gets their numbers from is a question of its own.
    {"fetch-tiles", fetchTiles, false, Phase::Split, Phase::Split},
    // Tiles follow each other: only then is there a second slot of Q, and something that a store may run under.
    {"stage-output", stageOutput, false, Phase::Split, Phase::Split},
    // All loops are there: turns begin before them and end behind them.
    {"take-turns", takeTurns, false, Phase::Split, Phase::Split},
    // Nothing is added any more that begins or ends a role: barriers of the cluster stand around it.
    {"form-clusters", formClusters, false, Phase::Split, Phase::Split},
    // Behind splitting: copies run ahead across the border of two loops. Beyond this point no copy or wait is added.
    {"pipeline-loads", pipelineLoads, false, Phase::Split, Phase::Pipelined},
    // Right behind: what it guards against in vain is taken out before anybody orders it.
    {"drop-idle-copies", dropIdleCopies, false, Phase::Pipelined, Phase::Pipelined},
    // Behind it: the copies that are left have their final order.
    {"strength-reduce-copies", strengthReduceCopies, false, Phase::Pipelined, Phase::Pipelined},
    // All buffers exist now; offsets and accesses depend on their layout.
    {"assign-layouts", assignLayouts, false, Phase::Pipelined, Phase::LaidOut},
    // Beyond this point no shared buffer moves.
    {"allocate-shared", allocateShared, false, Phase::LaidOut, Phase::Allocated},
    // The last pass that changes ops: hazards are those of the final order and the final bytes.
    {"place-barriers", placeBarriers, false, Phase::Allocated, Phase::Placed},
    // Proof, not trust: hazards recomputed on the final IR; one left open is our mistake.
    {"verify-barriers", verifyBarriers, false, Phase::Placed, Phase::Verified},
};

constexpr PassEntry kByName[] = {
    {"print-hazards", printHazards, false, Phase::LaidOut, Phase::Built},
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
