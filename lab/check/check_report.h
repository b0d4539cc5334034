// fagen: results of checks as tables for people and as JSON for scripts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "check.h"
#include "lab/support/text_table.h"

namespace fagen::lab {

std::string checkTable(const CheckReport &report);
/// Failures with the command that shows each again; at most `limit`, then how many more there are.
std::string checkFailures(const CheckReport &report, const CheckOptions &options, size_t limit = 20);
Json checkJson(const CheckReport &report, const CheckOptions &options);

} // namespace fagen::lab
