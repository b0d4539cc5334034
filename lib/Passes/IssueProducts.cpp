// fagen: pass issue-products: products of warp groups are asked for, and waited for where their results are used.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Without overlap, or with that of other warp groups only, each product stands alone:
//
//   fence; mma_issue; mma_commit; mma_wait 0
//
// With overlap = intra or both the loops over key tiles are rotated, so that P V of tile j - 1 runs under the softmax
// of tile j (FlashAttention-3, Shah et al., 2024). While it does nobody may touch O, so that rescale becomes two ops:
//
//   first step   S(0); wait; softmax(0)
//   step j       S(j), O += P V(j - 1); wait for S; row_max, rescale_rows, exp2, row_sum; wait for P V; convert P;
//                rescale_output
//   last step    O += P V(last); wait
//
// The first step is one of the masked kind, since it may be the only one; with a branch around its mask, since mostly
// it is not.

#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"
#include "fagen/Spec/Spec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

using Ops = std::vector<std::unique_ptr<Op>>;

Op &append(Ops &ops, OpKind kind, const Location &location) {
  ops.push_back(std::make_unique<Op>(kind));
  ops.back()->operands.resize(opInfo(kind).operands.size());
  ops.back()->location = location;
  return *ops.back();
}

void appendIssue(Ops &ops, const Op &product) {
  append(ops, OpKind::Fence, product.location).attributes["kind"] = std::string("mma");
  Op &issue = append(ops, OpKind::MmaIssue, product.location);
  std::copy(product.operands.begin(), product.operands.end(), issue.operands.begin());
  issue.attributes = product.attributes;
  append(ops, OpKind::MmaCommit, product.location);
}

void appendWait(Ops &ops, int64_t pending, const Location &location) {
  append(ops, OpKind::MmaWait, location).attributes["pending"] = pending;
}

void issueAlone(Block &block) {
  Ops ops;
  for (std::unique_ptr<Op> &op : block.ops) {
    issueAlone(op->body);
    if (op->kind != OpKind::Mma) {
      ops.push_back(std::move(op));
      continue;
    }
    appendIssue(ops, *op);
    appendWait(ops, 0, op->location);
  }
  block.ops = std::move(ops);
}

bool isProductLoop(const Op &op) {
  return op.kind == OpKind::Loop &&
         llvm::any_of(op.body.ops, [](const std::unique_ptr<Op> &inner) { return inner->kind == OpKind::Mma; });
}

class LoopRotator {
public:
  LoopRotator(Kernel &kernel, Block &body) : kernel(kernel), body(body) {}

  void run() {
    addAlpha();
    Ops ops;
    bool isFirst = true;
    for (std::unique_ptr<Op> &op : body.ops) {
      if (op->kind == OpKind::Loop) {
        if (std::exchange(isFirst, false))
          ops.push_back(firstStep());
        lastLoop = rotate(*op);
      } else if (lastLoop) {
        ops.push_back(lastStep());
        lastLoop = nullptr;
      }
      ops.push_back(std::move(op));
    }
    body.ops = std::move(ops);
  }

private:
  void addAlpha() {
    Buffer buffer = *firstOf(loops().front()->body, OpKind::Rescale)->operand("m").buffer;
    buffer.name = "alpha";
    alpha = &kernel.addBuffer(std::move(buffer));
  }

  llvm::SmallVector<const Op *, 2> loops() const {
    llvm::SmallVector<const Op *, 2> found;
    for (const std::unique_ptr<Op> &op : body.ops)
      if (op && op->kind == OpKind::Loop)
        found.push_back(op.get());
    return found;
  }

  static bool isMasked(const Op &loop) {
    return llvm::any_of(loop.body.ops, [](const std::unique_ptr<Op> &op) { return op->kind == OpKind::Mask; });
  }

  static const Op &productOf(const Op &loop, llvm::StringRef form) {
    for (const std::unique_ptr<Op> &op : loop.body.ops)
      if (op->kind == OpKind::Mma && op->text("form") == form)
        return *op;
    llvm_unreachable("a step has both products");
  }

  static std::unique_ptr<Op> copyOf(const Op &op) {
    auto copy = std::make_unique<Op>(op.kind);
    copy->operands = op.operands;
    copy->attributes = op.attributes;
    copy->location = op.location;
    copy->note = op.note;
    return copy;
  }

  std::unique_ptr<Op> makeLoop(const Op &from, llvm::StringRef name, Expr begin, Expr end) const {
    auto loop = std::make_unique<Op>(OpKind::Loop);
    loop->location = from.location;
    loop->attributes = {
        {"variable", from.text("variable").str()}, {"begin", begin}, {"end", end}, {"name", name.str()}};
    return loop;
  }

  std::unique_ptr<Op> firstStep() const {
    const llvm::SmallVector<const Op *, 2> all = loops();
    const bool maskedFirst = all.size() > 1 && isMasked(*all.front());
    const Op &masked = maskedFirst ? *all.front() : *all.back();
    std::unique_ptr<Op> loop = makeLoop(masked, "first", constant(0), min(all.back()->expr("end"), constant(1)));
    appendIssue(loop->body.ops, productOf(masked, "abt"));
    appendWait(loop->body.ops, 0, masked.location);
    appendSoftmax(loop->body.ops, masked, [](Ops &) {});
    for (std::unique_ptr<Op> &op : loop->body.ops)
      if (op->kind == OpKind::Mask && hasFullTiles())
        op->attributes["when"] = lessThan(variable("full_tiles"), maskedFirst ? variable("key_tiles") : constant(1));
    return loop;
  }

  bool hasFullTiles() const {
    return llvm::any_of(kernel.lets, [](const Let &let) { return let.name == "full_tiles"; });
  }

  /// Of the loop before, whose ops are rotated already.
  std::unique_ptr<Op> lastStep() const {
    const Expr end = lastLoop->expr("end");
    std::unique_ptr<Op> loop = makeLoop(*lastLoop, "last", end - min(end, constant(1)), end);
    appendIssue(loop->body.ops, *output);
    appendWait(loop->body.ops, 0, lastLoop->location);
    return loop;
  }

  /// What stands between the products, up to what needs P V to be complete: `finish` does that, and puts O in order.
  void appendSoftmax(Ops &ops, const Op &loop, llvm::function_ref<void(Ops &)> finish) const {
    for (const std::unique_ptr<Op> &op : loop.body.ops) {
      if (op->kind == OpKind::Mma || op->kind == OpKind::Place)
        continue;
      if (op->kind == OpKind::Rescale) {
        Op &rows = append(ops, OpKind::RescaleRows, op->location);
        rows.operands = {{alpha, {}}, op->operand("l"), op->operand("m"), op->operand("m_new")};
        rows.attributes = op->attributes;
        continue;
      }
      if (op->kind == OpKind::Convert)
        finish(ops);
      ops.push_back(copyOf(*op));
    }
  }

  /// The loop from its second tile on.
  Op *rotate(Op &loop) {
    const std::string variable = loop.text("variable").str();
    std::unique_ptr<Op> before = copyOf(productOf(loop, "ab"));
    Operand &v = before->operands[2];
    v.position = v.position.substitute(variable, ir::variable(variable) - constant(1));
    output = copyOf(productOf(loop, "ab"));
    Op *rescale = nullptr;
    for (const std::unique_ptr<Op> &op : loop.body.ops)
      rescale = op->kind == OpKind::Rescale ? op.get() : rescale;
    Ops ops;
    appendIssue(ops, productOf(loop, "abt"));
    appendIssue(ops, *before);
    appendWait(ops, 1, loop.location);
    appendSoftmax(ops, loop, [&](Ops &ops) { appendWait(ops, 0, before->location); });
    Op &scaled = append(ops, OpKind::RescaleOutput, rescale->location);
    scaled.operands = {rescale->operand("o"), {alpha, {}}};
    if (rescale->isSet("lazy"))
      scaled.attributes["lazy"] = int64_t(1);
    loop.body.ops = std::move(ops);
    const Expr begin = loop.expr("begin");
    loop.attributes["begin"] =
        begin.kind() == ExprKind::Constant ? constant(std::max<int64_t>(begin.value(), 1)) : max(begin, constant(1));
    return &loop;
  }

  Kernel &kernel;
  Block &body;
  Buffer *alpha = nullptr;
  Op *lastLoop = nullptr;
  std::unique_ptr<Op> output; ///< P V as the last loop had it
};

} // namespace

/// Whether P V of a step runs under the softmax of the next one.
static bool isRotated(const Kernel &kernel) {
  const Overlap overlap = kernel.hasConstant("kOverlap") ? Overlap(kernel.constant("kOverlap")) : Overlap::None;
  return overlap == Overlap::Intra || overlap == Overlap::Both;
}

/// Whether each loop of the role is a step that can be rotated.
static bool fits(const Role &role, ShapeCheck &shape) {
  for (const std::unique_ptr<Op> &op : role.body.ops) {
    if (op->kind != OpKind::Loop)
      continue;
    auto product = [&](llvm::StringRef form) {
      return firstOf(op->body,
                     [&](const Op &inner) { return inner.kind == OpKind::Mma && inner.text("form") == form; });
    };
    const Op *const output = product("ab");
    if (!shape.needs(product("abt") && output && countOf(op->body, OpKind::Mma) == 2,
                     "one product of form abt and one of form ab in each loop", op->location) ||
        !shape.needs(output->operand("b").position && output->operand("b").position.uses(op->text("variable")),
                     "a product that takes %v at the loop's position", output->location) ||
        !shape.needs(firstOf(op->body, OpKind::Rescale) && firstOf(op->body, OpKind::Convert),
                     "a rescale and a convert in each loop", op->location))
      return false;
  }
  return true;
}

bool fagen::issueProducts(Kernel &kernel, PassContext &context) {
  if (kernel.backend != "wgmma")
    return false;
  ShapeCheck shape(kernel, context, "issue-products");
  auto isRotatedRole = [&](const Role &role) { return isRotated(kernel) && firstOf(role.body, isProductLoop); };
  for (const Role &role : kernel.roles)
    if (isRotatedRole(role) && !fits(role, shape))
      return false;
  for (Role &role : kernel.roles)
    if (isRotatedRole(role))
      LoopRotator(kernel, role.body).run();
    else
      issueAlone(role.body);
  return true;
}
