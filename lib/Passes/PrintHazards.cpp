// fagen: pass print-hazards: lists every hazard and what covers it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Needs final layouts. Changes nothing. One line a hazard, ops numbered in program order from 1:
//
//   hazards of @fagen_k_sm_89, role all:
//     RAW k: copy_issue@5 -> mma@12 distance 0, cta, covered by copy_wait@9 barrier@11
//     WAR s: mma@18 -> mma@12, warp, open: no barrier between (key_tiles = 2)
//
// "cta", "group", "warp" or "thread" says how far apart the threads are that meet. Behind the roles follows what the
// kernel shares with other CTAs and launches by global memory:
//
//   global memory of @fagen_k_sm_89, launch 2 of 2:
//     RAW partial: launch 1 all.store@9 -> all.copy_issue@1, ordered by the launch

#include "fagen/Passes/Passes.h"

#include "HazardReport.h"

using namespace fagen;

bool fagen::printHazards(ir::Kernel &kernel, PassContext &context) {
  llvm::raw_ostream &os = context.listing ? *context.listing : llvm::outs();
  for (const ir::Role &role : kernel.roles) {
    os << "hazards of @" << kernel.symbol << ", role " << role.name << ":\n";
    const HazardInfo info(kernel, role);
    if (!info.problem().empty())
      os << "  not analysed: " << info.problem() << '\n';
    for (const Access &access : info.selfConflicts())
      os << "  " << info.points().nameOf(access.op) << " races with itself on " << access.buffer->name << '\n';
    for (const Hazard &hazard : info.hazards())
      os << "  " << info.describe(hazard) << '\n';
  }
  if (context.program)
    printGlobal(*context.program, kernel, os);
  return false;
}
