// fagen: follows what warps do with their registers while products are in flight.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FragmentOrder.h"

#include <limits>
#include <map>

using namespace fagen;
using namespace fagen::ir;

FragmentOrder::FragmentOrder(const ExecutionPlan &plan, AccessTable &table, const ExecutionObserver &observer)
    : plan(plan), table(table), observer(observer) {
  const size_t accesses = plan.accesses().size();
  told.assign(accesses * accesses, std::numeric_limits<int64_t>::max());
  unsigned count = 0;
  for (const Access &access : plan.accesses()) {
    firstInstance.push_back(count);
    count += access.buffer->space == Space::Fragment ? access.buffer->stages.number() : 0;
  }
  instances.resize(count);
  findMembers();
}

void FragmentOrder::findMembers() {
  constexpr unsigned kMost = 64;
  std::map<std::pair<unsigned, const Buffer *>, std::vector<unsigned>> fragments; // by role and buffer
  for (const Access &access : plan.accesses())
    if (access.buffer->space == Space::Fragment && !access.buffer->isRing)
      fragments[{access.role, access.buffer}].push_back(access.index);
  members.resize(plan.accesses().size());
  compared.resize(plan.accesses().size());
  for (const auto &[fragment, accesses] : fragments) {
    for (unsigned i = 0; i < accesses.size() && accesses.size() <= kMost; ++i)
      members[accesses[i]] = {unsigned(uses.size()), uint64_t(1) << i};
    uses.emplace_back();
  }
}

void FragmentOrder::follow(unsigned role, llvm::ArrayRef<int64_t> course) {
  instances.assign(instances.size(), {});
  uses.assign(uses.size(), {});
  step = fence = closed = 0;
  complete = {};
  while (!course.empty()) {
    const PlannedOp &op = plan.op(role, unsigned(course.front()));
    course = course.drop_front();
    ++step;
    llvm::SmallVector<int64_t, 3> positions;
    for (const Access *access : op.fragments) {
      positions.push_back(access->buffer->isRing ? course.front() : 0);
      course = course.drop_front(access->buffer->isRing);
      check(*access, positions.back());
    }
    if (!execute(op))
      return;
    for (const auto &[access, position] : llvm::zip(op.fragments, positions))
      remember(*access, position);
  }
}

void FragmentOrder::remember(const Access &access, int64_t position) {
  instanceOf(access, slotAt(*access.buffer, position)) = {step, access.isAsync ? closed + 1 : 0, position};
  if (members[access.index].bit == 0)
    return;
  Use &use = uses[members[access.index].fragment];
  use.accesses |= members[access.index].bit;
  (access.isAsync ? use.product : use.step) = access.isAsync ? closed + 1 : step;
}

/// The PTX ISA asks for a fence before a warp's first product, whatever was written.
bool FragmentOrder::execute(const PlannedOp &op) {
  if (op.sync.done == Means::ProductGroups && fence == 0) {
    observer.fail(*op.op, "no fence of kind mma before the first product");
    return false;
  }
  if (op.sync.acquires == Means::ProductGroups)
    if (const int64_t done = int64_t(closed) - op.pending; done > int64_t(complete.value()))
      complete = {unsigned(done), uint32_t(op.number) << 16 | op.number};
  if (op.sync.releases == Means::ProductGroups)
    ++closed;
  if (op.sync.releases == Means::ProductFence)
    fence = step + 1;
  return true;
}

/// Whether all before it are in order with it, and none of them is news.
bool FragmentOrder::isSettled(const Access &second) const {
  const Member &member = members[second.index];
  const Use &use = uses[member.fragment];
  return member.bit != 0 && (use.accesses & ~compared[second.index]) == 0 &&
         (second.isAsync ? use.step == 0 || fence > use.step : complete.value() >= use.product);
}

void FragmentOrder::check(const Access &second, int64_t position) {
  if (isSettled(second))
    return;
  for (const Neighbour &neighbour : table.neighboursOf(second, position)) {
    const Access &first = plan.accesses()[neighbour.access];
    if (!first.isAsync && !second.isAsync) // in the order of the program
      continue;
    if (const Instance &instance = instanceOf(first, neighbour.slot); instance.step != 0)
      compare(first, instance, second, position);
  }
  if (const Member &member = members[second.index]; member.bit != 0)
    compared[second.index] |= uses[member.fragment].accesses;
}

/// Products follow each other in the order of their groups; one needs a fence after what the warp itself has done.
void FragmentOrder::compare(const Access &first, const Instance &instance, const Access &second, int64_t position) {
  Gap gap = Gap::None;
  if (first.isAsync && !second.isAsync && complete.value() < instance.group)
    gap = Gap::Incomplete;
  if (!first.isAsync && fence <= instance.step)
    gap = Gap::ProductFence;
  int64_t &known = told[size_t(first.index) * plan.accesses().size() + second.index];
  const int64_t distance = position - instance.position;
  if (gap == Gap::None && distance >= known)
    return;
  known = std::min(known, distance);
  observer.meet(first, second, instance.position, position, textOf(gap, first),
                first.isAsync && !second.isAsync ? complete : Known());
}
