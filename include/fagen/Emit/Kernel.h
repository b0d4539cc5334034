// fagen: the text of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/Spec/Spec.h"

#include <string>

namespace fagen {

/// The CUDA C++17 source of one verified kernel (phase Verified): a head with shared-memory map, roles and barrier
/// ledger, named constants with their origin, then prologue, steps, epilogue and entry. The same kernel gives the same
/// bytes on any machine. Clean under clang-format's LLVM style without a column limit.
std::string emitKernel(const ir::Kernel &kernel, const Variant &variant);

} // namespace fagen
