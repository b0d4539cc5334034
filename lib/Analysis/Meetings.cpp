// fagen: which instances of accesses meet in a timeline.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A timeline is read from its end. For each access and slot the next instance is kept, so that an instance is compared
// with those few, not with all that come after it.

#include "fagen/Analysis/Hazards.h"
#include "fagen/IR/Queries.h"

#include "llvm/ADT/SmallVector.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// An access at a position; null: none yet.
struct Instance {
  const Access *access = nullptr;
  unsigned event = 0;
  int64_t position = 0;
  unsigned cell = 0;
};

class MeetingFinder {
public:
  MeetingFinder(AccessTable &table, Sources sources, llvm::function_ref<void(const Meeting &)> visit)
      : table(table), sources(sources), visit(visit) {
    for (const Access &access : table.accesses()) {
      firstNext.push_back(next.size());
      next.resize(next.size() + access.buffer->stages);
    }
    firstNext.push_back(next.size());
  }

  void run(const Timeline &timeline) {
    for (unsigned e = timeline.events.size(); e-- > 0;) {
      const Event &event = timeline.events[e];
      if (!event.op || !event.active)
        continue;
      const llvm::ArrayRef<Access> accesses = table.of(event.op);
      auto instanceOf = [&](const Access &access) {
        const int64_t position = event.positions[access.operand];
        return Instance{&access, e, position, table.cellOf(access, position)};
      };
      for (const Access &access : accesses)
        if (sources == Sources::All || isThreadAsyncCopy(*access.op))
          visitAll(instanceOf(access));
      for (const Access &access : accesses) {
        const Instance instance = instanceOf(access);
        next[firstNext[access.index] + instance.cell - table.cellOf(access, 0)] = instance;
      }
    }
  }

private:
  /// Whether the threads that meet are one, which goes on in program order, or of one warp, which the second op itself
  /// brings together. What is still on its way waits for neither.
  static bool isOrdered(const Access &first, const Access &second, Scope scope) {
    return !first.isAsync && (scope == Scope::Thread || (scope == Scope::Warp && second.info().behindWarpBarrier));
  }

  void visitAll(const Instance &first) {
    for (unsigned access = 0; access + 1 < firstNext.size(); ++access) {
      const llvm::ArrayRef<Instance> slots =
          llvm::ArrayRef(next).slice(firstNext[access], firstNext[access + 1] - firstNext[access]);
      if (first.access->writes || table.accesses()[access].writes)
        visitNearest(first, slots);
    }
  }

  /// Of the slots of one access, the nearest that meets in each way.
  void visitNearest(const Instance &first, llvm::ArrayRef<Instance> slots) {
    llvm::SmallVector<std::pair<const Conflict *, const Instance *>, 4> nearest;
    for (const Instance &second : slots) {
      if (!second.access)
        continue;
      const Conflict &conflict = table.conflict(first.cell, second.cell);
      if (conflict.scope == Scope::None || isOrdered(*first.access, *second.access, conflict.scope))
        continue;
      auto same = llvm::find_if(nearest, [&](const auto &entry) {
        return entry.first->scope == conflict.scope && entry.first->grouping == conflict.grouping;
      });
      if (same == nearest.end())
        nearest.push_back({&conflict, &second});
      else if (second.event < same->second->event)
        *same = {&conflict, &second};
    }
    for (auto [conflict, second] : nearest)
      visit({*first.access, *second->access, first.event, second->event, first.position, second->position, *conflict});
  }

  AccessTable &table;
  const Sources sources;
  const llvm::function_ref<void(const Meeting &)> visit;
  std::vector<unsigned> firstNext; ///< by access: where its slots stand in `next`
  std::vector<Instance> next;
};

} // namespace

void fagen::forEachMeeting(const Timeline &timeline, AccessTable &table, Sources sources,
                           llvm::function_ref<void(const Meeting &)> visit) {
  MeetingFinder(table, sources, visit).run(timeline);
}
