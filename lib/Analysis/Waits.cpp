// fagen: exact counts for copy_waits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A copy is complete at a wait when at least `pending` groups were closed after its own. So each meeting of a copy with
// a later access asks that one of the waits between them has a count no larger than the number of younger groups
// there. The last wait before the access asks for the least; every open wait starts with the smallest number that its
// accesses ask for, and is then raised as far as the other waits allow.

#include "fagen/Analysis/Hazards.h"
#include "fagen/IR/Sync.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <set>

using namespace fagen;
using namespace fagen::ir;

namespace {

/// For each wait that could complete the copy, by its point: the largest count with which it does.
using Demand = std::map<unsigned, int64_t>;

class WaitResolver {
public:
  WaitResolver(Kernel &kernel, Role &role) : kernel(kernel), role(role), points(role) {}

  bool run() {
    walk(role.body, [&](Op &op) {
      if (syncOf(op).acquires == Means::CopyGroups && op.integer(Attr::Pending) < 0)
        waits.push_back(&op);
    });
    if (waits.empty())
      return true;
    bool isSound = collect();
    for (Op *wait : waits)
      start(*wait);
    for (Op *wait : waits)
      raise(*wait);
    isSound &= areAllMet();
    return isSound;
  }

private:
  /// Gathers what every timeline demands; false when some copy can be completed by no wait.
  bool collect() {
    bool isSound = true;
    std::string problem;
    AccessTable table(kernel, {&role});
    isSound &= forEachTimeline(kernel, role, points, problem, [&](const Timeline &timeline) {
      forEachMeeting(timeline, table, Sources::AsyncCopies, [&](const Meeting &meeting) {
        unsigned last = 0;
        Demand demand = demandOf(timeline, meeting, last);
        isSound &= !demand.empty();
        if (!demand.empty())
          demands.insert({last, std::move(demand)});
      });
    });
    return isSound;
  }

  Demand demandOf(const Timeline &timeline, const Meeting &meeting, unsigned &last) const {
    Demand demand;
    const Event &copy = timeline.events[meeting.firstEvent];
    if (copy.committedAt > meeting.secondEvent)
      return demand;
    for (unsigned e = copy.committedAt + 1; e < meeting.secondEvent; ++e) {
      const Event &event = timeline.events[e];
      if (!event.op || syncOf(*event.op).acquires != Means::CopyGroups)
        continue;
      last = event.point;
      int64_t &count = demand.try_emplace(event.point, 0).first->second;
      count = std::max<int64_t>(count, event.group - copy.group - 1);
    }
    return demand;
  }

  /// The smallest count that accesses after this wait, with no other wait between, ask for; 0 when none does.
  void start(Op &wait) {
    const unsigned point = points.before(&wait);
    std::optional<int64_t> count;
    for (const auto &[last, demand] : demands)
      if (last == point)
        count = std::min(count.value_or(demand.at(point)), demand.at(point));
    wait.set(Attr::Pending, count.value_or(0));
  }

  void raise(Op &wait) {
    const unsigned point = points.before(&wait);
    std::set<int64_t> candidates;
    for (const auto &[last, demand] : demands)
      if (auto it = demand.find(point); it != demand.end() && it->second > wait.integer(Attr::Pending))
        candidates.insert(it->second);
    for (int64_t candidate : candidates) {
      const int64_t before = wait.integer(Attr::Pending);
      wait.set(Attr::Pending, candidate);
      if (!areAllMet()) {
        wait.set(Attr::Pending, before);
        return;
      }
    }
  }

  bool areAllMet() const {
    return llvm::all_of(demands, [&](const std::pair<unsigned, Demand> &entry) {
      return llvm::any_of(entry.second, [&](const std::pair<const unsigned, int64_t> &choice) {
        return points[choice.first].op->integer(Attr::Pending) <= choice.second;
      });
    });
  }

  Kernel &kernel;
  Role &role;
  Points points;
  std::vector<Op *> waits;
  std::set<std::pair<unsigned, Demand>> demands; ///< with the last wait before the access
};

} // namespace

bool fagen::resolveWaits(Kernel &kernel) {
  bool isSound = true;
  for (Role &role : kernel.roles)
    isSound &= WaitResolver(kernel, role).run();
  return isSound;
}
