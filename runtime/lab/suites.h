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

  auto key() const { return std::make_tuple(dtype, halfAccum, headDimQK, headDimV, mask, lse); }
};

/// smoke: some twenty tiny cases, for the emulator. full: fa3, ragged and hard together.
std::vector<std::string> suiteNames();
/// UserError, with the known ones, when no suite is called so.
void requireSuite(const std::string &name);
std::vector<Case> suiteCases(std::string_view suite, const ProblemGroup &group);

} // namespace fagen::lab
