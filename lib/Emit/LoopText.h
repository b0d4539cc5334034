// fagen: how a loop begins in C++.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Expr.h"

#include <string>

namespace fagen {

/// `for (int j = begin; j < end; ++j)`, or `if (const int j = begin; ...)` where the bounds or the caller say that it
/// runs at most once.
std::string loopHead(llvm::StringRef variable, const ir::Expr &begin, const ir::Expr &end, bool runsAtMostOnce,
                     llvm::function_ref<std::string(const ir::Expr &)> spell);

} // namespace fagen
