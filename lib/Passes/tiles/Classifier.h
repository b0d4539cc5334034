// fagen: the launch that finds, before the kernel runs, what its rows see of each key tile.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Queries.h"

namespace fagen {

/// Adds to the program the kernel that evaluates the mask for each row and key, after the others, and to both kernels
/// the scratch in which it leaves a number for each key tile. That of `kernel` is returned.
const ir::Buffer &addClassifier(ir::Program &program, ir::Kernel &kernel, ir::ConstMask mask, int64_t rows);

/// The rows of a tile, as the kernel writes the number.
ir::Expr tileRows(const ir::Kernel &kernel, int64_t rows);

} // namespace fagen
