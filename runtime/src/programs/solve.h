// fagen: which number an extent tells, and what of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "recipe.h"

#include <optional>
#include <span>

namespace fagen {

/// A number of a recipe, and the value that an extent gives it.
struct Told {
  uint32_t number;
  int64_t value;
};

/// Of an extent, as B, B + 1 or G * H, of whose numbers a single one is not known and stands there once: its value.
/// Sums, differences and products are taken back. Nothing where there is no such number, or no whole one.
/// `values` are what expressions are computed from, `isKnown` says of each number of the recipe whether it is there.
std::optional<Told> solveExtent(const fagen_expression &extent, int64_t value, std::span<const int64_t> values,
                                std::span<const bool> isKnown);

} // namespace fagen
