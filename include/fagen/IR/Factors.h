// fagen: products of real numbers, some of which all elements of a tile share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Expr.h"

namespace fagen::ir {

/// Whether all elements of a tile share the value: it names no element, and nothing of an element's place.
bool isUniform(const Expr &expr);

/// Factors that all elements of a tile share come together: x scale / cap is x (scale / cap). Null where there is
/// nothing to group.
Expr groupFactors(const Expr &expr);

/// expr times a factor that all elements share, which each of its terms takes to the factors that it has.
Expr timesUniform(const Expr &expr, const Expr &factor);

} // namespace fagen::ir
