// fagen: a caller's problem with every default filled in and every rule checked.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "program.h"

#include <fagen/device/params.h>
#include <fagen/table.h>

#include <span>

namespace fagen {

/// The most that a problem may have of anything: rows and keys of a head, heads, batches, tiles, CTAs, rows that are
/// merged. Kernels count all of these in 32 bits. They add two lengths (the keys that causal row q sees end after
/// q + seq_kv - seq_q), and reach for tiles after the last one: twice this leaves 2^27 for that.
constexpr int64_t kMaxCount = 1000000000;

/// One arg of a problem's form.
struct FormArg {
  const void *data;    ///< on the device; null: a number, or a tensor that fagen_run gets
  double number;       ///< of a scalar without data
  long long stride[4]; ///< of a tensor, one for each extent
};

/// A problem's form, and its args in the order of the params once the tables are known (readForm).
struct FormArgs {
  const char *name = nullptr; ///< null: the problem has a mask
  std::span<const fagen_arg> given;
  bool areExplicit = false;       ///< strides that are all 0 repeat, and are not absent
  const fagen_form *of = nullptr; ///< the form that is meant, as the first table has it
  FormArg args[FAGEN_MAX_FORM_PARAMS];
};

struct Problem {
  uint64_t key = 0;                    ///< fagen_problem_key; of a form without its number, which a table has
  device::AttentionParams params = {}; ///< all but the pointers
  Variables variables;                 ///< all but the number of SMs and a form's
  uint32_t alignment = 0;              ///< bytes; of the base pointers
  uint32_t commonAlignment = 0;        ///< bytes; of the base pointers and of every stride that is used
  bool lse = false;                    ///< must be able to write LSE
  bool overlapsLaunches = false;       ///< launches that can may begin before the one before them has ended
  const char *variant = nullptr;
  FormArgs form;
};

/// INVALID for a problem that contradicts itself, UNSUPPORTED for one that no table of this ABI can describe.
fagen_status readProblem(const fagen_problem *given, Problem &problem);

/// "forward", "f16", "causal", ...; "?" for an unknown number.
const char *passName(uint32_t pass);
const char *dtypeName(uint32_t dtype); ///< of a key: with FAGEN_KV_...
const char *maskName(uint32_t mask);

} // namespace fagen
