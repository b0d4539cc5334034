// fagen: a caller's problem with every default filled in and every rule checked.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "program.h"

#include <fagen/device/params.h>
#include <fagen/table.h>

namespace fagen {

struct Problem {
  uint64_t key = 0;                    ///< fagen_problem_key
  device::AttentionParams params = {}; ///< all but the pointers
  Variables variables;                 ///< all but the number of SMs
  uint32_t alignment = 0;              ///< bytes; of the base pointers
  uint32_t commonAlignment = 0;        ///< bytes; of the base pointers and of every stride that is used
  bool lse = false;                    ///< must be able to write LSE
  const char *variant = nullptr;
};

/// INVALID for a problem that contradicts itself, UNSUPPORTED for one that no table of this ABI can describe.
fagen_status readProblem(const fagen_problem *given, Problem &problem);

/// "forward", "f16", "causal", ...; "?" for an unknown number.
const char *passName(uint32_t pass);
const char *dtypeName(uint32_t dtype);
const char *maskName(uint32_t mask);

} // namespace fagen
