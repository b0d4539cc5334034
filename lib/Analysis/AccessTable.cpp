// fagen: the accesses of a kernel's ops, and which of their instances meet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop that was split or a prologue repeats ops; equal ones share a footprint. Whether two accesses meet depends
// only on their footprints and slots, so it is computed once for each two of those (a cell is a footprint in a slot).

#include "fagen/Analysis/AccessTable.h"

#include "fagen/Analysis/GlobalRows.h"
#include "fagen/Analysis/OwnTiles.h"
#include "fagen/IR/Queries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"

#include <map>

using namespace fagen;
using namespace fagen::ir;

/// What makes two accesses of a role alike: the same threads touch the same bytes of the same buffer. In global memory
/// no two are: each op names rows.
static std::string likenessOf(unsigned role, const Op &op, unsigned operand) {
  std::string text = std::to_string(role) + " " + std::to_string(unsigned(op.kind)) + " " + std::to_string(operand) +
                     " " + op.operands[operand].buffer->name;
  for (Attr attribute : {Attr::Form, Attr::By, Attr::Kind, Attr::Reach})
    if (op.has(attribute))
      text += " " + op.text(attribute).str();
  text += op.operands.front().buffer && op.operands.front().buffer->space == Space::Fragment ? " f" : "";
  if (op.operands[operand].buffer->space == Space::Global)
    text += " " + std::to_string(uintptr_t(&op));
  return text;
}

/// Of a copy what it writes, of a store what it reads: who waits for it is told of no more.
static bool isAsync(const SyncInfo &sync, const Buffer &buffer, bool writes) {
  switch (sync.done) {
  case Means::CopyGroups:
  case Means::Phases:
    return writes;
  case Means::StoreGroups:
    return buffer.space == Space::Shared;
  default:
    return sync.done != Means::Nothing;
  }
}

/// A bulk copy signals its mbarrier by the same proxy.
static bool isByAsyncProxy(const SyncInfo &sync, const Buffer &buffer) {
  return sync.agent == Agent::AsyncProxy || (sync.agent == Agent::TensorCores && buffer.space == Space::Shared);
}

AccessTable::AccessTable(const Kernel &kernel, llvm::ArrayRef<const Role *> roles)
    : kernel(kernel), roles(roles), map(kernel) {
  std::map<std::string, unsigned> alike; // the first cell
  conflicts.emplace_back();
  findOfInterest();
  for (unsigned role = 0; role < this->roles.size(); ++role) {
    const llvm::DenseSet<const Op *> fenced = fencedOps(*this->roles[role]);
    walk(this->roles[role]->body, [&](const Op &op) {
      const unsigned begin = all.size();
      const SyncInfo &sync = syncOf(op);
      for (unsigned i = 0; i < op.operands.size(); ++i) {
        const Buffer *buffer = op.operands[i].buffer;
        if (!buffer || (buffer->space != Space::Shared && !ofInterest.contains({role, buffer})))
          continue;
        const Effect effect = effectOn(op, i);
        const bool reads = effect != Effect::Write, writes = effect != Effect::Read;
        all.push_back({&op, i, buffer, reads, writes, isAsync(sync, *buffer, writes), isByAsyncProxy(sync, *buffer),
                       role, unsigned(all.size()), fenced.contains(&op) ? Means::Nothing : sync.needsFence});
        auto [it, isNew] = alike.try_emplace(likenessOf(role, op, i), cells.size());
        if (isNew)
          addCells(all.back());
        firstCell.push_back(it->second);
      }
      if (all.size() > begin)
        ranges[&op] = {begin, unsigned(all.size()) - begin};
    });
  }
  known.resize(cells.size() * cells.size(), kNone);
}

/// Whether the ops touch columns of a tensor that the others leave alone: bulk stores of slices of results.
static bool areDisjointSlices(llvm::ArrayRef<const Op *> uses) {
  llvm::SmallSet<int64_t, 4> firsts;
  return llvm::all_of(uses, [&](const Op *op) { // the first of them is asked first
    const auto store = dynCast<BulkStoreOp>(*op);
    if (!store || !op->has(Attr::First))
      return false;
    const Buffer *slice = store->src().buffer;
    return slice == BulkStoreOp(*uses.front()).src().buffer && store->first() % slice->columns == 0 &&
           firsts.insert(store->first()).second;
  });
}

/// Fragments of products in flight, and global buffers that are written and used again.
void AccessTable::findOfInterest() {
  llvm::DenseMap<const Buffer *, llvm::SmallVector<const Op *, 4>> uses;
  llvm::DenseSet<const Buffer *> written;
  for (unsigned role = 0; role < roles.size(); ++role)
    walk(roles[role]->body, [&](const Op &op) {
      for (unsigned i = 0; i < op.operands.size(); ++i) {
        const Buffer *buffer = op.operands[i].buffer;
        if (!buffer)
          continue;
        if (buffer->space == Space::Fragment && syncOf(op).agent == Agent::TensorCores)
          ofInterest.insert({role, buffer});
        uses[buffer].push_back(&op);
        if (effectOn(op, i) != Effect::Read)
          written.insert(buffer);
      }
    });
  for (const Buffer *buffer : written)
    if (buffer->space == Space::Global && uses[buffer].size() > 1 && !areDisjointSlices(uses[buffer]))
      for (unsigned role = 0; role < roles.size(); ++role)
        ofInterest.insert({role, buffer});
}

void AccessTable::addCells(const Access &access) {
  if (access.buffer->space != Space::Shared) {
    cells.push_back({kNone, 0, access.index});
    return;
  }
  for (unsigned slot = 0; slot < access.buffer->stages; ++slot)
    cells.push_back({unsigned(footprints.size()), map.baseOf(access.buffer, slot), access.index});
  footprints.push_back(&fagen::footprintOf(kernel, *roles[access.role], *access.op, access.operand));
}

llvm::ArrayRef<Access> AccessTable::of(const Op *op) const {
  const auto [begin, count] = ranges.lookup(op);
  return llvm::ArrayRef<Access>(all).slice(begin, count);
}

const Footprint *AccessTable::footprintOf(const Access &access) const {
  const unsigned footprint = cells[firstCell[access.index]].footprint;
  return footprint == kNone ? nullptr : footprints[footprint];
}

bool AccessTable::meetsItself(const Access &access) const {
  const Footprint *footprint = footprintOf(access);
  return footprint && footprint->meetsItself();
}

bool AccessTable::leavesBuffer(const Access &access) const {
  const Footprint *footprint = footprintOf(access);
  return footprint && footprint->leavesBuffer();
}

unsigned AccessTable::findConflict(unsigned a, unsigned b) {
  Conflict conflict = compute(cells[a], cells[b]);
  if (conflict.scope == Scope::None)
    return 0;
  conflicts.push_back(conflict);
  return unsigned(conflicts.size() - 1);
}

llvm::ArrayRef<Neighbour> AccessTable::neighboursOf(const Access &access, int64_t position) {
  const unsigned cell = cellOf(access, position);
  neighbours.resize(all.size());
  std::vector<Neighbours> &bySlot = neighbours[access.index];
  bySlot.resize(access.buffer->stages);
  Neighbours &found = bySlot[cell - firstCell[access.index]];
  if (!found.areKnown)
    found = {true, findNeighbours(access, cell)};
  return found.list;
}

std::vector<Neighbour> AccessTable::findNeighbours(const Access &access, unsigned cell) {
  std::vector<Neighbour> found;
  for (const Access &other : all)
    for (unsigned slot = 0; (other.writes || access.writes) && slot < other.buffer->stages; ++slot)
      if (const Conflict &meeting = conflict(firstCell[other.index] + slot, cell); meeting.scope != Scope::None)
        found.push_back({other.index, slot, &meeting});
  return found;
}

std::string AccessTable::text() {
  std::string text;
  auto add = [&](std::initializer_list<uint64_t> numbers) {
    for (const uint64_t number : numbers)
      text.append(reinterpret_cast<const char *>(&number), sizeof(number));
  };
  llvm::DenseMap<const Op *, unsigned> ops;
  for (const Role *role : roles)
    walk(role->body, [&](const Op &op) { ops.try_emplace(&op, ops.size()); });
  llvm::DenseMap<const Buffer *, unsigned> buffers;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    buffers.try_emplace(buffer.get(), buffers.size());
  for (const Access &access : all)
    add({ops.lookup(access.op), access.operand, buffers.lookup(access.buffer), access.reads, access.writes,
         access.isAsync, access.isByAsyncProxy, access.role, uint64_t(access.needsFence), firstCell[access.index],
         meetsItself(access), leavesBuffer(access)});
  for (unsigned a = 0; a < cells.size(); ++a)
    for (unsigned b = 0; b < cells.size(); ++b)
      if (const Conflict &met = conflict(a, b); met.scope != Scope::None) {
        add({a, b, uint64_t(met.scope), met.grouping.count, met.grouping.isInterleaved, met.warps});
        text.append(reinterpret_cast<const char *>(met.meets.data()), sizeof(met.meets));
      }
  return text;
}

static uint32_t warpsOf(const Role &role) { return uint32_t(((uint64_t(1) << role.warps) - 1) << role.firstWarp); }

Conflict AccessTable::computeApart(const Access &first, const Access &second) const {
  const Role &from = *roles[first.role], &to = *roles[second.role];
  const bool isSameRole = first.role == second.role, isFragment = first.buffer->space == Space::Fragment;
  Conflict conflict;
  if (first.buffer != second.buffer || (isFragment && !isSameRole)) // each role has its own registers of that name
    return conflict;
  if (first.buffer->space == Space::Global && first.op != second.op &&
      reachApart(kernel, from, *first.op, to, *second.op))
    return conflict;
  conflict.warps = warpsOf(from) | warpsOf(to);
  conflict.scope = Scope::Cta;
  if (isFragment || (first.op == second.op && first.operand == second.operand))
    conflict.scope = Scope::Thread;
  else if (isSameRole && first.info().rowsOfWarps && second.info().rowsOfWarps &&
           nameSameRows(kernel, from, *first.op, *second.op))
    conflict.scope = Scope::Warp;
  for (unsigned w = from.firstWarp; conflict.scope != Scope::Thread && w < from.firstWarp + from.warps; ++w)
    conflict.meets[w] = conflict.scope == Scope::Warp ? uint32_t(1) << w : warpsOf(to);
  return conflict;
}

Conflict AccessTable::compute(const Cell &a, const Cell &b) const {
  const Access &first = all[a.access], &second = all[b.access];
  const bool isShared = a.footprint != kNone && b.footprint != kNone;
  Conflict conflict = isShared ? conflictOf(*footprints[a.footprint], a.base, *footprints[b.footprint], b.base)
                               : computeApart(first, second);
  if (conflict.scope == Scope::Cta && first.role == second.role) {
    conflict.grouping = findGrouping(*roles[first.role], conflict);
    if (conflict.grouping.count > 1)
      conflict.scope = Scope::Group;
  }
  return conflict;
}
