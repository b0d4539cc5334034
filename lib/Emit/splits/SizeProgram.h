// fagen: integers of the run as postfix programs, which the host evaluates before a launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/Spec/Spec.h"

#include <optional>
#include <vector>

namespace fagen {

/// Over sizes of the problem, the first row of a tile, and the kernel's scalars. None: it names something else, or a
/// program has no such operator, or would be too deep.
std::optional<std::vector<SelectOp>> sizeProgram(const ir::Kernel &kernel, const ir::Expr &expr);

/// By which such a program computes an operator of integers; none: it has none.
std::optional<SelectOp::Kind> operationOf(ir::ExprKind kind);

} // namespace fagen
