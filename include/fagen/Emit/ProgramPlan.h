// fagen: what a program with parameters of its own needs to run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include <string>

namespace fagen {

/// The plan of a program that checkEmittable() accepts and whose kernels have parameters of their own: JSON, as
/// docs/Programs.md describes it. `source` is the path of its text.
std::string emitProgramPlan(const ir::Program &program, llvm::StringRef source);

} // namespace fagen
