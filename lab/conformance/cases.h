// fagen: the conformance cases, by file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "conformance.h"

namespace fagen::lab {

/// Of the cases' launches: threads of a CTA and of a warp, CTAs, and all threads.
inline constexpr unsigned kThreads = 128, kLanes = 32, kGrid = 64, kAll = kGrid * kThreads;

void addArithmeticCases(std::vector<ConformanceCase> &cases);
void addMemoryCases(std::vector<ConformanceCase> &cases);
void addWarpCases(std::vector<ConformanceCase> &cases);
void addMatrixCases(std::vector<ConformanceCase> &cases);
void addBulkCases(std::vector<ConformanceCase> &cases);
void addWarpGroupCases(std::vector<ConformanceCase> &cases);
void addByteCases(std::vector<ConformanceCase> &cases);

} // namespace fagen::lab
