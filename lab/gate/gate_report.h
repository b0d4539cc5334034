// fagen: a gate's verdicts as a table, as JSON and as JUnit XML.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "gate.h"
#include "lab/support/text_table.h"

namespace fagen::lab {

/// Variants by stages: pass, FAIL, skip, none where nothing is required, or - where an earlier stage failed.
std::string gateTable(const GateReport &report);
/// Why stages failed, a line each, and why they were skipped, a line for each reason.
std::string gateReasons(const GateReport &report);
Json gateJson(const GateReport &report, const GateOptions &options);
/// A test suite for each kernel, a test case for each stage of a variant, as CI systems read them.
std::string gateJUnit(const GateReport &report, const GateOptions &options);

} // namespace fagen::lab
