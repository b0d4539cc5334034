// fagen: which integers an expression of a kernel may be: by what is said of params and tensors, and what lengths are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/ExprAnalysis.h"

namespace fagen::ir {

/// Lengths and counts are at most 10^9 (fagen.h); rows of a last tile lie little beyond.
inline constexpr int64_t kMostLength = 1000000000 + (1 << 15);

/// An interval that holds every value of an expression of integers, wherever a CTA runs. It may be wider than 32 bits:
/// then it is not known that the text computes the value.
Interval valueRange(const Kernel &kernel, const Expr &expr);

/// Whether the value and all that it is made of fit in 32 bits, with room for a tile's rows or keys. Of what names the
/// variable of a loop nothing is known against it.
bool fitsInInt(const Kernel &kernel, const Expr &expr);

} // namespace fagen::ir
