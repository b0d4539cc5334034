// fagen: the key from which on a mask hides all keys from all rows of a tile alike.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommonKeyEnd.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/RunValues.h"

using namespace fagen;
using namespace fagen::ir;

Expr fagen::commonKeyEnd(const Expr &mask) {
  if (mask.kind() == ExprKind::And) {
    const Expr left = commonKeyEnd(mask.lhs()), right = commonKeyEnd(mask.rhs());
    return left && right ? min(left, right) : left ? left : right;
  }
  const bool bounds = mask.kind() == ExprKind::Lt && mask.lhs() == variable(RunValue::ElementKey);
  return bounds && !usesScope(mask.rhs(), RunScope::Element) && !readsMemory(mask.rhs()) ? mask.rhs() : Expr();
}
