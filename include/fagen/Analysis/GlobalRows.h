// fagen: which rows of a global buffer an op names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

namespace fagen {

/// With lets and constants in place of their names, but for the CTA's first row.
ir::Expr expandButRow(const ir::Kernel &kernel, ir::Expr expr);

/// Whether the role comes to each of the two ops once, and both count their rows from the same one.
bool nameSameRows(const ir::Kernel &kernel, const ir::Role &role, const ir::Op &a, const ir::Op &b);

} // namespace fagen
