// fagen: what expressions of integers come to: arithmetic that notices overflows, and simpler trees.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExprFold.h"

#include "fagen/IR/ExprAnalysis.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace fagen::ir;

namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::optional<int64_t> checkedArithmetic(ExprKind kind, int64_t a, int64_t b) {
  int64_t result = 0;
  const bool overflow = kind == ExprKind::Add   ? llvm::AddOverflow(a, b, result)
                        : kind == ExprKind::Sub ? llvm::SubOverflow(a, b, result)
                                                : llvm::MulOverflow(a, b, result);
  return overflow ? std::nullopt : std::optional(result);
}

/// Mod is C's %: the sign is that of the dividend. FloorDiv and CeilDiv round towards minus and plus infinity.
std::optional<int64_t> checkedDivision(ExprKind kind, int64_t a, int64_t b) {
  if (b == 0 || (a == kMin && b == -1))
    return std::nullopt;
  const int64_t quotient = a / b, remainder = a % b;
  if (kind == ExprKind::Mod)
    return remainder;
  if (kind == ExprKind::FloorMod)
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
  if (kind == ExprKind::FloorDiv)
    return quotient - (remainder != 0 && (remainder < 0) != (b < 0));
  return quotient + (remainder != 0 && (remainder < 0) == (b < 0));
}

/// Nothing for shifts by other than 0 to 31.
std::optional<int64_t> bits(ExprKind kind, int64_t a, int64_t b) {
  switch (kind) {
  case ExprKind::BitAnd:
    return a & b;
  case ExprKind::BitOr:
    return a | b;
  case ExprKind::BitXor:
    return a ^ b;
  default:
    break;
  }
  if (b < 0 || b > 31)
    return std::nullopt;
  return kind == ExprKind::ShiftLeft ? checkedArithmetic(ExprKind::Mul, a, int64_t(1) << b) : std::optional(a >> b);
}

bool isConstant(const Expr &expr) { return expr.kind() == ExprKind::Constant; }
bool isConstant(const Expr &expr, int64_t value) { return isConstant(expr) && expr.value() == value; }
bool isComparison(const Expr &expr) { return expr.kind() >= ExprKind::Lt; } // the kinds are in this order

/// x + c, with x - c for negative c and x + (c1 + c) for x = y + c1. Null when a sum would overflow.
Expr addConstant(const Expr &expr, int64_t addend) {
  const bool isSum = expr.kind() == ExprKind::Add || expr.kind() == ExprKind::Sub;
  if (!isSum || !isConstant(expr.rhs()))
    return {};
  int64_t inner = expr.rhs().value(), total = 0;
  if (expr.kind() == ExprKind::Sub && llvm::SubOverflow(int64_t(0), inner, inner))
    return {};
  if (llvm::AddOverflow(inner, addend, total) || total == kMin)
    return {};
  if (total == 0)
    return expr.lhs();
  return Expr::binary(ExprKind::Add, expr.lhs(), Expr::constant(total));
}

Expr foldSum(ExprKind kind, const Expr &lhs, const Expr &rhs) {
  if (isConstant(rhs, 0))
    return lhs;
  if (kind == ExprKind::Add && isConstant(lhs, 0))
    return rhs;
  if (kind == ExprKind::Sub && lhs == rhs && isOfIntegers(lhs)) // of real numbers the difference may be no number
    return Expr::constant(0);
  if (!isConstant(rhs) || rhs.value() == kMin)
    return {};
  const int64_t addend = kind == ExprKind::Add ? rhs.value() : -rhs.value();
  if (Expr folded = addConstant(lhs, addend))
    return folded;
  if (rhs.value() < 0) // x + -5 is x - 5
    return Expr::binary(kind == ExprKind::Add ? ExprKind::Sub : ExprKind::Add, lhs, Expr::constant(-rhs.value()));
  return {};
}

Expr foldProduct(ExprKind kind, const Expr &lhs, const Expr &rhs) {
  if (isConstant(rhs, 1))
    return kind == ExprKind::Mod || kind == ExprKind::FloorMod ? Expr::constant(0) : lhs;
  if (kind == ExprKind::Mul && isConstant(lhs, 1))
    return rhs;
  if (kind == ExprKind::Mul && (isConstant(lhs, 0) || isConstant(rhs, 0)))
    return Expr::constant(0);
  return {};
}

Expr foldExtreme(ExprKind kind, const Expr &lhs, const Expr &rhs) {
  const int64_t neutral = kind == ExprKind::Min ? kMax : kMin;
  if (lhs == rhs || isConstant(rhs, neutral))
    return lhs;
  if (isConstant(lhs, neutral))
    return rhs;
  if (lhs.kind() == kind && (lhs.lhs() == rhs || lhs.rhs() == rhs)) // min(min(a, b), b)
    return lhs;
  if (rhs.kind() == kind && (rhs.lhs() == lhs || rhs.rhs() == lhs))
    return rhs;
  return {};
}

/// Of two real constants.
Expr foldComparison(ExprKind kind, float a, float b) {
  switch (kind) {
  case ExprKind::Lt:
    return Expr::constant(a < b);
  case ExprKind::Le:
    return Expr::constant(a <= b);
  case ExprKind::Gt:
    return Expr::constant(a > b);
  case ExprKind::Ge:
    return Expr::constant(a >= b);
  case ExprKind::Eq:
    return Expr::constant(a == b);
  case ExprKind::Ne:
    return Expr::constant(a != b);
  default:
    return {};
  }
}

Expr foldLogic(ExprKind kind, const Expr &lhs, const Expr &rhs) {
  const bool neutral = kind == ExprKind::And;
  if (lhs == rhs && isTruth(lhs))
    return lhs;
  if (isConstant(lhs))
    return (lhs.value() != 0) != neutral ? Expr::constant(!neutral) : isComparison(rhs) ? rhs : Expr();
  if (isConstant(rhs))
    return (rhs.value() != 0) != neutral ? Expr::constant(!neutral) : isComparison(lhs) ? lhs : Expr();
  return {};
}

} // namespace

std::optional<int64_t> fagen::ir::applyBinary(ExprKind kind, int64_t a, int64_t b) {
  switch (kind) {
  case ExprKind::Add:
  case ExprKind::Sub:
  case ExprKind::Mul:
    return checkedArithmetic(kind, a, b);
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
  case ExprKind::Mod:
  case ExprKind::FloorMod:
    return checkedDivision(kind, a, b);
  case ExprKind::BitAnd:
  case ExprKind::BitOr:
  case ExprKind::BitXor:
  case ExprKind::ShiftLeft:
  case ExprKind::ShiftRight:
    return bits(kind, a, b);
  case ExprKind::Min:
    return std::min(a, b);
  case ExprKind::Max:
    return std::max(a, b);
  case ExprKind::Lt:
    return a < b;
  case ExprKind::Le:
    return a <= b;
  case ExprKind::Gt:
    return a > b;
  case ExprKind::Ge:
    return a >= b;
  case ExprKind::Eq:
    return a == b;
  case ExprKind::Ne:
    return a != b;
  case ExprKind::And:
    return a != 0 && b != 0;
  case ExprKind::Or:
    return a != 0 || b != 0;
  default: // of real numbers, or none of two integers
    return std::nullopt;
  }
}

Expr fagen::ir::fold(ExprKind kind, const Expr &lhs, const Expr &rhs) {
  if (isConstant(lhs) && isConstant(rhs))
    if (std::optional<int64_t> value = applyBinary(kind, lhs.value(), rhs.value()))
      return Expr::constant(*value);
  if (lhs.kind() == ExprKind::Real && rhs.kind() == ExprKind::Real)
    return foldComparison(kind, lhs.realValue(), rhs.realValue());
  switch (kind) {
  case ExprKind::Add:
  case ExprKind::Sub:
    return foldSum(kind, lhs, rhs);
  case ExprKind::Mul:
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
  case ExprKind::Mod:
  case ExprKind::FloorMod:
    return foldProduct(kind, lhs, rhs);
  case ExprKind::Min:
  case ExprKind::Max:
    return foldExtreme(kind, lhs, rhs);
  case ExprKind::And:
  case ExprKind::Or:
    return foldLogic(kind, lhs, rhs);
  default:
    return {};
  }
}
