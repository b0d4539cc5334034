// fagen: the order in which models expect candidates, before any is timed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler.h"
#include "lab/cases/cases.h"
#include "lab/cases/problem.h"

namespace fagen::lab::tune {

/// All points of the space, those that promise most first. The compiler plans the most promising ones; what it
/// says of them replaces what `space` has.
std::vector<Point> rankPoints(const Compiler &compiler, const BaseKernel &base, Space &space, const Case &problem,
                              uint32_t sm, int sms, const std::filesystem::path &scratch);

/// Takes out of the ranking what the compiler's time model finds too slow, where its record allows it that (Space);
/// what it has not timed stays, and so does the shipped point. Gives how many it took.
size_t leaveOutSlow(const Space &space, std::vector<Point> &ranked);

} // namespace fagen::lab::tune
