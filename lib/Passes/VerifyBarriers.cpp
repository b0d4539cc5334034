// fagen: pass verify-barriers: proves a kernel free of races and of hangs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Needs the final IR: nothing after it may change an op. It trusts no earlier pass: hazards are computed anew, on the
// bytes that allocate-shared gave. Ensures, or reports naming both accesses,
//
//   no race   every hazard has its wait and its barrier, on every path of every timeline; what a kernel writes to
//             global memory only it reads again, by the CTA that wrote it, or a later launch
//   no hang   the warps of a role take every branch and every step together (whatever an expression can name is the
//             same for all of them), and a barrier names just the warps of the role that reaches it: all participants
//             arrive equally often
//   its tile  each op reads the tile that it means (Analysis/TilesRead.h): a ring's position after the write of that
//             position, and products, masks and stores agree with copies on where tiles begin
//
// Several roles, or ops that run alongside threads: Analysis/Order.h says what orders them, whether phases and bytes
// match, and whether all roles come to their end.
//
// A wait or barrier under a condition that the timelines do not decide counts as a hang. What is found in IR lowered
// from a spec is our mistake; in textual IR it is the text's.

#include "fagen/IR/Queries.h"
#include "fagen/IR/Sync.h"
#include "fagen/Passes/Passes.h"

#include "fagen/Analysis/TilesRead.h"

#include "OrderProofs.h"
#include "Reports/HazardReport.h"
#include "Reports/OrderReport.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// Conditions that timelines do not decide: lets take all values there, run-time values none.
class Conditions {
public:
  Conditions(const Kernel &kernel, const Role &role) : kernel(kernel), role(role) {}

  bool isDecided(const Expr &condition) const {
    bool isDecided = true;
    condition.forEachVariable([&](llvm::StringRef name) {
      const bool isLet = llvm::any_of(kernel.lets, [&](const Let &let) { return let.name == name; });
      isDecided &= isLet || kernel.hasConstant(name) || isLoopVariable(name);
    });
    return isDecided;
  }

  /// Calls `visit` for ops that synchronise, with the innermost undecided `if` around.
  void forEachUndecided(const Block &block, llvm::function_ref<void(const Op &, const Op &)> visit,
                        const Op *undecided = nullptr) const {
    for (const std::unique_ptr<Op> &op : block.ops) {
      const bool isBulk = isBulkCopy(*op);
      if (undecided && synchronises(syncOf(*op)))
        visit(*op, *undecided);
      if (isBulk && op->has(Attr::When) && !isDecided(op->expr(Attr::When)))
        visit(*op, *op);
      const auto branch = dynCast<IfOp>(*op);
      forEachUndecided(op->body, visit, branch && !isDecided(branch->condition()) ? op.get() : undecided);
    }
  }

private:
  bool isLoopVariable(llvm::StringRef name) const {
    bool isFound = false;
    forEach<LoopOp>(role.body, [&](LoopOp<const Op> loop) { isFound |= loop.variable() == name; });
    return isFound;
  }

  const Kernel &kernel;
  const Role &role;
};

constexpr const char *kUndecided = " depends on more than lets, loop variables and constants, so it may not be reached";

class BarrierVerifier {
public:
  BarrierVerifier(const Kernel &kernel, const Role &role, PassContext &context)
      : kernel(kernel), role(role), context(context), points(role) {}

  /// `isCovered`: the hazards are known to be.
  bool run(bool isCovered) {
    Conditions(kernel, role).forEachUndecided(role.body, [&](const Op &op, const Op &undecided) {
      fail(op, "the condition of " + points.nameOf(&undecided) + kUndecided);
    });
    forEach<BarrierOp>(role.body, [&](BarrierOp<const Op> barrier) { checkParticipants(barrier); });
    if (!isCovered)
      checkHazards();
    return isSound;
  }

private:
  void checkHazards() {
    const HazardInfo info(kernel, role);
    const HazardReport report(info, context.diags, context.variant ? "verify-barriers" : "");
    isSound &= report.reportUnmendable(kernel);
    for (const Hazard &hazard : info.hazards())
      if (!hazard.isUnfinished && !info.isCovered(hazard)) {
        report.reportOpen(hazard);
        isSound = false;
      }
  }

  void fail(const Op &op, const llvm::Twine &message) {
    const std::string text = points.nameOf(&op) + ": " + message.str();
    if (context.variant)
      context.diags.internalError("verify-barriers", text, op.location);
    else
      context.diags.error(op.location, text);
    isSound = false;
  }

  void checkParticipants(BarrierOp<const Op> barrier) {
    const unsigned warps = kernel.threads / 32;
    if (barrier.scope() == BarrierScope::Cta && role.warps != warps)
      fail(*barrier, "a cta barrier waits for " + llvm::Twine(warps) + " warps; role " + role.name + " has " +
                         llvm::Twine(role.warps));
    if (barrier.scope() != BarrierScope::Named)
      return;
    const int64_t first = *barrier.firstWarp(), count = *barrier.warps();
    if (first != role.firstWarp || count != role.warps)
      fail(*barrier, "the barrier waits for warps " + llvm::Twine(first) + " to " + llvm::Twine(first + count) +
                         "; role " + role.name + ", which reaches it, is warps " + llvm::Twine(role.firstWarp) +
                         " to " + llvm::Twine(role.firstWarp + role.warps));
  }

  const Kernel &kernel;
  const Role &role;
  PassContext &context;
  const Points points;
  bool isSound = true;
};

} // namespace

/// Of a single role. Kernels of the same text share the proof, too. Who asks holds its mutex, as below.
static bool verifyRole(const Kernel &kernel, OrderProof &proof, PassContext &context) {
  if (!proof.covers && BarrierVerifier(kernel, kernel.roles.front(), context).run(proof.isCovered))
    proof.covers.emplace();
  return proof.covers.has_value();
}

static void report(PassContext &context, const Op &op, const std::string &message) {
  if (context.variant)
    context.diags.internalError("verify-barriers", message, op.location);
  else
    context.diags.error(op.location, message);
}

static bool verifyOrder(const Kernel &kernel, const OrderProof &proof, PassContext &context) {
  std::optional<OrderInfo> info;
  bool isSound = true;
  if (!proof.covers) {
    info.emplace(kernel);
    isSound = reportOrder(kernel, *info, context.diags, context.variant ? "verify-barriers" : "");
  }
  for (const Role &role : kernel.roles)
    Conditions(kernel, role).forEachUndecided(role.body, [&](const Op &op, const Op &undecided) {
      if (!info)
        info.emplace(kernel);
      report(context, op, info->nameOf(&op) + ": the condition of " + info->nameOf(&undecided) + kUndecided);
      isSound = false;
    });
  return isSound;
}

/// The proof of a kernel of roles stands for others with tiles of other sizes, which a running copy goes by.
static bool goesBySizes(const Kernel &kernel) {
  return needsOrder(kernel) && llvm::any_of(kernel.roles, [](const Role &role) {
           return firstOf(role.body,
                          [](const Op &op) { return op.kind == OpKind::CopyIssue && op.isSet(Attr::Running); });
         });
}

static bool verifyTiles(const Kernel &kernel, OrderProof &proof, PassContext &context) {
  if (proof.readsItsTiles && !goesBySizes(kernel))
    return true;
  const TilesRead tiles = findWrongTiles(kernel);
  for (const WrongTile &wrong : tiles.wrong)
    report(context, *wrong.op, wrong.message + (wrong.steps.empty() ? "" : " when " + wrong.steps));
  proof.readsItsTiles = tiles.problem.empty() && tiles.wrong.empty();
  return proof.readsItsTiles;
}

bool fagen::verifyBarriers(Kernel &kernel, PassContext &context) {
  const bool isOfRoles = needsOrder(kernel);
  OrderProof &proof = isOfRoles ? proofOfRoles(kernel) : proofOf(proofKey(kernel));
  bool isSound;
  {
    const std::lock_guard lock(proof.mutex);
    isSound = isOfRoles ? verifyOrder(kernel, proof, context) : verifyRole(kernel, proof, context);
    isSound = isSound && verifyTiles(kernel, proof, context);
  }
  if (context.program)
    isSound &= reportGlobal(*context.program, kernel, context.diags, context.variant ? "verify-barriers" : "");
  if (!isSound)
    return false;
  kernel.phase = Phase::Verified;
  return true;
}
