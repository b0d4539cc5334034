// fagen: how a kernel knows which key tiles its rows see.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KeyTiles.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Queries.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

using namespace fagen;
using namespace fagen::ir;

/// The lowest tier that could judge tiles by the condition.
static unsigned tierOf(const Kernel &kernel, const Expr &condition) {
  return !needsMore(kernel, condition, JudgedReads::Few) ? 1 : !needsMore(kernel, condition, JudgedReads::Runs) ? 2 : 3;
}

KeyTilesPlan fagen::planKeyTiles(const Kernel &kernel) {
  KeyTilesPlan plan;
  for (const Role &role : kernel.roles) {
    const auto mask = findMask(role.body);
    if (!mask)
      continue;
    const MaskBounds bounds = boundsOf(kernel, *mask, mask->row(), scoresOf(kernel, role, *mask).rows);
    const auto judgement = llvm::find_if(kernel.lets, [](const Let &let) { return let.judged.has_value(); });
    const bool isJudged = judgement != kernel.lets.end();
    plan.isMasked = true;
    plan.hasWhole = isJudged ? !(judgement->judged->whole == constant(0)) : !(bounds.fullEnd == constant(0));
    plan.hasGap = bounds.hasGap();
    for (const Expr &condition : bounds.unknown)
      if (const std::string text = condition.str();
          llvm::none_of(plan.unknown, [&](const KeyTilesPlan::Unknown &each) { return each.condition == text; }))
        plan.unknown.push_back(
            {text, tierOf(kernel, condition), isJudged && (kernel.scratchTensor() || canBeJudged(kernel, condition))});
  }
  return plan;
}

std::string fagen::toText(const KeyTilesPlan &plan) {
  if (!plan.isMasked)
    return {};
  std::string text = fmt::format(
      "  keys     tier T0: lets count the key tiles {}{}\n", plan.hasGap ? "of two ranges " : "",
      plan.hasWhole ? "that rows see, and those that they see whole" : "that rows may see, each of which is masked");
  static constexpr const char *kJudged[] = {
      "judged when the kernel runs", "judged by a launch before, by elements along rows or keys, then by all of a tile",
      "judged by a launch before, by all elements of a tile"};
  for (const KeyTilesPlan::Unknown &each : plan.unknown)
    if (each.isJudged)
      text += fmt::format("  keys     tier T{}: {}: {}\n", each.tier, kJudged[each.tier - 1], each.condition);
    else
      text += fmt::format("  keys     bounds no keys, and would take tier T{}: {}\n", each.tier, each.condition);
  return text;
}
