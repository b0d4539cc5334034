// fagen: the lists of check cases.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "cases.h"

#include <set>
#include <tuple>

namespace fagen::lab {

/// What all variants that can compute the same problem share, and the tiles they use.
struct ProblemGroup {
  DType dtype = DType::F16;
  Mask mask = Mask::None;
  int64_t headDimQK = 0, headDimV = 0;
  std::set<std::pair<int64_t, int64_t>> tiles; ///< rows, keys
  bool lse = true;                             ///< false: they write none, so no case asks for it
  bool halfAccum = false;                      ///< their products accumulate in f16
  std::string form = {};                       ///< its text, in the mask's place
  KvDType kv = KvDType::Same;

  auto key() const { return std::make_tuple(dtype, kv, halfAccum, headDimQK, headDimV, mask, form, lse); }
};

/// Of a form, whose reference is interpreted on the CPU, the suites have fewer batches and shorter lengths; some of
/// their cases have its scalars on the device.
/// smoke: some twenty tiny cases, and steady, for the emulator. full: fa3, ragged, hard and steady together.
std::vector<std::string> suiteNames();
/// UserError, with the known ones, when no suite is called so.
void requireSuite(const std::string &name);
/// The cases that all variants of a group share; UserError as above. Steady has none: its cases are a variant's own.
std::vector<Case> suiteCases(const std::string &suite, const ProblemGroup &group);
/// Whether the suite also has the steady cases of each variant (steady.h).
bool hasSteadyCases(const std::string &suite);

} // namespace fagen::lab
