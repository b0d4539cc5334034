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
  constexpr ExprKind kKinds[] = {
      ExprKind::Add,   ExprKind::Sub,    ExprKind::Mul,       ExprKind::FloorDiv,  ExprKind::CeilDiv,  ExprKind::Mod,
      ExprKind::Min,   ExprKind::Max,    ExprKind::Lt,        ExprKind::Le,        ExprKind::Gt,       ExprKind::Ge,
      ExprKind::Eq,    ExprKind::Ne,     ExprKind::And,       ExprKind::Or,        ExprKind::FloorMod, ExprKind::BitAnd,
      ExprKind::BitOr, ExprKind::BitXor, ExprKind::ShiftLeft, ExprKind::ShiftRight};
  const ExprKind kind = kKinds[random() % std::size(kKinds)];
  const Expr lhs = randomExpr(random, depth - 1, variables), rhs = randomExpr(random, depth - 1, variables);
  return Expr::binary(kind, lhs, rhs);
}

/// A real number of elements %s and %m, of the places q and k, and of constants; at most `depth` levels above integers.
inline Expr randomReal(std::mt19937_64 &random, unsigned depth) {
  if (depth == 0) {
    constexpr float kValues[] = {
        0.0f, 1.0f, -2.5f, 1e-30f, 3.4e38f, 16777216.0f, -std::numeric_limits<float>::infinity()};
    return random() % 2 ? variable(random() % 2 ? "%s" : "%m") : real(kValues[random() % std::size(kValues)]);
  }
  constexpr ExprKind kOfOne[] = {ExprKind::Exp2, ExprKind::Log2, ExprKind::Tanh, ExprKind::Abs, ExprKind::Sqrt};
  constexpr ExprKind kOfTwo[] = {ExprKind::Add, ExprKind::Sub, ExprKind::Mul,
                                 ExprKind::Div, ExprKind::Min, ExprKind::Max};
  constexpr ExprKind kTests[] = {ExprKind::Lt, ExprKind::Le, ExprKind::Gt, ExprKind::Ge, ExprKind::Eq, ExprKind::Ne};
  const Expr x = randomReal(random, depth - 1), y = randomReal(random, depth - 1);
  switch (random() % 5) {
  case 0:
    return Expr::unary(kOfOne[random() % std::size(kOfOne)], x);
  case 1: {
    const Expr test = Expr::binary(kTests[random() % std::size(kTests)], x, y);
    return select(random() % 2 ? test : Expr::unary(ExprKind::Not, test), y, randomReal(random, depth - 1));
  }
  case 2:
    return x + Expr::unary(ExprKind::F32, randomExpr(random, depth, {"q", "k"}));
  case 3:
    return Expr::unary(ExprKind::F32, Expr::unary(ExprKind::I32, Expr::read("t", {variable("q"), constant(2)}) + x));
  default:
    return Expr::binary(kOfTwo[random() % std::size(kOfTwo)], x, y);
  }
}

} // namespace fagen::ir
