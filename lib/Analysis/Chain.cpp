// fagen: walks through a role's ops with the clocks of one warp.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Chain.h"

#include "fagen/IR/Queries.h"

#include "llvm/ADT/DenseMap.h"

#include <algorithm>

using namespace fagen;
using namespace fagen::ir;
using namespace fagen::model;

// Where these come from: docs/internals/Model.md.
static constexpr double kResultClocks = 150;  ///< from a product's end to the first use of its result
static constexpr double kPhaseClocks = 30;    ///< of a wait at an mbarrier whose phase is complete
static constexpr double kTurnClocks = 50;     ///< from one group's pass_turn to the next one's first product
static constexpr double kClusterClocks = 100; ///< of an arrival in all CTAs of a cluster

std::vector<const Op *> model::copiesFor(const Kernel &kernel, const Role &role, const Buffer *full) {
  std::vector<const Op *> copies;
  for (const Role &other : kernel.roles) {
    if (&other == &role)
      continue;
    forEach<CopyIssueOp>(other.body, [&](CopyIssueOp<const Op> copy) {
      const bool isKnown =
          llvm::any_of(copies, [&](const Op *known) { return CopyIssueOp(*known).dst().buffer == copy.dst().buffer; });
      if (copy.full().buffer == full && !isKnown)
        copies.push_back(&*copy);
    });
  }
  return copies;
}

namespace {

class Walk {
public:
  Walk(const Kernel &kernel, const Role &role, const GpuRates &gpu)
      : kernel(kernel), role(role), gpu(gpu), groups(std::max(1U, role.warps / warpsOfGroup(kernel))) {}

  void step(const Op &op) {
    const Clocks clocks = clocksOf(workOf(kernel, role, op), gpu);
    const double busy = (clocks.tensor + clocks.exp + clocks.fp32) * kSchedulers / role.warps;
    own += busy;
    now += busy + clocks.latency;
    switch (op.kind) {
    case OpKind::MmaIssue:
      asked = std::max(asked, now) + clocks.products / groups;
      return;
    case OpKind::MmaCommit:
      committed.push_back(asked);
      return;
    case OpKind::MmaWait:
      if (const size_t pending = size_t(op.integer(Attr::Pending)); committed.size() > pending)
        now = std::max(now, committed[committed.size() - 1 - pending] + kResultClocks);
      return;
    case OpKind::AwaitTurn:
      inTurns = true;
      now += kTurnClocks;
      return;
    case OpKind::Wait:
      now += kPhaseClocks;
      taken[WaitOp(op).bar().buffer] = now;
      return;
    case OpKind::Arrive:
      now += ArriveOp(op).cluster() ? kClusterClocks : 0;
      left[ArriveOp(op).bar().buffer] = now;
      return;
    default:
      return;
    }
  }

  /// Rings whose slots the warp both takes and leaves in a turn of so many clocks.
  std::vector<RingUse> rings(double clocks) const {
    std::vector<RingUse> rings;
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers) {
      const Buffer *full = fullOf(*buffer), *empty = emptyOf(*buffer);
      if (!taken.count(full) || !left.count(empty))
        continue;
      double bytes = 0;
      for (const Op *copy : copiesFor(kernel, role, full))
        bytes += workOf(kernel, role, *copy).bulkBytes;
      if (bytes != 0)
        rings.push_back({(left.lookup(empty) - taken.lookup(full)) / clocks, gpu.bulkLatency + bytes / gpu.bulkBytes,
                         buffer->stages});
    }
    return rings;
  }

  double now = 0, own = 0;
  bool inTurns = false;

private:
  const Kernel &kernel;
  const Role &role;
  const GpuRates &gpu;
  const double groups;
  double asked = 0;              ///< until then the tensor cores have products of this group
  std::vector<double> committed; ///< the end of each group of products
  llvm::DenseMap<const Buffer *, double> taken, left;
};

} // namespace

Chain model::chainOf(const Kernel &kernel, const Role &role, llvm::ArrayRef<const Op *> ops, bool repeats,
                     const GpuRates &gpu) {
  Walk walk(kernel, role, gpu);
  double begin = 0, own = 0;
  for (unsigned turn = 0; turn < (repeats ? 3 : 1); ++turn) { // the third begins with what the second has asked for
    begin = walk.now;
    own = walk.own;
    for (const Op *op : ops)
      walk.step(*op);
  }
  Chain chain;
  chain.clocks = walk.now - begin;
  chain.inTurns = walk.inTurns;
  chain.waiting = chain.clocks - (walk.own - own);
  if (repeats && chain.clocks > 0)
    chain.rings = walk.rings(chain.clocks);
  return chain;
}
