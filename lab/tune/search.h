// fagen: how a tuner walks its space: evolution, random, hill climbing, everything.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A strategy depends on the seed and on what was measured, on nothing else: told the same, it asks the same. So a
// search that was killed is taken up by asking again from the start, with what is known answered from the store.
#pragma once

#include "space.h"

#include <cstdint>
#include <functional>
#include <optional>

namespace fagen::lab::tune {

/// Microseconds; none: the candidate is no good (refused, wrong, hung, too slow for its race to go on).
using Measured = std::optional<double>;

/// Evaluates a generation; fewer answers than points: the search is to end.
using Evaluate = std::function<std::vector<Measured>(const std::vector<Point> &points, int generation)>;

constexpr int kElites = 3;

struct SearchOptions {
  std::string strategy = "evolutionary"; ///< or random, hillclimb, exhaustive
  uint64_t seed = 1;
  size_t evaluations = 0; ///< at most; 0: as many as there are points
  size_t generation = 6;  ///< candidates that are evaluated together
};

const std::vector<std::string> &strategyNames();
/// UserError that names them unless it is one.
void requireStrategy(const std::string &name);

/// `ranked`: the space's points, the most promising first (the model's order); evolution begins with the first ones.
void search(const Space &space, const std::vector<Point> &ranked, const SearchOptions &options,
            const Evaluate &evaluate);

} // namespace fagen::lab::tune
