// fagen: how a loop begins in C++.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoopText.h"

#include "fmt/format.h"

using namespace fagen;
using namespace fagen::ir;

/// n of min(n, 1); null of other expressions.
static Expr cutAtOne(const Expr &expr) {
  return expr.kind() == ExprKind::Min && expr.rhs() == constant(1) ? expr.lhs() : Expr();
}

std::optional<OneStep> fagen::oneStepOf(llvm::StringRef variable, const Expr &begin, const Expr &end) {
  const Expr step = ir::variable(variable);
  if (const Expr count = cutAtOne(end); count && begin == constant(0))
    return OneStep{begin, lessThan(step, count)};
  if (begin.kind() == ExprKind::Sub && begin.lhs() == end && begin.rhs() == min(end, constant(1)))
    return OneStep{end - constant(1), lessEqual(constant(0), step)};
  return std::nullopt;
}

std::string fagen::loopHead(llvm::StringRef variable, const Expr &begin, const Expr &end, bool runsAtMostOnce,
                            llvm::function_ref<std::string(const Expr &)> spell) {
  const std::optional<OneStep> once = oneStepOf(variable, begin, end);
  if (!once && !runsAtMostOnce)
    return fmt::format("for (int {0} = {1}; {0} < {2}; ++{0})", variable.str(), spell(begin), spell(end));
  const OneStep step = once ? *once : OneStep{begin, lessThan(ir::variable(variable), end)};
  return fmt::format("if (const int {} = {}; {})", variable.str(), spell(step.begin), spell(step.condition));
}
