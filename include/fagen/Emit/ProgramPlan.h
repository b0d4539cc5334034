// fagen: what a program with parameters of its own needs to run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include "llvm/Support/JSON.h"

#include <optional>
#include <string>

namespace fagen {

/// The plan of a program that checkEmittable() accepts, as docs/Programs.md describes it; nothing where its kernels
/// have attention's parameters.
std::optional<llvm::json::Object> programPlan(const ir::Program &program, bool hasClocks = false);

/// Its text, with the path of the program's text.
std::string emitProgramPlan(llvm::json::Object plan, llvm::StringRef source);

} // namespace fagen
