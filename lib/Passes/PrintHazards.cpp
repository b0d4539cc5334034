// fagen: pass print-hazards: lists every hazard and what covers it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Needs final layouts. Changes nothing. One line a hazard, ops numbered in program order from 1:
//
//   hazards of @fagen_k_sm_89, role all:
//     RAW k: copy_issue@5 -> mma@12 distance 0, cta, covered by copy_wait@9 barrier@11
//     WAR s: mma@18 -> mma@12, warp, open: no barrier between (key_tiles = 2)
//
// Of several roles, or of ops that run alongside threads (Analysis/Order.h), a line has what orders the two, first and
// last:
//
//   hazards of @fagen_k_sm_90a, roles load, math:
//     RAW k: load.copy_issue@3 -> math.mma_issue@3 distance 0, ordered by math.wait@1
//
// "cta", "group", "warp" or "thread" says how far apart the threads are that meet. After the roles follows what the
// kernel shares with other CTAs and launches by global memory:
//
//   global memory of @fagen_k_sm_89, launch 2 of 2:
//     RAW partial: launch 1 all.store@9 -> all.copy_issue@1, ordered by the launch
//     RAW sights: launch 1 all.classify_tiles@1 -> let seen, ordered by the launch

#include "fagen/Passes/Passes.h"

#include "Reports/HazardReport.h"
#include "Reports/OrderReport.h"

using namespace fagen;

static void printRole(const ir::Kernel &kernel, const ir::Role &role, llvm::raw_ostream &os) {
  os << "hazards of @" << kernel.symbol << ", role " << role.name << ":\n";
  const HazardInfo info(kernel, role);
  if (!info.problem().empty())
    os << "  not analysed: " << info.problem() << '\n';
  for (const Access &access : info.selfConflicts())
    os << "  " << info.points().nameOf(access.op) << " races with itself on " << access.buffer->name << '\n';
  for (const Hazard &hazard : info.hazards())
    os << "  " << info.describe(hazard) << '\n';
}

bool fagen::printHazards(ir::Kernel &kernel, PassContext &context) {
  llvm::raw_ostream &os = context.listing ? *context.listing : llvm::outs();
  if (needsOrder(kernel))
    printOrder(kernel, OrderInfo(kernel), os);
  else
    for (const ir::Role &role : kernel.roles)
      printRole(kernel, role, os);
  if (context.program)
    printGlobal(*context.program, kernel, os);
  return false;
}
