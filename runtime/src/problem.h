// fagen: a caller's problem with every default filled in and every rule checked.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "program.h"

#include <fagen/device/params.h>
#include <fagen/table.h>

namespace fagen {

/// The most that a problem may have of anything: rows and keys of a head, heads, batches, tiles, CTAs, rows that are
/// merged. Kernels count all of these in 32 bits. They add two lengths (the keys that causal row q sees end behind
/// q + seq_kv - seq_q), and reach for tiles behind the last one: twice this leaves 2^27 for that.
constexpr int64_t kMaxCount = 1000000000;

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
