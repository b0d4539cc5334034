// fagen: how far apart two expressions can be.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace fagen::ir;
using llvm::StringRef;

namespace {

/// Beyond it sums could leave 64 bits; sizes of tiles are far below.
constexpr int64_t kMost = int64_t(1) << 31;
constexpr bool isSmall(int64_t value) { return -kMost < value && value < kMost; }

/// Variables and elements of tensors times whole numbers, quotients by counts of heads, and a constant.
struct Linear {
  struct Quotient {
    Expr expr;
    int64_t times;
  };
  llvm::StringMap<int64_t> factors;
  llvm::SmallVector<Quotient, 2> quotients;
  int64_t constant = 0;

  /// Adds `times` times the expression; false when it is not linear.
  bool add(const Expr &expr, int64_t times) {
    switch (expr.kind()) {
    case ExprKind::Constant:
      if (!isSmall(expr.value())) // before it is added: that could overflow
        return false;
      constant += times * expr.value();
      return isSmall(constant);
    case ExprKind::Variable:
      factors[expr.name()] += times;
      return true;
    case ExprKind::Read: // one value, whatever it is; no variable is called so
      factors[expr.str()] += times;
      return true;
    case ExprKind::Add:
      return add(expr.lhs(), times) && add(expr.rhs(), times);
    case ExprKind::Sub:
      return add(expr.lhs(), times) && add(expr.rhs(), -times);
    case ExprKind::Mul: // of a variable and a number: t * 128
      if (expr.lhs().kind() != ExprKind::Variable || expr.rhs().kind() != ExprKind::Constant ||
          !isSmall(expr.rhs().value()))
        return false;
      factors[expr.lhs().name()] += times * expr.rhs().value();
      return true;
    case ExprKind::FloorDiv:
      quotients.push_back({expr, times});
      return expr.rhs().kind() == ExprKind::Variable && isPositive(expr.rhs());
    default:
      return false;
    }
  }

  bool isWithoutVariables() const {
    return std::all_of(factors.begin(), factors.end(), [](const auto &factor) { return factor.second == 0; });
  }

  std::optional<Interval> value() const;
};

/// Of x / n - y / n for one n of 1 or more: as far apart as x and y at most, and not the other way round.
std::optional<Interval> apartByCount(const Expr &x, const Expr &y) {
  if (!(x.rhs() == y.rhs()))
    return std::nullopt;
  const std::optional<Interval> apart = difference(x.lhs(), y.lhs());
  return apart ? std::optional(Interval{std::min<int64_t>(apart->low, 0), std::max<int64_t>(apart->high, 0)})
               : std::nullopt;
}

/// What is left when variables cancel out, and quotients two by two.
std::optional<Interval> Linear::value() const {
  if (!isWithoutVariables() || quotients.size() > 2)
    return std::nullopt;
  if (quotients.empty())
    return Interval{constant, constant};
  if (quotients.size() == 1 || quotients[0].times + quotients[1].times != 0)
    return std::nullopt;
  const bool swapped = quotients[0].times < 0; // times is 1 or -1: no quotient is multiplied here
  const std::optional<Interval> apart = apartByCount(quotients[swapped].expr, quotients[!swapped].expr);
  return apart ? std::optional(Interval{constant + apart->low, constant + apart->high}) : std::nullopt;
}

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
    return linear.value();
  if (a == b)
    return Interval{0, 0};
  if (a.kind() == ExprKind::Sub && b.kind() == ExprKind::Constant && isSmall(b.value())) {
    const std::optional<Interval> apart = difference(a.lhs(), a.rhs());
    return apart ? std::optional(Interval{apart->low - b.value(), apart->high - b.value()}) : std::nullopt;
  }
  if (isDivision(a) && isDivision(b) && a.rhs().value() == b.rhs().value()) {
    const std::optional<Interval> apart = difference(a.lhs(), b.lhs());
    return apart ? std::optional(divided(a.kind(), b.kind(), *apart, a.rhs().value())) : std::nullopt;
  }
  // The smaller of two is not above either.
  constexpr int64_t kFar = int64_t(1) << 40;
  if (a.kind() == ExprKind::Min && (a.lhs() == b || a.rhs() == b))
    return Interval{-kFar, 0};
  if (b.kind() == ExprKind::Min && (b.lhs() == a || b.rhs() == a))
    return Interval{0, kFar};
  if (a.kind() != b.kind() || (a.kind() != ExprKind::Min && a.kind() != ExprKind::Max))
    return std::nullopt;
  // The smaller (larger) of two moves by no more than the one that moves most.
  const std::optional<Interval> first = difference(a.lhs(), b.lhs()), second = difference(a.rhs(), b.rhs());
  if (!first || !second)
    return std::nullopt;
  return Interval{std::min(first->low, second->low), std::max(first->high, second->high)};
}
