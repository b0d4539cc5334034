// fagen: names that say nothing: to prove that nobody asks for others, and to compare kernels up to names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

namespace fagen::ir {

/// Names each buffer, let, role, loop and loop variable by its kind and its number in the kernel: buffer0, let0, ...
/// What a global buffer is called is the same in all kernels. Run-time values, constants and symbols keep their names,
/// and so does a let that stands for a run-time value. Notes and the ledger are left as they are.
void renameAll(Program &program);

} // namespace fagen::ir
