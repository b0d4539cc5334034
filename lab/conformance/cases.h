// fagen: the conformance cases, by file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "conformance.h"

namespace fagen::lab {

void addArithmeticCases(std::vector<ConformanceCase> &cases);
void addMemoryCases(std::vector<ConformanceCase> &cases);
void addWarpCases(std::vector<ConformanceCase> &cases);
void addMatrixCases(std::vector<ConformanceCase> &cases);
void addBulkCases(std::vector<ConformanceCase> &cases);
void addWarpGroupCases(std::vector<ConformanceCase> &cases);

} // namespace fagen::lab
