// fagen: which keys a query row sees, where they follow each other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RowKeys.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/RunValues.h"

#include <limits>

using namespace fagen;
using namespace fagen::ir;

/// What holds where the comparison does not.
static Expr opposite(const Expr &comparison) {
  switch (comparison.kind()) {
  case ExprKind::Lt:
    return Expr::binary(ExprKind::Ge, comparison.lhs(), comparison.rhs());
  case ExprKind::Le:
    return Expr::binary(ExprKind::Gt, comparison.lhs(), comparison.rhs());
  case ExprKind::Gt:
    return Expr::binary(ExprKind::Le, comparison.lhs(), comparison.rhs());
  case ExprKind::Ge:
    return Expr::binary(ExprKind::Lt, comparison.lhs(), comparison.rhs());
  default:
    return {};
  }
}

static MaskBounds boundsOf(const Kernel &kernel, const Expr &condition) {
  return analyzeMask(condition, nameOf(RunValue::ElementRow), nameOf(RunValue::ElementKey),
                     variable(RunValue::ElementRow), 1, &kernel);
}

static bool areExact(const MaskBounds &bounds) {
  return bounds.firstKey == bounds.fullBegin && bounds.fullEnd == bounds.keyEnd;
}

namespace {

/// Sorts the conjuncts of a condition.
class Conjuncts {
public:
  explicit Conjuncts(const Kernel &kernel) : kernel(kernel) {}

  /// False where one is of no kind that bounds keys.
  bool add(const Expr &condition) {
    if (condition.kind() == ExprKind::And)
      return add(condition.lhs()) && add(condition.rhs());
    if (areExact(boundsOf(kernel, condition))) {
      bounding = bounding ? Expr::binary(ExprKind::And, bounding, condition) : condition;
      return true;
    }
    if (condition.kind() == ExprKind::Eq)
      return addMonotone(Expr::binary(ExprKind::Ge, condition.lhs(), condition.rhs())) &&
             addMonotone(Expr::binary(ExprKind::Le, condition.lhs(), condition.rhs()));
    return addMonotone(condition);
  }

  std::optional<KeysOfRow> keys() const {
    const MaskBounds bounds = boundsOf(kernel, bounding ? bounding : constant(1));
    if (!areExact(bounds))
      return std::nullopt;
    const bool isOpen = bounds.keyEnd == constant(std::numeric_limits<int64_t>::max());
    return KeysOfRow{bounds.firstKey == constant(0) ? Expr() : bounds.firstKey,
                     isOpen ? constant(std::numeric_limits<int32_t>::max()) : bounds.keyEnd, follow, areOver};
  }

private:
  bool addMonotone(const Expr &comparison) {
    const Expr otherwise = opposite(comparison);
    if (!otherwise)
      return false;
    switch (direction(comparison, nameOf(RunValue::ElementKey))) {
    case Direction::NotDecreasing:
      follow.push_back(comparison);
      return true;
    case Direction::NotIncreasing:
      areOver.push_back(otherwise);
      return true;
    default:
      return false;
    }
  }

  const Kernel &kernel;
  Expr bounding;
  std::vector<Expr> follow, areOver;
};

} // namespace

std::optional<KeysOfRow> fagen::keysOfRow(const Kernel &kernel, const Expr &visible) {
  Conjuncts conjuncts(kernel);
  return conjuncts.add(visible) ? conjuncts.keys() : std::nullopt;
}
