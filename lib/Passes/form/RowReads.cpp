// fagen: numbers that a score reads by the row alone: a fragment keeps them, one for each row.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RowReads.h"

#include "fagen/IR/ExprTypes.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Patterns.h"
#include "fagen/IR/RunValues.h"

using namespace fagen;
using namespace fagen::ir;

/// The first tensor that the expression reads; empty where it reads none.
static llvm::StringRef tensorIn(const Expr &expr) {
  if (expr.kind() == ExprKind::Read)
    return expr.operands().front().name().drop_front();
  for (const Expr &operand : expr.operands())
    if (const llvm::StringRef found = tensorIn(operand); !found.empty())
      return found;
  return {};
}

/// Whether it is a real number that is read by the row alone; what is asked before it is read belongs to it.
static bool isOfRow(const Kernel &kernel, const Expr &expr, const Buffer &scores) {
  std::string error;
  auto typeOfName = [&](llvm::StringRef name) { return isReal(kernel, name) ? ExprType::Real : ExprType::Integer; };
  return expr.uses(nameOf(RunValue::ElementRow)) && !expr.uses(nameOf(RunValue::ElementKey)) &&
         !expr.uses(elementOf(scores).name()) && !tensorIn(expr).empty() &&
         typeOf(expr, typeOfName, error) == ExprType::Real;
}

Expr RowReads::keep(Kernel &kernel, const Expr &expr, const Buffer &scores, const Buffer &rows) {
  if (isOfRow(kernel, expr, scores)) {
    for (const Kept &each : kept)
      if (each.value == expr)
        return elementOf(*each.buffer);
    if (kept.size() == 2)
      return expr;
    Buffer buffer = rows;
    buffer.name = kernel.freshName("own_" + tensorIn(expr).str());
    kept.push_back({&kernel.addBuffer(std::move(buffer)), expr});
    return elementOf(*kept.back().buffer);
  }
  llvm::SmallVector<Expr, 3> operands;
  for (const Expr &operand : expr.operands())
    operands.push_back(keep(kernel, operand, scores, rows));
  return operands.empty() ? expr : expr.withOperands(operands);
}

void RowReads::fill(Builder &builder) const {
  for (const Kept &each : kept)
    builder.add(makeMap(
        {.dst = {each.buffer, {}}, .value = each.value, .row = variable(RunValue::RowBegin), .key = constant(0)}));
}
