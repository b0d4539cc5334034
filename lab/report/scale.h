// fagen: from values to pixels, and which values an axis names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

namespace fagen::lab::page {

class Scale {
public:
  /// Values from `low` to `high` (swapped or equal ones are set right) at the pixels from `begin` to `end`.
  static Scale linear(double low, double high, double begin, double end);
  /// The same by logarithm; values must be above 0.
  static Scale logarithmic(double low, double high, double begin, double end);
  /// Both ends moved outwards to the next tick.
  Scale rounded(int wantedTicks) const;

  double at(double value) const;
  double low() const { return lowest; }
  double high() const { return highest; }
  double begin() const { return first; }
  double end() const { return last; }
  /// About so many round values within the scale: 1, 2 or 5 times a power of ten.
  std::vector<double> ticks(int wanted) const;

private:
  Scale(bool isLog, double low, double high, double begin, double end);
  std::vector<double> linearTicks(int wanted) const;
  std::vector<double> logTicks(int wanted) const;

  bool isLog;
  double lowest, highest, first, last;
};

/// 1, 2 or 5 times a power of ten: the least that is not below `step`.
double roundStep(double step);

/// A number for people: four significant digits, no exponent from 0.001 to 10^12.
std::string numberText(double value);

} // namespace fagen::lab::page
