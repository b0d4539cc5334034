// fagen: pass rotate-copies: copies in the order in which rotated products use them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where P V of tile j - 1 is issued after the scores of tile j (issue-products), V(j - 1) is wanted after K(j):
//
//   copy_issue k[0]                              the first products want it with Q, and its slot is free before Q's is
//   copy_issue q
//   loop j = 1 ..  copy_issue k[j]; copy_issue v[j - 1]
//   copy_issue v[last]
//
// A thread that waits for a slot keeps all later copies waiting, so none is issued before it is needed.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// The copy of the loop that products use so many steps after it; null where there is none.
const Op *copyWithLag(const Kernel &kernel, const Op &loop, int64_t lag) {
  return firstOf(loop.body, [&](const Op &op) {
    const auto copy = dynCast<CopyIssueOp>(op);
    return copy && lagOf(kernel, copy->dst().buffer) == lag;
  });
}

class CopyRotator {
public:
  CopyRotator(const Kernel &kernel, Role &load) : kernel(kernel), body(load.body) {}

  void run() {
    auto found = llvm::find_if(body.ops, [](const auto &op) { return op->kind == OpKind::Loop; });
    const std::unique_ptr<Op> all = std::move(*found);
    body.ops.erase(found);
    const LoopOp loop(*all);
    const Op &k = *copyWithLag(kernel, *all, 0), &v = *copyWithLag(kernel, *all, 1);
    tile = loop.variable().str();
    const Expr end = loop.end(), j = variable(tile), one = constant(1);
    body.ops.insert(body.ops.begin(),
                    part(loop, constant(0), min(end, one), [&](Ops &ops) { ops.push_back(copyOf(k, j)); }));
    body.ops.push_back(part(loop, one, end, [&](Ops &ops) {
      ops.push_back(copyOf(k, j));
      ops.push_back(copyOf(v, j - one));
    }));
    body.ops.push_back(part(loop, end - min(end, one), end, [&](Ops &ops) { ops.push_back(copyOf(v, j)); }));
  }

private:
  /// The copy, of tile `at`.
  std::unique_ptr<Op> copyOf(const Op &copy, const Expr &at) const {
    std::unique_ptr<Op> op = clone(copy);
    substitute(*op, tile, at);
    return op;
  }

  static std::unique_ptr<Op> part(LoopOp<> from, Expr begin, Expr end, llvm::function_ref<void(Ops &)> fill) {
    auto loop = makeLoop({.variable = from.variable().str(),
                          .begin = std::move(begin),
                          .end = std::move(end),
                          .name = from.name().str(),
                          .about = from.about().str(),
                          .location = from->location});
    fill(loop->body.ops);
    return loop;
  }

  const Kernel &kernel;
  Block &body;
  std::string tile; ///< the loop's variable
};

/// Whether products use something that it copies a step later.
bool isBehind(const Kernel &kernel, const Role &load) {
  return llvm::any_of(ringsFilledBy(load), [&](const Buffer *ring) { return lagOf(kernel, ring) > 0; });
}

bool fits(const Kernel &kernel, const Role &load, ShapeCheck &shape) {
  const Op *const loop = firstOf(load.body, OpKind::Loop);
  return shape.needs(
      loop && loop->body.ops.size() == 2 && copyWithLag(kernel, *loop, 0) && copyWithLag(kernel, *loop, 1) &&
          LoopOp(*loop).begin() == constant(0),
      "role " + load.name +
          " to have a loop from 0 on of two copies: of what products use in the same step, and in the next one",
      loop ? loop->location : Location());
}

} // namespace

bool fagen::rotateCopies(Kernel &kernel, PassContext &context) {
  llvm::SmallVector<Role *, 2> fillers = fillersOf(kernel);
  llvm::erase_if(fillers, [&](const Role *load) { return !isBehind(kernel, *load); });
  ShapeCheck shape(kernel, context, "rotate-copies");
  if (!llvm::all_of(fillers, [&](const Role *load) { return fits(kernel, *load, shape); }))
    return false;
  for (Role *load : fillers)
    CopyRotator(kernel, *load).run();
  return !fillers.empty();
}
