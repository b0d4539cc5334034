// fagen: prepares a kernel's roles for execution: who does what, and who meets whom.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExecutionPlan.h"

#include "fagen/Analysis/Order.h"
#include "fagen/IR/Queries.h"
#include "fagen/Target/MmaInstrs.h"

#include <limits>

using namespace fagen;
using namespace fagen::ir;

ExecutionPlan::ExecutionPlan(const Kernel &kernel, llvm::ArrayRef<const Role *> roles, llvm::ArrayRef<Points> points,
                             AccessTable &table)
    : kernel(kernel), ctas(kernel.grid.cluster), ctaWarps(kernel.threads / 32), all(roles), table(table) {
  shape.warps = ctas * ctaWarps;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->type == ElementType::MBarrier) {
      firstSlot[buffer.get()] = slots.size();
      for (unsigned i = 0; i < buffer->stages; ++i)
        slots.push_back({buffer.get(), i, false});
    }
  llvm::DenseMap<const Buffer *, unsigned> firstOf;
  for (const Access &access : table.accesses()) {
    const bool isTile =
        access.buffer->isRing && access.buffer->space == Space::Shared && access.buffer->type != ElementType::MBarrier;
    const auto [first, isNew] = firstOf.try_emplace(access.buffer, isTile ? tileCount : kNoTile);
    tileCount += isNew && isTile ? access.buffer->stages.number() : 0;
    firstTile.push_back(first->second);
  }
  for (const Access &access : table.accesses()) {
    firstInstance.push_back(instanceCount);
    if (access.buffer->space != Space::Fragment)
      instanceCount += access.buffer->stages * ctas * roles[access.role]->warps;
    rivals.emplace_back(access.buffer->stages);
  }
  for (unsigned role = 0; role < roles.size(); ++role) {
    ops.emplace_back(points[role].size());
    for (unsigned point = 0; point < points[role].size(); ++point)
      if (const Op *op = points[role][point].op)
        ops.back()[point] = plan(role, *op);
  }
  findEntries();
}

/// What clocks tell of: lanes that access something, what fences show, barriers, products and stores that there are.
void ExecutionPlan::findEntries() {
  shape.begin(shape.warps, unsigned(ctas * slots.size()), barriers());
  shape.beginExecuted();
  forEachLane([&](const PlannedOp &op, unsigned agent) {
    if (!op.accesses.empty())
      shape.add(Layer::Executed, agent);
  });
  shape.endExecuted();
  forEachLane([&](const PlannedOp &op, unsigned agent) {
    const unsigned warp = agent / 2;
    if (!op.accesses.empty())
      shape.add(Layer::Performed, agent);
    const Means releases = op.sync.releases;
    if (releases == Means::AsyncFence || releases == Means::InitFence)
      shape.add(releases == Means::AsyncFence ? Layer::AsyncProxy : Layer::Initialised, agent);
    if (op.sync.done == Means::ProductGroups || op.sync.acquires == Means::ProductGroups)
      shape.addProducts(warp);
    if (op.sync.done == Means::StoreGroups || op.sync.acquires == Means::StoreGroups)
      shape.addStores(warp);
    for (unsigned group = 0; isBarrier(releases) && group < op.groups; ++group)
      shape.addBarrier(
          releases == Means::ClusterBarrier
              ? barriers() - 1
              : warp / ctaWarps * ClockShape::kBarriers +
                    (releases == Means::CtaBarrier ? 0 : std::min(op.id + group, ClockShape::kBarriers - 1)));
  });
}

void ExecutionPlan::forEachLane(llvm::function_ref<void(const PlannedOp &, unsigned agent)> visit) const {
  for (unsigned role = 0; role < all.size(); ++role)
    for (const PlannedOp &op : ops[role])
      for (unsigned warp = 0; op.op && warp < all[role]->warps; ++warp) {
        const bool isByNeighbours = op.isShared && op.sync.releases == Means::Phases && op.lanes[warp] != 0;
        for (unsigned lane = 0; lane < 2; ++lane)
          for (unsigned cta = 0; cta < ctas; ++cta)
            if (isByNeighbours || (op.lanes[warp] >> lane & 1))
              visit(op, 2 * (cta * ctaWarps + all[role]->firstWarp + warp) + lane);
      }
}

/// Whether it has a meaning in an execution in addition to its accesses; groups of cp_async copies have theirs in
/// timelines, fences of products on courses.
static bool isAction(const SyncInfo &sync) {
  if (sync.releases == Means::CopyGroups || sync.acquires == Means::CopyGroups || sync.releases == Means::ProductFence)
    return false;
  return sync.isTogether || sync.done != Means::Nothing || synchronises(sync);
}

PlannedOp ExecutionPlan::plan(unsigned role, const Op &op) {
  PlannedOp planned;
  planned.op = &op;
  names.push_back(&op);
  if (names.size() <= std::numeric_limits<uint16_t>::max())
    planned.number = uint16_t(names.size());
  planned.sync = syncOf(op);
  places.resize(table.accesses().size());
  for (const Access &access : table.of(&op)) {
    auto &alike = access.buffer->space == Space::Fragment ? planned.fragments : planned.accesses;
    places[access.index] = uint8_t(alike.size());
    alike.push_back(&access);
  }
  planned.isOfFragments = !planned.fragments.empty() || planned.sync.releases == Means::ProductFence ||
                          planned.sync.releases == Means::ProductGroups ||
                          planned.sync.acquires == Means::ProductGroups;
  planned.isIdle = !isAction(planned.sync) && planned.accesses.empty();
  const bool isOne = planned.sync.isTogether && mmaFamily(kernel.backend).isCollective;
  planned.meetsLanes = isOne || planned.sync.releases == Means::ProductGroups ||
                       planned.sync.acquires == Means::ProductGroups || planned.sync.releases == Means::WarpBarrier;
  planned.onlyMeetsLanes =
      isOne && planned.accesses.empty() && planned.sync.done == Means::Nothing && !synchronises(planned.sync);
  planned.isShared = op.isSet(Attr::Cluster);
  if (op.has(Attr::Pending))
    planned.pending = op.integer(Attr::Pending);
  planBarrier(planned);
  const bool isFilling = planned.sync.done == Means::Phases;
  if (isFilling || planned.sync.releases == Means::Phases || planned.sync.acquires == Means::Phases ||
      planned.sync.needsFence == Means::InitFence) {
    planned.barOperand = isFilling ? CopyIssueOp<>::kFull : 0;
    planned.bar = op.operands[planned.barOperand].buffer;
    planned.firstSlot = firstSlot.lookup(planned.bar);
  }
  if (isFilling) {
    planned.bytes = bytesOfCopy(kernel, op);
    for (unsigned i = 0; i < planned.bar->stages; ++i)
      slots[planned.firstSlot + i].countsBytes = true;
  }
  for (unsigned warp = 0; warp < all[role]->warps; ++warp)
    planned.lanes[warp] = uint8_t(lanesOf(*all[role], warp, planned));
  planned.doing = doings.try_emplace(doingOf(planned), unsigned(doings.size())).first->second;
  return planned;
}

/// Everything that an execution reads of an op, and nothing that follows from the rest: a cell stands for the op's
/// kind, its operand, buffer and threads, so it also says whether that is written, which mbarrier it is, and how many
/// bytes a copy brings. CTAs that share a copy are known by the op.
std::vector<int64_t> ExecutionPlan::doingOf(const PlannedOp &planned) const {
  const Op &op = *planned.op;
  std::vector<int64_t> key{reinterpret_cast<intptr_t>(&syncOf(op)), // the row
                           planned.isShared && planned.sync.done == Means::Phases ? planned.number : 0,
                           planned.isShared,
                           planned.isInterleaved,
                           planned.pending,
                           planned.id,
                           planned.groups,
                           planned.firstWarp,
                           planned.warps,
                           op.has(Attr::Arrivals) ? op.integer(Attr::Arrivals) : 0};
  key.insert(key.end(), planned.lanes.begin(), planned.lanes.end());
  for (const Access *access : planned.accesses)
    key.insert(key.end(), {table.cellOf(*access, 0), access->reads, int64_t(access->needsFence)});
  return key;
}

void ExecutionPlan::planBarrier(PlannedOp &planned) const {
  const Op &op = *planned.op;
  if (op.has(Attr::Id))
    planned.id = op.integer(Attr::Id);
  if (op.has(Attr::Groups))
    planned.groups = op.integer(Attr::Groups);
  planned.isInterleaved = op.isSet(Attr::Interleaved);
  const bool hasRange = op.has(Attr::FirstWarp) && planned.sync.releases != Means::CtaBarrier;
  planned.firstWarp = hasRange ? op.integer(Attr::FirstWarp) : 0;
  planned.warps = hasRange ? op.integer(Attr::Warps) : ctaWarps;
}

Lanes ExecutionPlan::lanesOf(const Role &role, unsigned warp, const PlannedOp &planned) const {
  const Op &op = *planned.op;
  if (planned.sync.releases == Means::Turns)
    return op.has(Attr::Group) && op.integer(Attr::Group) != warp / ClockShape::kGroupWarps ? 0 : kAllLanes;
  const Actor by = planned.sync.isByActor ? actorOf(op) : Actor::Thread;
  if (by == Actor::Thread)
    return kAllLanes;
  const unsigned step = by == Actor::Warp ? 1 : by == Actor::Group ? ClockShape::kGroupWarps : role.warps;
  return warp % step == 0 ? kFirstLane : 0;
}

static Rival::Ask askOf(const Access &first, const Access &second) {
  if (!second.isByAsyncProxy || first.isByAsyncProxy || first.needsFence == Means::Nothing)
    return Rival::Ask::Order;
  return first.needsFence == Means::InitFence ? Rival::Ask::InitFence : Rival::Ask::ProxyFence;
}

ExecutionPlan::RivalsByWarp ExecutionPlan::findRivals(const Access &access, int64_t position) {
  RivalsByWarp found(ctaWarps);
  const Role &later = *all[access.role];
  for (const Neighbour &neighbour : table.neighboursOf(access, position)) {
    const Access &first = table.accesses()[neighbour.access];
    const Conflict &conflict = *neighbour.conflict;
    const Role &role = *all[first.role];
    std::array<uint32_t, kMaxWarps> others{}; // by warp of the later access
    if (conflict.scope > Scope::Thread)
      for (unsigned warp = role.firstWarp; warp < role.firstWarp + role.warps; ++warp)
        for (uint32_t left = conflict.meets[warp]; left != 0; left &= left - 1)
          others[llvm::countr_zero(left)] |= uint32_t(1) << warp;
    // The same thread, if not only it: to be asked where one of the two is no plain access.
    uint32_t same = 0;
    if (first.isAsync || first.isByAsyncProxy || access.isAsync || access.isByAsyncProxy)
      for (unsigned warp = role.firstWarp; warp < role.firstWarp + role.warps; ++warp)
        if (!(others[warp] >> warp & 1))
          same |= conflict.warps & (uint32_t(1) << warp);
    const unsigned number = rivalCount++;
    const Rival::Ask ask = askOf(first, access);
    for (unsigned warp = later.firstWarp; warp < later.firstWarp + later.warps; ++warp)
      for (uint32_t left = others[warp] | (same & (uint32_t(1) << warp)); left != 0; left &= left - 1) {
        const unsigned other = llvm::countr_zero(left);
        found[warp].push_back({neighbour.access, instanceOf(first, neighbour.slot) + other - role.firstWarp, number,
                               uint8_t(other), uint8_t(role.warps), ask, !(others[warp] >> other & 1)});
      }
  }
  return found;
}
