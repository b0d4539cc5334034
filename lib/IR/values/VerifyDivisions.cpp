// fagen: the IR verifier: divisors, which the device divides by where they are 1 or more (fagen/device/tile/integer.h).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../VerifierState.h"

#include "fagen/IR/ValueRange.h"

using namespace fagen;
using namespace fagen::ir;

static bool isDivision(const Expr &expr) {
  return expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::CeilDiv || expr.kind() == ExprKind::Mod ||
         expr.kind() == ExprKind::FloorMod;
}

static void verifyDivision(const Expr &expr, const Location &location, VerifierState &state) {
  for (const Expr &operand : expr.operands())
    verifyDivision(operand, location, state);
  if (!isDivision(expr))
    return;
  if (const Interval divisor = valueRange(state.kernel, expr.rhs()); divisor.low < 1)
    state.defect(location, "'" + expr.str() + "' may divide by " + llvm::Twine(divisor.low) +
                               "; a divisor is 1 or more: max(" + expr.rhs().str() + ", 1) is");
}

void ir::verifyDivisions(VerifierState &state) {
  const Kernel &kernel = state.kernel;
  if (state.defective || kernel.hasOwnParams()) // sizes of others are their caller's
    return;
  auto verify = [&](const Expr &expr) {
    if (expr)
      verifyDivision(expr, kernel.location, state);
  };
  for (const Let &let : kernel.lets) {
    verify(let.value);
    if (let.source)
      llvm::for_each(let.source->at, verify);
    if (let.judged)
      llvm::for_each(
          std::initializer_list<Expr>{let.judged->first, let.judged->tiles, let.judged->seen, let.judged->whole},
          verify);
  }
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      forEachExpr(op, [&](const Expr &expr) {
        if (expr)
          verifyDivision(expr, op.location, state);
      });
    });
}
