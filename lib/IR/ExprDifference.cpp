// fagen: how far apart two expressions can be.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace fagen::ir;
using llvm::StringRef;

namespace {

/// Beyond it sums could leave 64 bits; sizes of tiles are far below.
constexpr int64_t kMost = int64_t(1) << 31;

/// Variables times whole numbers, and a constant.
struct Linear {
  llvm::StringMap<int64_t> factors;
  int64_t constant = 0;

  /// Adds `times` times the expression; false when it is not linear.
  bool add(const Expr &expr, int64_t times) {
    switch (expr.kind()) {
    case ExprKind::Constant:
      constant += times * expr.value();
      return std::abs(expr.value()) < kMost && std::abs(constant) < kMost;
    case ExprKind::Variable:
      factors[expr.name()] += times;
      return true;
    case ExprKind::Add:
      return add(expr.lhs(), times) && add(expr.rhs(), times);
    case ExprKind::Sub:
      return add(expr.lhs(), times) && add(expr.rhs(), -times);
    default:
      return false;
    }
  }

  bool isConstant() const {
    return std::all_of(factors.begin(), factors.end(), [](const auto &factor) { return factor.second == 0; });
  }
};

bool isDivision(const Expr &expr) {
  return (expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::CeilDiv) &&
         expr.rhs().kind() == ExprKind::Constant && expr.rhs().value() > 0 && expr.rhs().value() < kMost;
}

int64_t floorOf(int64_t a, int64_t b) { return llvm::divideFloorSigned(a, b); }
int64_t ceilOf(int64_t a, int64_t b) { return llvm::divideCeilSigned(a, b); }

/// Of a / k and b / k, k > 0, when a - b lies in `apart`.
Interval divided(ExprKind a, ExprKind b, Interval apart, int64_t k) {
  if (a == b)
    return {floorOf(apart.low, k), ceilOf(apart.high, k)};
  if (a == ExprKind::CeilDiv)
    return {ceilOf(apart.low, k), ceilOf(k - 1 + apart.high, k)};
  return {-ceilOf(k - 1 - apart.low, k), floorOf(apart.high, k)};
}

} // namespace

std::optional<Interval> fagen::ir::difference(const Expr &a, const Expr &b) {
  Linear linear;
  if (linear.add(a, 1) && linear.add(b, -1))
    return linear.isConstant() ? std::optional(Interval{linear.constant, linear.constant}) : std::nullopt;
  if (a == b)
    return Interval{0, 0};
  if (isDivision(a) && isDivision(b) && a.rhs().value() == b.rhs().value()) {
    const std::optional<Interval> apart = difference(a.lhs(), b.lhs());
    return apart ? std::optional(divided(a.kind(), b.kind(), *apart, a.rhs().value())) : std::nullopt;
  }
  if (a.kind() != b.kind() || (a.kind() != ExprKind::Min && a.kind() != ExprKind::Max))
    return std::nullopt;
  // The smaller (larger) of two moves by no more than the one that moves most.
  const std::optional<Interval> first = difference(a.lhs(), b.lhs()), second = difference(a.rhs(), b.rhs());
  if (!first || !second)
    return std::nullopt;
  return Interval{std::min(first->low, second->low), std::max(first->high, second->high)};
}
