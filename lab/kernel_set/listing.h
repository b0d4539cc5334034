// fagen: what a table holds, and why a problem gets the row it gets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/cases/cases.h"
#include "lab/support/text_table.h"
#include "manifest.h"

namespace fagen::lab {

std::string listTable(const std::vector<std::unique_ptr<KernelSet>> &sets);
Json listJson(const std::vector<std::unique_ptr<KernelSet>> &sets);

/// fagen_query and fagen_explain for a case on a GPU of this compute capability with so many SMs, which select may ask.
struct Explanation {
  Case problem;
  uint32_t sm = 0;
  fagen_status status = FAGEN_OK;
  std::string variant, target; ///< empty when no row fits
  std::string text;
};
Explanation explain(const std::vector<std::unique_ptr<KernelSet>> &sets, const Case &problem, uint32_t sm,
                    uint32_t sms);
Json explanationJson(const Explanation &explanation);

} // namespace fagen::lab
