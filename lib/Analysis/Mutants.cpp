// fagen: changes each barrier and wait in turn and asks the analysis.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Mutants.h"
#include "fagen/IR/Queries.h"

#include "fagen/Analysis/Hazards.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace fagen;
using namespace fagen::ir;

namespace {

/// An op and where it stands.
struct Site {
  Block *block;
  size_t index;
  Op &op() const { return *block->ops[index]; }
};

class MutantJudge {
public:
  MutantJudge(Kernel &kernel, Role &role) : kernel(kernel), role(role), points(role), table(kernel, {&role}) {}

  std::vector<Mutant> run() {
    findSites(role.body);
    for (const Site &site : sites) {
      disable(site);
      weaken(site);
      move(site, /*isLater=*/false);
      move(site, /*isLater=*/true);
    }
    return std::move(mutants);
  }

private:
  void findSites(Block &block) {
    for (size_t i = 0; i < block.ops.size(); ++i) {
      if (opInfo(block.ops[i]->kind).hasSite)
        sites.push_back({&block, i});
      findSites(block.ops[i]->body);
    }
  }

  void disable(const Site &site) {
    auto &ops = site.block->ops;
    Mutant mutant{Mutant::Action::Disable, &site.op()};
    std::unique_ptr<Op> taken = std::move(ops[site.index]);
    ops.erase(ops.begin() + site.index);
    judge(mutant);
    ops.insert(ops.begin() + site.index, std::move(taken));
  }

  /// A warp barrier cannot be weaker: that is to disable it.
  void weaken(const Site &site) {
    Op &op = site.op();
    Mutant mutant{Mutant::Action::Weaken, &op};
    const auto attributes = op.attributes;
    if (op.kind == OpKind::CopyWait) {
      mutant.pending = op.integer(Attr::Pending) + 1;
      op.set(Attr::Pending, int64_t(mutant.pending));
    } else if (const auto barrier = dynCast<BarrierOp>(op); barrier && barrier->scope() != BarrierScope::Warp) {
      barrier->setScope(BarrierScope::Warp);
    } else {
      return;
    }
    judge(mutant);
    op.attributes = attributes;
  }

  /// Whether passing the op can change what is ordered.
  static bool matters(const Op &op) {
    return opInfo(op.kind).hasSite || op.kind == OpKind::CopyCommit ||
           llvm::any_of(op.operands, [](const Operand &operand) {
             return operand.buffer && operand.buffer->space == Space::Shared;
           });
  }

  /// Within the block: an op that ends or begins it stays, and none passes a loop or a branch.
  void move(const Site &site, bool isLater) {
    auto &ops = site.block->ops;
    const ptrdiff_t step = isLater ? 1 : -1;
    ptrdiff_t to = site.index;
    do
      to += step;
    while (to >= 0 && to < ptrdiff_t(ops.size()) && !matters(*ops[to]) && !opInfo(ops[to]->kind).hasBody);
    if (to < 0 || to >= ptrdiff_t(ops.size()) || opInfo(ops[to]->kind).hasBody)
      return;
    Mutant mutant{Mutant::Action::Move, &site.op(), 0, ops[to].get(), isLater};
    auto turn = [&](bool forth) { // the op goes to `to`, those between close up
      const auto first = ops.begin() + std::min<ptrdiff_t>(site.index, to);
      const auto last = ops.begin() + std::max<ptrdiff_t>(site.index, to);
      if (isLater == forth)
        std::rotate(first, first + 1, last + 1);
      else
        std::rotate(first, last, last + 1);
    };
    turn(true);
    judge(mutant);
    turn(false);
  }

  void judge(Mutant mutant) {
    const HazardInfo info(kernel, role, table);
    if (!info.problem().empty())
      mutant.why = info.problem();
    for (const Hazard &hazard : info.hazards())
      if (mutant.why.empty() && !info.isCovered(hazard))
        mutant.why = describe(info, hazard);
    mutant.isNeeded = !mutant.why.empty();
    mutants.push_back(std::move(mutant));
  }

  std::string describe(const HazardInfo &info, const Hazard &hazard) const {
    std::string text = toString(hazard.kind).str() + " " + hazard.source.buffer->name;
    if (hazard.sink.buffer != hazard.source.buffer)
      text += "/" + hazard.sink.buffer->name;
    text += ": " + points.nameOf(hazard.source.op) + " -> " + points.nameOf(hazard.sink.op) + ", " +
            toString(hazard.conflict.scope).str() +
            (hazard.isUnfinished ? ", no copy_wait completes it" : ", no barrier between");
    const std::string &steps = info.openSteps(hazard);
    return steps.empty() ? text : text + " (" + steps + ")";
  }

  Kernel &kernel;
  Role &role;
  const Points points; ///< of the unchanged body
  AccessTable table;
  std::vector<Site> sites;
  std::vector<Mutant> mutants;
};

} // namespace

std::vector<Mutant> fagen::judgeMutants(Kernel &kernel) {
  std::vector<Mutant> mutants;
  for (Role &role : kernel.roles)
    llvm::append_range(mutants, MutantJudge(kernel, role).run());
  return mutants;
}
