// fagen: pass verify-products: what would make ptxas let each product of a warp group wait for the one before.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel that is free of races can still be one that ptxas serialises. The proof asks for the waits and fences of a
// product's own registers (C7513, and most of C7514 and C7515), and the text calls no function (C7509, C7510). What is
// left is found here, where ops can be named:
//
//   read        a loop whose products never all end reads sums under a product of others, and then issues the next
//               product that takes them, in the same step (C7514)
//   entered     a product goes on while its loop goes round, and others were issued between what its sums begin with
//               and the loop (C7515)
//   registers   what is held at a product is more than a thread has (C7511, C7512)
//
// Where products all end in each step, ptxas puts one more wait or fence at the most (C7517, C7519); whether it does
// depends on how it orders what threads do, so that is no rule of the text.
//
// Of IR from text. What a spec becomes is held to ptxas itself (test/Emit).

#include "fagen/Analysis/Access.h"
#include "fagen/Analysis/Timeline.h"
#include "fagen/IR/Measures.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Settling.h"
#include "fagen/Passes/Passes.h"

#include "products/HeldRegisters.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::Twine;

namespace {

using Issues = llvm::SmallSetVector<const Op *, 4>;

/// Products that may be under way, and what was done to sums meanwhile.
struct State {
  Issues open;                                      ///< not committed
  llvm::SmallVector<Issues, 4> groups;              ///< committed, the newest last
  llvm::DenseMap<const Buffer *, const Op *> read;  ///< in this step, under products of other sums: by whom
  llvm::DenseMap<const Buffer *, const Op *> begun; ///< by threads: the first product of others that was issued since

  Issues underWay() const {
    Issues all = open;
    for (const Issues &group : groups)
      all.insert(group.begin(), group.end());
    return all;
  }
  /// Whether nothing came in addition.
  bool operator==(const State &other) const {
    return open == other.open && llvm::equal(groups, other.groups) && begun == other.begun;
  }
};

void add(Issues &to, const Issues &from) { to.insert(from.begin(), from.end()); }

/// On one way or the other. Waits count the newest groups, so these meet.
void join(State &state, const State &other) {
  add(state.open, other.open);
  while (state.groups.size() < other.groups.size())
    state.groups.insert(state.groups.begin(), Issues());
  const size_t more = state.groups.size() - other.groups.size();
  for (size_t i = 0; i != other.groups.size(); ++i)
    add(state.groups[more + i], other.groups[i]);
  state.read.insert(other.read.begin(), other.read.end());
  for (const auto &[sums, issue] : other.begun)
    if (const Op *&its = state.begun.insert({sums, issue}).first->second; !its)
      its = issue;
}

const Buffer *sumsOf(const Op &issue) { return MmaIssueOp(issue).acc().buffer; }

bool makes(const Issues &issues, const Buffer *sums) {
  return llvm::any_of(issues, [&](const Op *issue) { return sumsOf(*issue) == sums; });
}

class ProductsUnderWay {
public:
  ProductsUnderWay(const Role &role, PassContext &context) : role(role), points(role), context(context) {}

  void run() {
    State state;
    go(role.body, state);
  }

private:
  void go(const Block &block, State &state) {
    for (const std::unique_ptr<Op> &op : block.ops)
      step(*op, state);
  }

  void step(const Op &op, State &state) {
    if (op.kind == OpKind::Loop)
      return around(op, state);
    if (op.kind == OpKind::MmaIssue)
      return issue(op, state);
    if (op.kind == OpKind::MmaCommit)
      return commit(state);
    if (op.kind == OpKind::MmaWait)
      return wait(MmaWaitOp(op).pending(), state);
    touch(op, state);
    State inside = state;
    go(op.body, inside);
    join(state, inside);
  }

  void issue(const Op &op, State &state) {
    const Buffer *const sums = sumsOf(op);
    if (const Op *reader = state.read.lookup(sums))
      taken.insert({&op, reader});
    state.read.erase(sums);
    state.begun.erase(sums);
    for (auto &[other, since] : state.begun)
      if (!since)
        since = &op;
    state.open.insert(&op);
  }

  /// No more groups than a wait can name: older ones are one.
  static void commit(State &state) {
    constexpr size_t kMostGroups = 8;
    state.groups.push_back(std::exchange(state.open, {}));
    if (state.groups.size() > kMostGroups) {
      add(state.groups[1], state.groups[0]);
      state.groups.erase(state.groups.begin());
    }
  }

  static void wait(int64_t pending, State &state) {
    if (state.groups.size() > size_t(pending))
      state.groups.erase(state.groups.begin(), state.groups.end() - pending);
    if (state.underWay().empty()) {
      state.groups.clear();
      state.read.clear();
    }
  }

  static void touch(const Op &op, State &state) {
    const Issues underWay = state.underWay();
    for (unsigned i = 0; i != op.operands.size(); ++i) {
      const Buffer *const buffer = op.operands[i].buffer;
      if (!buffer || buffer->space != Space::Fragment)
        continue;
      if (effectOn(op, i) != Effect::Write && !underWay.empty() && !makes(underWay, buffer))
        state.read.insert({buffer, &op});
      if (effectOn(op, i) != Effect::Read)
        state.begun[buffer] = nullptr;
    }
  }

  void around(const Op &loop, State &state) {
    const auto ofOuterStep = std::exchange(taken, decltype(taken)());
    const auto readBefore = std::exchange(state.read, decltype(state.read)());
    State begin = state, end;
    for (bool grows = true; grows;) {
      taken.clear();
      end = begin;
      go(loop.body, end);
      end.read.clear();
      const State before = begin;
      join(begin, end);
      grows = !(begin == before);
    }
    if (!end.underWay().empty())
      for (const auto &[issue, reader] : taken)
        failRead(*issue, *reader);
    taken = ofOuterStep;
    enter(state, end);
    join(state, end);
    if (!state.underWay().empty())
      state.read.insert(readBefore.begin(), readBefore.end());
  }

  void enter(const State &begin, const State &end) {
    const Issues before = begin.underWay();
    for (const Op *issue : end.underWay()) {
      const Buffer *const sums = sumsOf(*issue);
      const Op *const other = before.empty() ? begin.begun.lookup(sums) : before.front();
      if (MmaIssueOp(*issue).accumulate() && other && !makes(before, sums))
        fail(*issue, "goes on while the loop around goes round, and between what %" + sums->name +
                         " begins with and that loop " + nameOf(*other) +
                         " is issued: ptxas would let each product wait for the one before (C7515); make %" +
                         sums->name +
                         " after that product is complete, or put `mma_wait {pending = 0}` at the end of the loop");
    }
  }

  void failRead(const Op &issue, const Op &reader) {
    const std::string &name = sumsOf(issue)->name;
    fail(issue,
         "%" + name + " is read by " + nameOf(reader) +
             " while other products are under way, and in a loop in which these never all end this one takes it "
             "in the same step: ptxas would let each product wait for the one before (C7514); begin the step with "
             "this product, so that %" +
             name + " is read last, or put `mma_wait {pending = 0}` before " + nameOf(reader));
  }

  void fail(const Op &op, const Twine &message) {
    if (failed.insert(&op).second)
      context.diags.error(op.location, nameOf(op) + ": " + message);
  }

  std::string nameOf(const Op &op) const { return role.name + "." + points.nameOf(&op); }

  const Role &role;
  const Points points;
  PassContext &context;
  llvm::DenseMap<const Op *, const Op *> taken; ///< issued in this step after somebody read its sums
  llvm::SmallPtrSet<const Op *, 4> failed;
};

} // namespace

static void checkRegisters(const Kernel &kernel, const Role &role, PassContext &context) {
  const unsigned most = role.registers
                            ? role.registers
                            : unsigned(measureOf(kernel, Measure::MathRegisters).value_or(registersOfLaunch(kernel)));
  const HeldRegisters held = mostHeldAtProduct(role);
  if (!held.product || held.registers + kLeastBesideFragments <= most)
    return;
  std::string names;
  for (const Buffer *buffer : held.fragments)
    names += (names.empty() ? "%" : ", %") + buffer->name;
  context.diags.error(held.product->location,
                      role.name + "." + Points(role).nameOf(held.product) + ": " + names + " are held at once: " +
                          Twine(held.registers) + " registers a thread of the " + Twine(most) + " of role " +
                          role.name + ", and addresses and counters take some " + Twine(kLeastBesideFragments) +
                          ": ptxas would let each product wait for the one before (C7511, C7512); give the role more "
                          "(`warps 4 to 12 registers 240`, and `registers 24` to the one that copies), or take smaller "
                          "tiles");
}

/// What a warp multiplies by itself has text where it settles rows.
static void checkUnsettling(const Kernel &kernel, const Role &role, PassContext &context) {
  if (const Op *const product = findUnsettling(role.body))
    context.diags.error(product->location,
                        role.name + "." + Points(role).nameOf(product) + ": products by " + kernel.backend +
                            " are issued and waited for, but where a vote settles rows as settle-rows leaves them; "
                            "outside of votes write fence {kind = \"mma\"}, mma_issue, mma_commit and mma_wait "
                            "{pending = 0}, or go on from phase split, where issue-products does");
}

bool fagen::verifyProducts(Kernel &kernel, PassContext &context) {
  if (context.variant)
    return false;
  for (const Role &role : kernel.roles) {
    checkUnsettling(kernel, role, context);
    ProductsUnderWay(role, context).run();
    checkRegisters(kernel, role, context);
  }
  return false;
}
