// fagen: pass rotate-copies: copies in the order in which rotated products use them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where P V of tile j - 1 is asked for behind the scores of tile j (issue-products), V(j - 1) is wanted after K(j):
//
//   copy_issue k[0]                              the first products want it with Q, and its slot is free before Q's is
//   copy_issue q
//   loop j = 1 ..  copy_issue k[j]; copy_issue v[j - 1]
//   copy_issue v[last]
//
// A thread that waits for a slot keeps all later copies waiting, so none is asked for before it is needed.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

class CopyRotator {
public:
  explicit CopyRotator(Role &load) : body(load.body) {}

  void run() {
    auto found = llvm::find_if(body.ops, [](const auto &op) { return op->kind == OpKind::Loop; });
    const std::unique_ptr<Op> all = std::move(*found);
    body.ops.erase(found);
    const LoopOp loop(*all);
    const Op &k = *all->body.ops[0], &v = *all->body.ops[1];
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
                          .location = from->location});
    fill(loop->body.ops);
    return loop;
  }

  Block &body;
  std::string tile; ///< the loop's variable
};

/// Rotated products end with P V of the last tile.
bool isRotated(const Role &math) {
  return llvm::any_of(math.body.ops, [](const auto &op) {
    const auto loop = dynCast<LoopOp>(*op);
    return loop && loop->name() == "last";
  });
}

bool fits(const Role &load, ShapeCheck &shape) {
  const Op *const loop = firstOf(load.body, OpKind::Loop);
  return shape.needs(loop && loop->body.ops.size() == 2 && countOf(loop->body, OpKind::CopyIssue) == 2 &&
                         LoopOp(*loop).begin() == constant(0),
                     "role " + load.name + " to have a loop from 0 on that copies one tile of K and one of V",
                     loop ? loop->location : Location());
}

} // namespace

bool fagen::rotateCopies(Kernel &kernel, PassContext &context) {
  if (!kernel.hasConstant("kLoadWarps") || kernel.roles.size() != 2 || !isRotated(kernel.roles.back()))
    return false;
  ShapeCheck shape(kernel, context, "rotate-copies");
  if (!fits(kernel.roles.front(), shape))
    return false;
  CopyRotator(kernel.roles.front()).run();
  return true;
}
