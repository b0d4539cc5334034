// fagen: evaluates expressions in postfix order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExprCode.h"

#include "fagen/IR/ExprAnalysis.h"

using namespace fagen;
using namespace fagen::ir;

void ExprCode::add(const Expr &expr, ExprValues &values) {
  if (expr.kind() == ExprKind::Constant) {
    steps.push_back({ExprKind::Constant, expr.value()});
  } else if (expr.kind() == ExprKind::Variable) {
    steps.push_back({ExprKind::Variable, values.numberOf(expr.name())});
  } else {
    add(expr.lhs(), values);
    add(expr.rhs(), values);
    steps.push_back({expr.kind(), 0});
  }
}

/// As in C, the right side of && and || need not have a value where the left one decides.
static std::optional<int64_t> combine(ExprKind kind, std::optional<int64_t> a, std::optional<int64_t> b) {
  if (!a)
    return std::nullopt;
  if (kind == ExprKind::And && *a == 0)
    return 0;
  if (kind == ExprKind::Or && *a != 0)
    return 1;
  return b ? applyBinary(kind, *a, *b) : std::nullopt;
}

std::optional<int64_t> ExprCode::evaluate(const ExprValues &values) const {
  auto leaf = [&](const Step &step) {
    return step.kind == ExprKind::Constant ? step.value : values[unsigned(step.value)];
  };
  if (steps.size() == 1)
    return leaf(steps[0]);
  if (steps.size() == 3)
    return combine(steps[2].kind, leaf(steps[0]), leaf(steps[1]));
  llvm::SmallVector<std::optional<int64_t>, 8> stack;
  for (const Step &step : steps)
    if (step.kind == ExprKind::Constant) {
      stack.push_back(step.value);
    } else if (step.kind == ExprKind::Variable) {
      stack.push_back(values[unsigned(step.value)]);
    } else {
      const std::optional<int64_t> right = stack.pop_back_val();
      stack.back() = combine(step.kind, stack.back(), right);
    }
  return stack.back();
}
