// fagen: buffers that a role fills for others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Handovers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace fagen;
using namespace fagen::ir;

bool Handover::hasUse(llvm::function_ref<bool(const HandoverUse &)> isWanted) const {
  return llvm::any_of(users, [&](const HandoverUser &user) {
    return llvm::any_of(user.sites, [&](const HandoverSite &site) { return llvm::any_of(site, isWanted); });
  });
}

namespace {

class HandoverFinder {
public:
  HandoverFinder(Kernel &kernel, const OpPlaces &places) : kernel(kernel), places(places) {}

  std::vector<Handover> run() {
    forEachAccess([&](Role &role, Op &op, unsigned operand) {
      users[op.operands[operand].buffer].insert(&role);
      if (writes(op, operand))
        fillers.try_emplace(op.operands[operand].buffer, &role);
    });
    forEachAccess([&](Role &role, Op &op, unsigned operand) {
      const Buffer *const buffer = op.operands[operand].buffer;
      if (writes(op, operand) && fillers.lookup(buffer) == &role && users[buffer].size() > 1)
        addFill(role, op, op.operands[operand]);
    });
    forEachAccess([&](Role &role, Op &op, unsigned operand) {
      for (Handover &handover : found)
        if (&role != handover.filler && llvm::is_contained(handover.buffers, op.operands[operand].buffer))
          addUse(handover, role, op, op.operands[operand]);
    });
    return std::move(found);
  }

private:
  static bool writes(const Op &op, unsigned operand) { return opInfo(op.kind).operands[operand].writes(); }

  /// Of shared memory, but for mbarriers.
  void forEachAccess(llvm::function_ref<void(Role &, Op &, unsigned)> visit) {
    for (Role &role : kernel.roles)
      walk(role.body, [&](Op &op) {
        for (unsigned i = 0; i < op.operands.size(); ++i)
          if (const Buffer *buffer = op.operands[i].buffer;
              buffer && buffer->space == Space::Shared && buffer->type != ElementType::MBarrier)
            visit(role, op, i);
      });
  }

  static Buffer *fullOf(const Op &op, const Buffer &buffer) {
    if (syncOf(op).done == Means::Phases)
      return CopyIssueOp(op).full().buffer;
    return buffer.guard ? buffer.guard->full : nullptr;
  }

  void addFill(Role &role, Op &op, const Operand &target) {
    Buffer *const full = fullOf(op, *target.buffer);
    auto handover = llvm::find_if(found, [&](const Handover &known) {
      return llvm::is_contained(known.buffers, target.buffer) || (full && known.full == full);
    });
    if (handover == found.end())
      handover = found.insert(handover, {.buffers = {}, .full = full, .filler = &role, .fills = {}, .users = {}});
    if (!llvm::is_contained(handover->buffers, target.buffer))
      handover->buffers.push_back(target.buffer);
    addTo(handover->fills, useOf(op, target.position));
  }

  void addUse(Handover &handover, Role &role, Op &op, const Operand &used) {
    auto user = llvm::find_if(handover.users, [&](const HandoverUser &user) { return user.role == &role; });
    if (user == handover.users.end())
      user = handover.users.insert(user, {&role, {}});
    addTo(user->sites, useOf(op, used.position));
  }

  HandoverUse useOf(Op &op, const Expr &position) const {
    Op *anchor = places.standing(op);
    while (!position && places.of(*anchor).around)
      anchor = places.of(*anchor).around;
    return {&op, position, anchor};
  }

  void addTo(std::vector<HandoverSite> &sites, HandoverUse use) {
    auto site = llvm::find_if(sites, [&](const HandoverSite &site) {
      const HandoverUse &first = site.front();
      return places.of(*first.anchor).block == places.of(*use.anchor).block &&
             (first.position && use.position ? first.position == use.position : !first.position && !use.position);
    });
    if (site == sites.end())
      site = sites.insert(site, HandoverSite());
    site->push_back(std::move(use));
  }

  Kernel &kernel;
  const OpPlaces &places;
  llvm::DenseMap<const Buffer *, Role *> fillers;
  llvm::DenseMap<const Buffer *, llvm::SmallPtrSet<const Role *, 4>> users;
  std::vector<Handover> found;
};

/// Groups that were closed since one was open, and the op that says that this one is done.
class GroupWait {
public:
  explicit GroupWait(Means means) : means(means) {}

  /// In these ops of the block itself; what stands in bodies may not be reached.
  Op *find(const Block &block, size_t from) {
    for (size_t i = from; i < block.ops.size(); ++i) {
      const SyncInfo &sync = syncOf(*block.ops[i]);
      closed += sync.releases == means;
      if (sync.acquires == means && closed - block.ops[i]->integer(Attr::Pending) >= 1)
        return block.ops[i].get();
    }
    return nullptr;
  }

private:
  const Means means;
  int64_t closed = 0;
};

constexpr unsigned kMostSteps = 8;

/// Of a use in a loop's step that so many others follow: the op after the loop that says that it is done.
Op *completionBehindLoop(const HandoverUse &use, const OpPlaces &places, unsigned stepsLeft) {
  GroupWait wait(use.sync().done);
  OpPlaces::Place place = places.of(*use.anchor);
  Block &body = *place.block;
  wait.find(body, place.index + 1);
  for (unsigned step = 0; step < stepsLeft; ++step)
    wait.find(body, 0);
  while (place.around) {
    place = places.of(*place.around);
    if (Op *at = wait.find(*place.block, place.index + 1))
      return at;
  }
  return nullptr;
}

Completion completionOf(const HandoverUse &use, const OpPlaces &places) {
  const Means done = use.sync().done;
  if (done == Means::Nothing)
    return {use.anchor, 0, {}};
  const OpPlaces::Place &place = places.of(*use.anchor);
  GroupWait wait(done);
  if (Op *at = wait.find(*place.block, place.index + 1))
    return {at, 0, {}};
  const bool isInLoop = place.around && place.around->kind == OpKind::Loop;
  for (unsigned distance = 1; isInLoop && distance <= kMostSteps; ++distance)
    if (Op *at = wait.find(*place.block, 0)) {
      Completion completion{at, distance, {}};
      for (unsigned left = 0; left < distance; ++left)
        completion.tail.push_back(completionBehindLoop(use, places, left));
      return llvm::is_contained(completion.tail, nullptr) ? Completion() : completion;
    }
  return {};
}

} // namespace

std::vector<Handover> fagen::findHandovers(Kernel &kernel, const OpPlaces &places) {
  return HandoverFinder(kernel, places).run();
}

Completion fagen::completionOf(const HandoverSite &site, const OpPlaces &places) {
  Completion latest;
  for (const HandoverUse &use : site) {
    Completion done = ::completionOf(use, places);
    if (!done.at)
      return {};
    auto order = [&](const Completion &of) { return std::pair(of.distance, places.of(*of.at).index); };
    if (!latest.at || order(done) >= order(latest))
      latest = std::move(done);
  }
  return latest;
}
