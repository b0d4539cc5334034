// fagen: postfix programs over 64-bit integers: the form of select's conditions, and of when's while they are checked.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic wraps; division truncates towards zero, ceil_div gives the least integer not below the quotient; a
// division by zero ends the program without a value. The runtime evaluates the same programs by the same rules.
#pragma once

#include "fagen/Spec/Spec.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace fagen {

using Program = std::vector<SelectOp>;

/// How many values the table's interpreter can hold at once.
inline constexpr unsigned kProgramDepth = 32;

/// Values on the stack at once, at most.
unsigned programDepth(llvm::ArrayRef<SelectOp> program);

/// Nothing when it divides by zero.
std::optional<int64_t> applyUnary(SelectOp::Kind kind, int64_t operand);
std::optional<int64_t> applyBinary(SelectOp::Kind kind, int64_t left, int64_t right);
std::optional<int64_t> evaluate(llvm::ArrayRef<SelectOp> program, llvm::function_ref<int64_t(int64_t)> variable);

} // namespace fagen
