// fagen: how a loop begins in C++.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoopText.h"

#include "fagen/IR/ExprAnalysis.h"

#include "fmt/format.h"

using namespace fagen;
using namespace fagen::ir;

std::string fagen::loopHead(llvm::StringRef variable, const Expr &begin, const Expr &end, bool runsAtMostOnce,
                            llvm::function_ref<std::string(const Expr &)> spell) {
  const std::optional<OneStep> once = oneStepOf(variable, begin, end);
  if (!once && !runsAtMostOnce)
    return fmt::format("for (int {0} = {1}; {0} < {2}; ++{0})", variable.str(), spell(begin), spell(end));
  const OneStep step = once ? *once : OneStep{begin, lessThan(ir::variable(variable), end)};
  return fmt::format("if (const int {} = {}; {})", variable.str(), spell(step.begin), spell(step.condition));
}
