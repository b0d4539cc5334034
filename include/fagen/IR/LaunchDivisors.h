// fagen: what a program divides by and its launch knows: the text multiplies by reciprocals among the parameters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include <vector>

namespace fagen::ir {

/// Whether sizes, integer params and constants decide it alone, by operators that a launch's recipe has.
bool isOfLaunch(const Kernel &kernel, const Expr &expr);

/// Lets and constants expanded, what a division divides by: where the launch knows that, and not what is divided. Null
/// for others, for constants, and where rounding asks for the sign of what is divided.
Expr launchDivisor(const Kernel &kernel, const Expr &division);

/// Those of everything that the kernel computes, the extents of its grid among them; each once.
std::vector<Expr> launchDivisors(const Kernel &kernel);

} // namespace fagen::ir
