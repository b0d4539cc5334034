// fagen: what the candidates that were timed let expect of the others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A Gaussian process over log time. Its kernel compares points axis by axis (near numbers are alike, other structures a
// little), and sums what axes say alone, in pairs and all together; the model's rank counts as one axis more. It never
// decides what is good, only which children are evaluated first.
#pragma once

#include "space.h"

#include <optional>

namespace fagen::lab::tune {

class Surrogate {
public:
  /// `ranks`: 0 to 1 in the model's order. `seen`: microseconds, or none for a candidate that was no good.
  Surrogate(const Space &space, const std::map<Point, double> &ranks,
            const std::map<Point, std::optional<double>> &seen);
  /// Expected log time, less what it may well be below that; smaller is better.
  double promise(const Point &point) const;

private:
  double likeness(const Point &a, const Point &b) const;

  const Space &space;
  const std::map<Point, double> &ranks;
  std::vector<Point> known;
  std::vector<double> weights, factor; ///< K^-1 y; lower triangle of K's Cholesky factor, by rows
};

} // namespace fagen::lab::tune
