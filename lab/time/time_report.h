// fagen: times as a table and as JSON.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "comparison.h"
#include "lab/support/text_table.h"

namespace fagen::lab {

std::string_view nameOf(PowerState state);
std::string_view nameOf(L2State state);

std::string timeTable(const TimeReport &report, const TimeOptions &options);
/// With every sample and reading.
Json timeJson(const TimeReport &report, const TimeOptions &options);

} // namespace fagen::lab
