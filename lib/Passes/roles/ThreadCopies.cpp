// fagen: tells of what threads copied when it has landed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread's copies go on alongside it, and only it can wait for them. So it asks for more before it waits: of a ring
// with S slots one is used and one is told of, and the others are on their way.
//
//   step j     copy_issue k[j]; copy_commit
//              copy_issue v[j]; copy_commit
//              copy_wait {pending = 2 late + 1}        k[j - late] has landed, late = S - 2
//              fence async_proxy; arrive k_full[j - late]
//              copy_wait {pending = 2 late}            v[j - late] has landed
//              fence async_proxy; arrive v_full[j - late]
//   at last    the same for the last `late` positions
//
// What is copied once, or in a loop of at most one step, is told of when all of that is asked for that no other loop
// comes between.
//
// An arrival that follows the copies by itself (cp.async.mbarrier.arrive.noinc) would need no wait. But it tells of
// copies alone: of a row that ends within a vector threads store the elements, and for products they fence what they
// wrote. Both want a thread that has seen its copies land.

#include "ThreadCopies.h"

#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

/// Whether there is at most one step.
static bool isOnce(const LoopOp<const Op> &loop) {
  return oneStepOf(loop.variable(), loop.begin(), loop.end()).has_value();
}

void ThreadCopies::add(const HandoverSite &fills, const Count &stages, Tell tell) {
  const HandoverUse &use = fills.back();
  const OpPlaces::Place &place = places.of(*use.anchor);
  const bool isInLoop = place.around && use.position;
  if (isInLoop && isOnce(LoopOp<const Op>(*place.around))) {
    const LoopOp<const Op> loop(*place.around);
    steps[places.of(*loop).block].fills.push_back({&*loop, use.position.substitute(loop.variable(), loop.begin()),
                                                   lessThan(loop.begin(), loop.end()), 0, std::move(tell)});
    return;
  }
  Step &step = steps[place.block];
  step.loop = isInLoop ? place.around : nullptr;
  const unsigned late = isInLoop && stages.number() > 2 ? stages.number() - 2 : 0;
  step.fills.push_back({use.op, use.position, {}, late, std::move(tell)});
}

static void append(Ops &ops, Ops more) { llvm::move(more, std::back_inserter(ops)); }

/// To the `if` before, where that asks the same.
static void appendIf(Ops &ops, const Expr &condition, Ops body) {
  if (!condition)
    return append(ops, std::move(body));
  const auto before = ops.empty() ? std::nullopt : dynCast<IfOp>(*ops.back());
  if (!before || before->condition() != condition)
    ops.push_back(makeIf({.condition = condition, .location = body.front()->location}));
  append(ops.back()->body.ops, std::move(body));
}

/// When so many groups at most are on their way.
static Ops told(const ThreadCopies::Tell &tell, const Expr &position, int64_t pending, const Location &location) {
  Ops ops;
  ops.push_back(
      makeCopyWait({.pending = pending, .location = location, .note = "order-roles: the thread's copies have landed"}));
  append(ops, tell(position));
  return ops;
}

/// A group is the oldest but for those that its step and `late` more closed after it.
void ThreadCopies::placeInLoop(const Step &step, std::map<const Op *, Ops> &after) const {
  const LoopOp<const Op> loop(*step.loop);
  const int64_t groups = step.fills.size();
  Ops &inStep = after[step.fills.back().last], &atLast = after[step.loop];
  const Expr now = variable(loop.variable());
  unsigned latest = 0;
  for (int64_t i = 0; i < groups; ++i) {
    const Fill &fill = step.fills[i];
    const Expr late = constant(fill.late);
    appendIf(inStep, fill.late == 0 ? Expr() : lessEqual(loop.begin() + late, now),
             told(fill.tell, fill.position.substitute(loop.variable(), now - late), fill.late * groups + groups - 1 - i,
                  fill.last->location));
    latest = std::max(latest, fill.late);
  }
  for (unsigned left = latest; left-- > 0;)
    for (int64_t i = 0; i < groups; ++i)
      if (const Fill &fill = step.fills[i]; left < fill.late)
        appendIf(atLast, lessThan(loop.begin() + constant(left), loop.end()),
                 told(fill.tell, fill.position.substitute(loop.variable(), loop.end() - constant(left + 1)),
                      left * groups + groups - 1 - i, fill.last->location));
}

void ThreadCopies::placeOnce(llvm::ArrayRef<Fill> fills, std::map<const Op *, Ops> &after) const {
  Ops &ops = after[fills.back().last];
  for (size_t i = 0; i < fills.size(); ++i)
    appendIf(ops, fills[i].condition,
             told(fills[i].tell, fills[i].position, int64_t(fills.size() - 1 - i), fills[i].last->location));
}

void ThreadCopies::sort(Step &step) const {
  llvm::stable_sort(step.fills, [this](const Fill &a, const Fill &b) { return indexOf(a) < indexOf(b); });
}

/// Loops that copy.
bool ThreadCopies::loopsBetween(const Block &block, const Fill &first, const Fill &second) const {
  return llvm::any_of(steps, [&](const auto &entry) {
    const Op *const loop = entry.second.loop;
    return loop && places.of(*loop).block == &block && indexOf(first) < places.of(*loop).index &&
           places.of(*loop).index < indexOf(second);
  });
}

void ThreadCopies::place(std::map<const Op *, Ops> &after) {
  for (auto &[block, step] : steps) {
    sort(step);
    for (const Fill &fill : step.fills) // also where no copy came before: waits count groups
      after[fill.last].push_back(makeCopyCommit({.location = fill.last->location}));
  }
  for (const auto &[block, step] : steps) {
    if (step.loop) {
      placeInLoop(step, after);
      continue;
    }
    for (llvm::ArrayRef<Fill> fills = step.fills; !fills.empty();) {
      size_t count = 1;
      while (count < fills.size() && !loopsBetween(*block, fills[count - 1], fills[count]))
        ++count;
      placeOnce(fills.take_front(count), after);
      fills = fills.drop_front(count);
    }
  }
}
