// fagen: random expressions for property tests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Expr.h"

#include "llvm/ADT/ArrayRef.h"

#include <random>

namespace fagen::ir {

/// A tree of at most `depth` levels over the variables; constants are small or near the ends of 64 bits.
inline Expr randomExpr(std::mt19937_64 &random, unsigned depth, llvm::ArrayRef<llvm::StringRef> variables) {
  if (depth == 0 || random() % 4 == 0) {
    if (random() % 2 == 0)
      return variable(variables[random() % variables.size()]);
    if (random() % 16 == 0)
      return constant(std::numeric_limits<int64_t>::min() + int64_t(random() % 2));
    return constant(int64_t(random() % 21) - 10);
  }
  const unsigned first = unsigned(ExprKind::Add), last = unsigned(ExprKind::Or);
  const ExprKind kind = ExprKind(first + random() % (last - first + 1));
  const Expr lhs = randomExpr(random, depth - 1, variables), rhs = randomExpr(random, depth - 1, variables);
  return Expr::binary(kind, lhs, rhs);
}

} // namespace fagen::ir
