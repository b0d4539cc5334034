// fagen: the accesses of a role's ops, and which of their instances meet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop that was split or a prologue repeats ops; equal ones share a footprint. Whether two accesses meet depends
// only on their footprints and slots, so it is computed once for each two of those (a cell is a footprint in a slot).

#include "fagen/Analysis/Hazards.h"

#include "llvm/ADT/SmallBitVector.h"

#include <map>
#include <tuple>

using namespace fagen;
using namespace fagen::ir;

AccessTable::AccessTable(const Kernel &kernel, const Role &role) {
  const SharedMap map(kernel);
  std::map<std::tuple<OpKind, unsigned, std::string, std::string>, unsigned> shared;
  walk(role.body, [&](const Op &op) {
    const unsigned begin = all.size();
    for (unsigned i = 0; i < op.operands.size(); ++i) {
      const Buffer *buffer = op.operands[i].buffer;
      if (!buffer || buffer->space != Space::Shared)
        continue;
      const Effect effect = effectOn(op, i);
      const bool reads = effect != Effect::Write, writes = effect != Effect::Read;
      all.push_back({&op, i, buffer, reads, writes, writes && isAsyncCopy(op), unsigned(all.size())});
      const std::string form = op.kind == OpKind::Mma ? op.text("form").str() : std::string();
      auto [it, isNew] = shared.try_emplace({op.kind, i, buffer->name, form}, footprints.size());
      if (isNew) {
        firstCell.push_back(cells.size());
        for (unsigned slot = 0; slot < buffer->stages; ++slot)
          cells.push_back({unsigned(footprints.size()), map.baseOf(buffer, slot)});
        footprints.emplace_back(kernel, role, op, i);
      }
      footprintOf.push_back(it->second);
    }
    if (all.size() > begin)
      ranges[&op] = {begin, unsigned(all.size()) - begin};
  });
  known.resize(cells.size() * cells.size());
  isKnown.resize(known.size());
}

llvm::ArrayRef<Access> AccessTable::of(const Op *op) const {
  const auto [begin, count] = ranges.lookup(op);
  return llvm::ArrayRef<Access>(all).slice(begin, count);
}

unsigned AccessTable::cellOf(const Access &access, int64_t position) const {
  const int64_t stages = access.buffer->stages;
  const int64_t slot = stages == 1 ? 0 : ((position % stages) + stages) % stages;
  return firstCell[footprintOf[access.index]] + unsigned(slot);
}

const Conflict &AccessTable::conflict(unsigned a, unsigned b) {
  const size_t at = size_t(a) * cells.size() + b;
  if (!isKnown[at]) {
    known[at] =
        footprints[cells[a].footprint].conflictWith(cells[a].base, footprints[cells[b].footprint], cells[b].base);
    isKnown[at] = true;
  }
  return known[at];
}

void fagen::forEachMeeting(const Timeline &timeline, AccessTable &table, Sources sources,
                           llvm::function_ref<void(const Meeting &)> visit) {
  struct Instance {
    const Access *access;
    unsigned event;
    int64_t position;
    unsigned cell;
  };
  std::vector<Instance> instances;
  for (unsigned e = 0; e < timeline.events.size(); ++e)
    if (const Event &event = timeline.events[e]; event.op && event.active)
      for (const Access &access : table.of(event.op))
        instances.push_back(
            {&access, e, event.positions[access.operand], table.cellOf(access, event.positions[access.operand])});

  constexpr unsigned kScopes = 4;
  llvm::SmallBitVector seen;
  for (size_t i = 0; i < instances.size(); ++i) {
    const Instance &first = instances[i];
    if (sources == Sources::AsyncCopies && !first.access->isAsync)
      continue;
    seen.clear();
    seen.resize(table.accesses().size() * kScopes);
    for (size_t j = i + 1; j < instances.size(); ++j) {
      const Instance &second = instances[j];
      if (second.event == first.event || (!first.access->writes && !second.access->writes))
        continue;
      const Conflict &conflict = table.conflict(first.cell, second.cell);
      const bool isOrdered = conflict.scope == Scope::Thread && !first.access->isAsync;
      const unsigned key = second.access->index * kScopes + unsigned(conflict.scope);
      if (conflict.scope == Scope::None || isOrdered || seen.test(key))
        continue;
      seen.set(key);
      visit({*first.access, *second.access, first.event, second.event, first.position, second.position, conflict});
    }
  }
}
