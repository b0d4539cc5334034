// fagen: recognises what maps and reductions compute.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Patterns.h"

#include "fagen/IR/RunValues.h"

#include <limits>

using namespace fagen;
using namespace fagen::ir;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();

Expr ir::elementOf(const Buffer &buffer) { return variable("%" + buffer.name); }

Expr ir::finiteOf(const Expr &x) { return select(equal(x, real(-kInfinity)), real(0), x); }

/// x of finiteOf(x); null of another expression.
static Expr guardedBy(const Expr &expr) {
  if (expr.kind() != ExprKind::Select)
    return {};
  const Expr &x = expr.operands()[2];
  return expr == finiteOf(x) ? x : Expr();
}

Expr ir::assumeFinite(const Expr &expr) { return expr.rewritten(guardedBy); }

static bool isOfRows(const Buffer &buffer) { return buffer.columns == 1 && buffer.space == Space::Fragment; }

Expr ir::maskOf(const Buffer &scores, const Expr &visible) {
  return select(visible, elementOf(scores), real(-kInfinity));
}

bool ir::isMask(const Op &op) {
  const auto map = dynCast<MapOp>(op);
  if (!map || isOfRows(*map->dst().buffer) || map->value().kind() != ExprKind::Select)
    return false;
  const llvm::ArrayRef<Expr> parts = map->value().operands();
  return isOfPlaces(parts[0]) && map->value() == maskOf(*map->dst().buffer, parts[0]);
}

Expr ir::keptRowsOf(const Op &op) {
  const auto map = dynCast<MapOp>(op);
  if (!map || isOfRows(*map->dst().buffer) || map->value().kind() != ExprKind::Select)
    return {};
  const Expr kept = map->value().operands()[0];
  const bool isOfRow = isOfPlaces(kept) && !kept.uses(nameOf(RunValue::ElementKey)) && !readsMemory(kept);
  return isOfRow && map->value() == select(kept, elementOf(*map->dst().buffer), real(0)) ? kept : Expr();
}

Expr ir::powersOf(const Buffer &scores, const Expr &shift, const Expr &factor, ExponentOrder order) {
  const Expr s = elementOf(scores);
  return exp2(order == ExponentOrder::ProductsFirst ? s * factor - shift * factor : (s - shift) * factor);
}

std::optional<Powers> ir::asPowers(const Op &op) {
  const auto map = dynCast<MapOp>(op);
  if (!map || !map->x().buffer || isOfRows(*map->dst().buffer) || !isOfRows(*map->x().buffer) ||
      map->value().kind() != ExprKind::Exp2)
    return std::nullopt;
  const Expr &exponent = map->value().operand();
  const bool isProduct = exponent.kind() == ExprKind::Mul;
  const Expr &product = isProduct || exponent.kind() != ExprKind::Sub ? exponent : exponent.lhs();
  if (product.kind() != ExprKind::Mul)
    return std::nullopt;
  const Expr &factor = product.rhs();
  const Expr shift = elementOf(*map->x().buffer);
  const ExponentOrder order = isProduct ? ExponentOrder::DifferenceFirst : ExponentOrder::ProductsFirst;
  for (bool isGuarded : {false, true})
    if (map->value() == powersOf(*map->dst().buffer, isGuarded ? finiteOf(shift) : shift, factor, order))
      return Powers{&map->dst(), &map->x(), factor, isGuarded, order};
  return std::nullopt;
}

bool ir::isPowers(const Op &op) { return asPowers(op).has_value(); }

std::optional<float> ir::asFill(const Op &op) {
  const auto map = dynCast<MapOp>(op);
  if (!map || map->value().kind() != ExprKind::Real)
    return std::nullopt;
  const float value = map->value().realValue();
  const Buffer &dst = *map->dst().buffer;
  const bool isCleared = dst.space == Space::Fragment && value == 0;
  return isOfRows(dst) || isCleared ? std::optional(value) : std::nullopt;
}

bool ir::isSum(const Op &op) {
  const auto map = dynCast<MapOp>(op);
  return map && map->x().buffer && !isOfRows(*map->dst().buffer) &&
         map->value() == elementOf(*map->dst().buffer) + elementOf(*map->x().buffer);
}

Expr ir::quotientOf(const Buffer &dividend, const Buffer &divisor) {
  return select(equal(elementOf(divisor), real(0)), real(0), elementOf(dividend) / elementOf(divisor));
}

static bool holdsScores(const Kernel &kernel, const Buffer *buffer) {
  bool found = false;
  for (const Role &role : kernel.roles)
    forEach<MapOp>(role.body, [&](MapOp<const Op> map) {
      const auto powers = map.dst().buffer == buffer ? asPowers(*map) : std::nullopt;
      found |= powers && powers->scores->buffer == buffer;
    });
  return found;
}

static bool holdsWeights(const Kernel &kernel, const Buffer *buffer) {
  bool found = holdsScores(kernel, buffer);
  for (const Role &role : kernel.roles)
    forEach<ConvertOp>(role.body, [&](ConvertOp<const Op> convert) {
      found |= convert.p().buffer == buffer && holdsScores(kernel, convert.s().buffer);
    });
  return found;
}

bool ir::isOfScores(const Kernel &kernel, const Op &op) {
  auto isOf = [&](const auto &product) {
    return product && holdsScores(kernel, product->acc().buffer) && !holdsWeights(kernel, product->a().buffer);
  };
  return isOf(dynCast<MmaOp>(op)) || isOf(dynCast<MmaIssueOp>(op));
}

bool ir::isQuotient(const Op &op) {
  const auto map = dynCast<MapOp>(op);
  return map && map->x().buffer && !isOfRows(*map->dst().buffer) && isOfRows(*map->x().buffer) &&
         map->value() == quotientOf(*map->dst().buffer, *map->x().buffer);
}

bool ir::isReduction(const Op &op, Reduction what) {
  const auto reduce = dynCast<ReduceOp>(op);
  return reduce && reduce->op() == what;
}

bool ir::isSame(const Op &a, const Op &b) {
  auto isSameOperand = [](const Operand &x, const Operand &y) {
    return x.buffer == y.buffer && x.position == y.position;
  };
  auto isSameOp = [](const std::unique_ptr<Op> &x, const std::unique_ptr<Op> &y) { return isSame(*x, *y); };
  return a.kind == b.kind && llvm::equal(a.operands, b.operands, isSameOperand) && a.attributes == b.attributes &&
         llvm::equal(a.body.ops, b.body.ops, isSameOp);
}

llvm::StringRef ir::titleOf(const Op &op) {
  if (const auto reduce = dynCast<ReduceOp>(op))
    return toString(reduce->op());
  return isMask(op)       ? "mask"
         : isPowers(op)   ? "exp2"
         : asFill(op)     ? "fill"
         : isSum(op)      ? "add"
         : isQuotient(op) ? "divide"
                          : llvm::StringRef(opInfo(op.kind).name);
}
