// fagen: simpler trees of the same value.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Expr.h"

namespace fagen::ir {

/// A simpler expression than the node of these operands, or null.
Expr fold(ExprKind kind, const Expr &lhs, const Expr &rhs);

} // namespace fagen::ir
