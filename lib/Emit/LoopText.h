// fagen: how a loop begins in C++.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Expr.h"

#include <optional>
#include <string>

namespace fagen {

/// A loop whose bounds say that it runs once or never: what its variable is, and when it runs.
struct OneStep {
  ir::Expr begin, condition;
};
/// Of the first step, 0 to min(n, 1), and of the last, n - min(n, 1) to n; nothing of other bounds.
std::optional<OneStep> oneStepOf(llvm::StringRef variable, const ir::Expr &begin, const ir::Expr &end);

/// `for (int j = begin; j < end; ++j)`, or `if (const int j = begin; ...)` where the bounds or the caller say that it
/// runs at most once.
std::string loopHead(llvm::StringRef variable, const ir::Expr &begin, const ir::Expr &end, bool runsAtMostOnce,
                     llvm::function_ref<std::string(const ir::Expr &)> spell);

} // namespace fagen
