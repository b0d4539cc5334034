// fagen: interval evaluation and monotony of expressions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/ExprAnalysis.h"

#include "fagen/IR/Queries.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <array>

using namespace fagen::ir;
using llvm::StringRef;

namespace {

/// The value at one corner, by the rules of Expr::evaluate.
std::optional<int64_t> corner(ExprKind kind, int64_t a, int64_t b) {
  return Expr::binary(kind, constant(a), constant(b)).evaluate([](StringRef) { return std::nullopt; });
}

/// The hull of the four corners: right for whatever is monotone in each operand alone.
std::optional<Interval> hull(ExprKind kind, Interval a, Interval b) {
  const std::array<std::optional<int64_t>, 4> values = {corner(kind, a.low, b.low), corner(kind, a.low, b.high),
                                                        corner(kind, a.high, b.low), corner(kind, a.high, b.high)};
  if (std::any_of(values.begin(), values.end(), [](const auto &value) { return !value; }))
    return std::nullopt;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return Interval{**low, **high};
}

/// |a % b| is below |b| and not above |a|; its sign is that of a.
std::optional<Interval> remainder(Interval a, Interval b) {
  if (b.low <= 0 && b.high >= 0)
    return std::nullopt;
  const int64_t least = std::numeric_limits<int64_t>::min();
  if (a.low == least || b.low == least)
    return std::nullopt;
  const int64_t most = std::max(std::abs(b.low), std::abs(b.high)) - 1;
  return Interval{a.low < 0 ? std::max(a.low, -most) : 0, a.high > 0 ? std::min(a.high, most) : 0};
}

/// Of a divisor that is positive.
std::optional<Interval> floorRemainder(Interval a, Interval b) {
  if (b.low <= 0)
    return std::nullopt;
  return a.low >= 0 && a.high < b.low ? a : Interval{0, b.high - 1};
}

Interval truth(bool alwaysTrue, bool alwaysFalse) { return {alwaysTrue ? 1 : 0, alwaysFalse ? 0 : 1}; }

std::optional<Interval> compare(ExprKind kind, Interval a, Interval b) {
  switch (kind) {
  case ExprKind::Lt:
    return truth(a.high < b.low, a.low >= b.high);
  case ExprKind::Le:
    return truth(a.high <= b.low, a.low > b.high);
  case ExprKind::Gt:
    return compare(ExprKind::Lt, b, a);
  case ExprKind::Ge:
    return compare(ExprKind::Le, b, a);
  case ExprKind::Eq:
    return truth(a.low == a.high && b.low == b.high && a.low == b.low, a.high < b.low || b.high < a.low);
  case ExprKind::Ne:
    return truth(a.high < b.low || b.high < a.low, a.low == a.high && b.low == b.high && a.low == b.low);
  default:
    return std::nullopt;
  }
}

std::optional<Interval> combineTruth(ExprKind kind, Interval a, Interval b) {
  const bool aTrue = a.low > 0 || a.high < 0, bTrue = b.low > 0 || b.high < 0;
  const bool aFalse = a.low == 0 && a.high == 0, bFalse = b.low == 0 && b.high == 0;
  if (kind == ExprKind::And)
    return truth(aTrue && bTrue, aFalse || bFalse);
  return truth(aTrue || bTrue, aFalse && bFalse);
}

/// Whether the value is 0 or 1; && and || of other values are not monotone.
bool isTruth(const Expr &expr) {
  return expr.kind() >= ExprKind::Lt || (expr.kind() == ExprKind::Constant && (expr.value() == 0 || expr.value() == 1));
}

Direction reversed(Direction direction) {
  if (direction == Direction::NotDecreasing)
    return Direction::NotIncreasing;
  if (direction == Direction::NotIncreasing)
    return Direction::NotDecreasing;
  return direction;
}

/// Of a function that grows in both of its operands.
Direction joined(Direction a, Direction b) {
  if (a == Direction::Constant)
    return b;
  if (b == Direction::Constant || a == b)
    return a;
  return Direction::Unknown;
}

/// Of `expr * factor` and `expr / factor`.
Direction scaled(Direction direction, const Expr &factor) {
  if (direction == Direction::Constant)
    return direction;
  if (isPositive(factor))
    return direction;
  if (factor.kind() != ExprKind::Constant)
    return Direction::Unknown;
  return factor.value() < 0 ? reversed(direction) : direction;
}

} // namespace

std::optional<Interval> fagen::ir::range(ExprKind kind, Interval a, Interval b) {
  switch (kind) {
  case ExprKind::Add:
  case ExprKind::Sub:
  case ExprKind::Mul:
  case ExprKind::Min:
  case ExprKind::Max:
    return hull(kind, a, b);
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
    return b.low <= 0 && b.high >= 0 ? std::nullopt : hull(kind, a, b);
  case ExprKind::Mod:
    return remainder(a, b);
  case ExprKind::FloorMod:
    return floorRemainder(a, b);
  case ExprKind::TileOf:
  case ExprKind::BitAnd:
  case ExprKind::BitOr:
  case ExprKind::BitXor:
  case ExprKind::ShiftLeft:
  case ExprKind::ShiftRight:
    return std::nullopt;
  case ExprKind::And:
  case ExprKind::Or:
    return combineTruth(kind, a, b);
  default:
    return compare(kind, a, b);
  }
}

std::optional<Interval> fagen::ir::range(const Expr &expr,
                                         llvm::function_ref<std::optional<Interval>(StringRef)> lookup) {
  if (expr.kind() == ExprKind::Constant)
    return Interval{expr.value(), expr.value()};
  if (expr.kind() == ExprKind::Variable)
    return lookup(expr.name());
  if (!expr.isBinary())
    return std::nullopt;
  const std::optional<Interval> a = range(expr.lhs(), lookup), b = range(expr.rhs(), lookup);
  return a && b ? range(expr.kind(), *a, *b) : std::nullopt;
}

bool fagen::ir::isPositive(const Expr &expr) {
  if (expr.kind() == ExprKind::Constant)
    return expr.value() > 0;
  if (expr.kind() == ExprKind::Max)
    return isPositive(expr.lhs()) || isPositive(expr.rhs());
  const RunValueInfo *const info = expr.kind() == ExprKind::Variable ? findRunValue(expr.name()) : nullptr;
  return info && (info->kind == RunKind::Count || info->kind == RunKind::Divisor);
}

bool fagen::ir::readsMemory(const Expr &expr) {
  return expr.kind() == ExprKind::Read || llvm::any_of(expr.operands(), readsMemory);
}

Expr fagen::ir::expand(const Kernel &kernel, Expr expr) {
  for (const Let &let : llvm::reverse(kernel.lets))
    if (let.value)
      expr = expr.substitute(let.name, let.value);
  for (const Constant &value : kernel.constants)
    expr = expr.substitute(value.name, constant(value.value));
  return expr;
}

llvm::StringSet<> fagen::ir::namesOfGroups(const Kernel &kernel) {
  llvm::StringSet<> names;
  names.insert(nameOf(RunValue::GroupRow));
  for (const Let &let : kernel.lets)
    if (let.value && usesAny(let.value, names))
      names.insert(let.name);
  return names;
}

bool fagen::ir::usesAny(const Expr &expr, const llvm::StringSet<> &names) {
  bool found = false;
  expr.forEachVariable([&](StringRef name) { found |= names.contains(name); });
  return found;
}

bool fagen::ir::usesAny(const Role &role, const llvm::StringSet<> &names) {
  bool found = false;
  walk(role.body, [&](const Op &op) { forEachExpr(op, [&](const Expr &expr) { found |= usesAny(expr, names); }); });
  return found;
}

Expr fagen::ir::atGroup(const Kernel &kernel, const Expr &expr, unsigned group) {
  const std::optional<unsigned> rows = rowsOfWarp(kernel);
  return rows ? expr.substitute(nameOf(RunValue::GroupRow), constant(int64_t(group) * kGroupWarps * *rows)) : expr;
}

/// Of a read whose values ascend along the last index.
static Direction directionOfAscending(const Expr &read, StringRef variable) {
  const llvm::ArrayRef<Expr> indices = read.indices();
  const bool isOfRow = llvm::none_of(indices.drop_back(), [&](const Expr &index) { return index.uses(variable); });
  return isOfRow ? direction(indices.back(), variable) : Direction::Unknown;
}

Direction fagen::ir::direction(const Expr &expr, StringRef variable) {
  if (!expr.uses(variable))
    return Direction::Constant;
  if (expr.kind() == ExprKind::Variable)
    return Direction::NotDecreasing;
  if (expr.kind() == ExprKind::Ascending && expr.operand().kind() == ExprKind::Read)
    return directionOfAscending(expr.operand(), variable);
  if (!expr.isBinary())
    return Direction::Unknown;
  const Direction lhs = direction(expr.lhs(), variable), rhs = direction(expr.rhs(), variable);
  switch (expr.kind()) {
  case ExprKind::Add:
  case ExprKind::Min:
  case ExprKind::Max:
    return joined(lhs, rhs);
  case ExprKind::And:
  case ExprKind::Or:
    return isTruth(expr.lhs()) && isTruth(expr.rhs()) ? joined(lhs, rhs) : Direction::Unknown;
  case ExprKind::Sub:
  case ExprKind::Gt:
  case ExprKind::Ge:
    return joined(lhs, reversed(rhs));
  case ExprKind::Lt:
  case ExprKind::Le:
    return joined(reversed(lhs), rhs);
  case ExprKind::Mul:
    return rhs == Direction::Constant   ? scaled(lhs, expr.rhs())
           : lhs == Direction::Constant ? scaled(rhs, expr.lhs())
                                        : Direction::Unknown;
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
    return rhs == Direction::Constant ? scaled(lhs, expr.rhs()) : Direction::Unknown;
  default:
    return Direction::Unknown;
  }
}

bool fagen::ir::seesMoreInLaterRows(const Kernel &kernel) {
  bool seesMore = false;
  for (const Role &role : kernel.roles)
    forEach<LoopOp>(role.body, [&](LoopOp<const Op> loop) {
      const Let *steps = letOf(kernel, loop.end());
      seesMore |=
          steps && direction(expand(kernel, steps->value), nameOf(RunValue::RowBegin)) == Direction::NotDecreasing;
    });
  return seesMore;
}

/// n of min(n, 1); null of other expressions.
static Expr cutAtOne(const Expr &expr) {
  return expr.kind() == ExprKind::Min && expr.rhs() == constant(1) ? expr.lhs() : Expr();
}

std::optional<OneStep> fagen::ir::oneStepOf(llvm::StringRef variable, const Expr &begin, const Expr &end) {
  const Expr step = ir::variable(variable);
  if (const Expr count = cutAtOne(end); count && begin == constant(0))
    return OneStep{begin, lessThan(step, count)};
  if (begin.kind() == ExprKind::Sub && begin.lhs() == end && begin.rhs() == min(end, constant(1)))
    return OneStep{end - constant(1), lessEqual(constant(0), step)};
  return std::nullopt;
}

bool fagen::ir::isMultiple(const Expr &expr, int64_t number) {
  if (expr.kind() == ExprKind::Constant)
    return expr.value() % number == 0;
  if (expr.kind() == ExprKind::Mul)
    return isMultiple(expr.lhs(), number) || isMultiple(expr.rhs(), number);
  const bool isOfBoth = expr.kind() == ExprKind::Add || expr.kind() == ExprKind::Sub || expr.kind() == ExprKind::Min ||
                        expr.kind() == ExprKind::Max;
  return isOfBoth && isMultiple(expr.lhs(), number) && isMultiple(expr.rhs(), number);
}
