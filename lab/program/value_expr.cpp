// fagen: which products of a reference are summed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "value_expr.h"

#include <algorithm>

namespace fagen::lab {

bool usesIndex(const ValueExpr &expr, const std::string &index) {
  const bool isOver = expr.kind == ValueExpr::Sum || expr.kind == ValueExpr::Max;
  if (isOver && expr.name == index)
    return expr.operands.size() > 1 && usesIndex(expr.operands[1], index);
  if (expr.kind == ValueExpr::Index && expr.name == index)
    return true;
  bool found = false;
  for (const IndexExpr &place : expr.element.places)
    forEachIndex(place, [&](const std::string &name) { found |= name == index; });
  return found || std::any_of(expr.operands.begin(), expr.operands.end(),
                              [&](const ValueExpr &operand) { return usesIndex(operand, index); });
}

/// Whether the index in an operand of it has a sum of its own there, whatever the others have.
static bool sumsApart(const ValueExpr &expr, const std::string &index) {
  if (expr.kind != ValueExpr::Operation)
    return expr.kind != ValueExpr::Element && expr.kind != ValueExpr::Index;
  switch (expr.operation) {
  case ValueOperation::Add:
  case ValueOperation::Sub:
  case ValueOperation::Div:
  case ValueOperation::Min:
  case ValueOperation::Max:
    return true;
  case ValueOperation::Mul:
    return !usesIndex(expr.operands[0], index) || !usesIndex(expr.operands[1], index);
  case ValueOperation::Select:
    return !usesIndex(expr.operands[0], index);
  default:
    return false;
  }
}

void sumOver(ValueExpr &expr, const std::string &index) {
  if (!usesIndex(expr, index))
    return;
  if (sumsApart(expr, index)) {
    for (ValueExpr &operand : expr.operands)
      sumOver(operand, index);
    return;
  }
  ValueExpr sum{.kind = ValueExpr::Sum, .name = index};
  sum.operands.push_back(std::move(expr));
  expr = std::move(sum);
}

} // namespace fagen::lab
