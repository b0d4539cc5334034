// fagen: bars with confidence intervals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "canvas.h"
#include "lab/support/statistics.h"

#include <optional>

namespace fagen::lab::page {

struct Bar {
  std::string label;
  double value;
  std::optional<Interval> interval; ///< the whisker
  bool isOurs;                      ///< filled; else only an outline
};

/// One bar below the other, all from 0, each with its number: nothing is told by colour alone.
Chart barChart(const std::string &id, const std::string &title, const std::string &unit, const std::vector<Bar> &bars);

} // namespace fagen::lab::page
