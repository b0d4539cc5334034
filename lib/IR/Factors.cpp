// fagen: products of real numbers, some of which all elements of a tile share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Factors.h"

#include "fagen/IR/RunValues.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace fagen;
using namespace fagen::ir;

bool ir::isUniform(const Expr &expr) {
  const bool namesElement = usesScope(expr, RunScope::Element);
  if (expr.kind() == ExprKind::Variable)
    return !namesElement && !expr.name().starts_with("%");
  if (expr.kind() == ExprKind::Read)
    return llvm::all_of(expr.indices(), isUniform);
  return !namesElement && llvm::all_of(expr.operands(), isUniform);
}

/// A product's factors, those of quotients as quotients of one.
static void factorsOf(const Expr &expr, llvm::SmallVectorImpl<Expr> &factors) {
  if (expr.kind() == ExprKind::Mul) {
    factorsOf(expr.lhs(), factors);
    factorsOf(expr.rhs(), factors);
  } else if (expr.kind() == ExprKind::Div && isUniform(expr.rhs())) {
    factorsOf(expr.lhs(), factors);
    factors.push_back(real(1) / expr.rhs());
  } else {
    factors.push_back(expr);
  }
}

Expr ir::groupFactors(const Expr &expr) {
  const bool isProduct = expr.kind() == ExprKind::Mul || expr.kind() == ExprKind::Div;
  if (!isProduct || isUniform(expr))
    return {};
  llvm::SmallVector<Expr, 4> factors;
  factorsOf(expr, factors);
  Expr own, shared;
  for (const Expr &factor : factors) {
    Expr &product = isUniform(factor) ? shared : own;
    product = product ? product * factor : factor;
  }
  return shared && own ? own * shared : Expr();
}

Expr ir::timesUniform(const Expr &expr, const Expr &factor) {
  if (expr.kind() == ExprKind::Add || expr.kind() == ExprKind::Sub)
    return Expr::binary(expr.kind(), timesUniform(expr.lhs(), factor), timesUniform(expr.rhs(), factor));
  const Expr product = expr * factor, grouped = groupFactors(product);
  return grouped ? grouped : product;
}
