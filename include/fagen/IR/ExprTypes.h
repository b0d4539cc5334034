// fagen: the types of expressions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Expr.h"

namespace fagen::ir {

struct Kernel;

/// An integer, which is also a truth value as in C, or a real number. Nothing makes one of the other but f32().
enum class ExprType : uint8_t { Integer, Real };

/// The type of `expr` when `lookup` gives that of each variable. Nothing, with `error` set, where an operator has
/// operands of the wrong type.
std::optional<ExprType> typeOf(const Expr &expr, llvm::function_ref<ExprType(llvm::StringRef)> lookup,
                               std::string &error);

/// Whether what the kernel calls so is a real number: an element (%name) of a buffer of such, a value of the run, a
/// scalar among the params, a let. Others are integers.
bool isReal(const Kernel &kernel, llvm::StringRef name);

struct RunValueInfo;
/// Whether the kernel has that value of the run: with attention's parameters all, with its own what a CTA knows of
/// itself.
bool hasRunValue(const Kernel &kernel, const RunValueInfo &info);

} // namespace fagen::ir
