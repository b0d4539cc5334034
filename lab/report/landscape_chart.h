// fagen: what a search found, over the two axes that explain most of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "canvas.h"

#include <map>
#include <optional>

namespace fagen::lab::page {

struct Found {
  std::map<std::string, std::string> settings; ///< axis to value
  double microseconds;
};

/// Axes of two values or more, the one first whose values part the times most: by the variance of the logarithms of
/// the times between its values, over all of it.
std::vector<std::string> axesByInfluence(const std::vector<Found> &found);

/// "2" before "16", "64x32" before "128x32": runs of digits are compared as numbers.
bool naturalLess(const std::string &a, const std::string &b);

/// A cell for each pair of values with the least time found there, and from how many candidates. Nothing when no axis
/// has two values.
std::optional<Chart> landscapeChart(const std::string &id, const std::string &title, const std::vector<Found> &found);

} // namespace fagen::lab::page
