// fagen: collects the hazards of a role.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Hazards.h"
#include "fagen/IR/Queries.h"

#include "fagen/IR/Patterns.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <map>
#include <tuple>

using namespace fagen;
using namespace fagen::ir;

llvm::StringRef fagen::toString(HazardKind kind) {
  switch (kind) {
  case HazardKind::Raw:
    return "RAW";
  case HazardKind::War:
    return "WAR";
  case HazardKind::Waw:
    return "WAW";
  }
  return "RAW";
}

namespace {

HazardKind kindOf(const Access &first, const Access &second) {
  if (first.writes && second.reads)
    return HazardKind::Raw;
  return first.writes ? HazardKind::Waw : HazardKind::War;
}

uint32_t rangeOfWarps(unsigned first, unsigned count) { return uint32_t(((uint64_t(1) << count) - 1) << first); }

BarrierPoint barrierOf(BarrierOp<const Op> op, unsigned point) {
  BarrierPoint barrier{&*op, point, Scope::Cta, ~0u, {}};
  if (op.scope() == BarrierScope::Warp)
    barrier.scope = Scope::Warp;
  if (op.scope() != BarrierScope::Named)
    return barrier;
  barrier.warps = rangeOfWarps(*op.firstWarp(), *op.warps());
  if (op.groups() > 1) {
    barrier.scope = Scope::Group;
    barrier.grouping = {uint8_t(op.groups()), op.interleaved()};
  }
  return barrier;
}

bool contains(const llvm::BitVector &set, const llvm::BitVector &subset) { return !subset.test(set); }

/// Adds a path unless one inside it is there, and drops those around it.
void addPath(std::vector<Path> &paths, Path path) {
  if (llvm::any_of(paths, [&](const Path &other) { return contains(path.points, other.points); }))
    return;
  llvm::erase_if(paths, [&](const Path &other) { return contains(other.points, path.points); });
  paths.push_back(std::move(path));
}

/// The points passed after event `from` up to and with the one before event `to`'s op.
llvm::BitVector pointsBetween(const Timeline &timeline, unsigned from, unsigned to, unsigned size) {
  llvm::BitVector points(size);
  for (unsigned e = from + 1; e <= to; ++e)
    points.set(timeline.events[e].point);
  return points;
}

/// By accesses (their order is program order), scope with its groups, and whether no wait completes the source.
using HazardKey = std::tuple<unsigned, unsigned, Scope, Grouping, bool>;
using HazardMap = std::map<HazardKey, Hazard>;

void addMeeting(HazardMap &hazards, const Timeline &timeline, const Meeting &meeting, unsigned points) {
  const unsigned done = meeting.first.isAsync ? timeline.events[meeting.firstEvent].doneAt : meeting.firstEvent;
  const bool isUnfinished = done > meeting.secondEvent;
  auto [it, isNew] = hazards.try_emplace(
      {meeting.first.index, meeting.second.index, meeting.conflict.scope, meeting.conflict.grouping, isUnfinished});
  Hazard &hazard = it->second;
  if (isNew) {
    hazard.kind = kindOf(meeting.first, meeting.second);
    hazard.source = meeting.first;
    hazard.sink = meeting.second;
    hazard.isUnfinished = isUnfinished;
    hazard.conflict.scope = meeting.conflict.scope;
    hazard.conflict.grouping = meeting.conflict.grouping;
  }
  hazard.conflict.warps |= meeting.conflict.warps;
  if (meeting.first.buffer == meeting.second.buffer && meeting.first.buffer->isRing) {
    int64_t distance = 0;
    if (!llvm::SubOverflow(meeting.secondPosition, meeting.firstPosition, distance))
      hazard.distance = std::min(hazard.distance.value_or(distance), distance);
  }
  if (isUnfinished)
    return addPath(hazard.paths, {llvm::BitVector(points), timeline.steps});
  if (meeting.first.isAsync && !llvm::is_contained(hazard.waits, timeline.events[done].op))
    hazard.waits.push_back(timeline.events[done].op);
  addPath(hazard.paths, {pointsBetween(timeline, done, meeting.secondEvent, points), timeline.steps});
}

} // namespace

/// An op as ledgers name it. Which product it is, its result says; or, where that is staged, perhaps in the place of
/// another product's, its operands.
static std::string nameInLedger(const Op &op) {
  std::string title = titleOf(op).str();
  const auto product = dynCast<MmaOp>(op);
  if (!product)
    return title;
  const bool isStaged = product->acc().buffer->space == Space::Shared && product->form() != MmaForm::Abt;
  return title + " " + (isStaged ? product->a().buffer->name + product->b().buffer->name : product->acc().buffer->name);
}

std::string Hazard::title() const {
  std::string title = toString(kind).str() + " " + source.buffer->name;
  if (sink.buffer != source.buffer)
    title += "/" + sink.buffer->name;
  return title + ": " + nameInLedger(*source.op) + " -> " + nameInLedger(*sink.op);
}

bool BarrierPoint::orders(const Conflict &conflict) const {
  if (conflict.scope <= Scope::Warp)
    return true;
  if (scope == Scope::Warp || (conflict.warps & ~warps) != 0)
    return false;
  return scope == Scope::Cta || (conflict.scope == Scope::Group && grouping.contains(conflict.grouping));
}

HazardInfo::HazardInfo(const Kernel &kernel, const Role &role) : numbering(role) {
  AccessTable table(kernel, {&role});
  collect(kernel, role, table);
}

HazardInfo::HazardInfo(const Kernel &kernel, const Role &role, AccessTable &table) : numbering(role) {
  collect(kernel, role, table);
}

void HazardInfo::collect(const Kernel &kernel, const Role &role, AccessTable &table) {
  walk(role.body, [&](const Op &op) {
    if (op.kind == OpKind::Barrier)
      placed.push_back(barrierOf(BarrierOp(op), numbering.before(&op)));
  });
  for (const Access &access : table.accesses())
    if (table.leavesBuffer(access)) {
      why = numbering.nameOf(access.op) + " reaches over the end of %" + access.buffer->name +
            ", whose shape does not suit the kernel's constants";
      return;
    }
  addSelfConflicts(table);

  HazardMap hazards;
  forEachTimeline(kernel, role, numbering, why, [&](const Timeline &timeline) {
    forEachMeeting(timeline, table, Sources::All,
                   [&](const Meeting &meeting) { addMeeting(hazards, timeline, meeting, numbering.size()); });
  });
  for (auto &[key, hazard] : hazards) {
    llvm::sort(hazard.waits, [&](const Op *a, const Op *b) { return numbering.before(a) < numbering.before(b); });
    found.push_back(std::move(hazard));
  }
}

void HazardInfo::addSelfConflicts(AccessTable &table) {
  for (const Access &a : table.accesses())
    for (const Access &b : table.of(a.op)) {
      if (b.index < a.index || (!a.writes && !b.writes))
        continue;
      const bool meets = a.index == b.index
                             ? table.meetsItself(a)
                             : table.conflict(table.cellOf(a, 0), table.cellOf(b, 0)).scope > Scope::Thread;
      if (meets)
        racing.push_back(a.writes ? a : b);
    }
}

llvm::SmallVector<const Op *, 2> HazardInfo::covering(const Hazard &hazard, const Path &path) const {
  llvm::SmallVector<const Op *, 2> result;
  for (const BarrierPoint &barrier : placed)
    if (path.points.test(barrier.point) && barrier.orders(hazard.conflict))
      result.push_back(barrier.op);
  return result;
}

bool HazardInfo::isCovered(const Hazard &hazard, const Op *without) const {
  if (hazard.isUnfinished || hazard.conflict.scope == Scope::Thread)
    return !hazard.isUnfinished;
  return llvm::all_of(hazard.paths, [&](const Path &path) {
    return llvm::any_of(covering(hazard, path), [&](const Op *barrier) { return barrier != without; });
  });
}

const std::string &HazardInfo::openSteps(const Hazard &hazard) const {
  for (const Path &path : hazard.paths)
    if (covering(hazard, path).empty())
      return path.steps;
  return hazard.paths.front().steps;
}

std::string HazardInfo::describe(const Hazard &hazard) const {
  std::string text = toString(hazard.kind).str() + " " + hazard.source.buffer->name;
  if (hazard.sink.buffer != hazard.source.buffer)
    text += "/" + hazard.sink.buffer->name;
  text += ": " + numbering.nameOf(hazard.source.op) + " -> " + numbering.nameOf(hazard.sink.op);
  if (hazard.distance)
    text += " distance " + std::to_string(*hazard.distance);
  text += ", " + toString(hazard.conflict.scope).str();
  if (!isCovered(hazard)) {
    const std::string &steps = openSteps(hazard);
    text += hazard.isUnfinished ? ", open: no copy_wait completes it" : ", open: no barrier between";
    return steps.empty() ? text : text + " (" + steps + ")";
  }
  text += ", covered by";
  for (const Op *wait : hazard.waits)
    text += " " + numbering.nameOf(wait);
  if (hazard.conflict.scope == Scope::Thread)
    return text;
  for (const BarrierPoint &barrier : placed)
    if (llvm::any_of(hazard.paths,
                     [&](const Path &path) { return llvm::is_contained(covering(hazard, path), barrier.op); }))
      text += " " + numbering.nameOf(barrier.op);
  return text;
}
