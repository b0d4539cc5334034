// fagen: the order in which the compiler expects candidates, before any is timed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler.h"
#include "lab/cases/cases.h"
#include "lab/cases/problem.h"

#include <functional>

namespace fagen::lab::tune {

/// How many points of a round have been predicted.
using PlanProgress = std::function<void(size_t done, size_t total)>;

/// All points of the space, those that promise most first. The compiler predicts each set of numbers with the shipped
/// structure, then every structure of the best sets, then what stands next in the order; what it says of them replaces
/// what `space` has.
std::vector<Point> rankPoints(const Compiler &compiler, const BaseKernel &base, Space &space, const Case &problem,
                              uint32_t sm, const std::filesystem::path &scratch, const PlanProgress &progress);

/// Takes out of the ranking what the compiler's time model finds too slow, where its record allows it that (Space);
/// what it has not timed stays, and so does the shipped point. Gives how many it took.
size_t leaveOutSlow(const Space &space, std::vector<Point> &ranked);

} // namespace fagen::lab::tune
