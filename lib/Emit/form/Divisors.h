// fagen: numbers that are divided by, known when a kernel is launched or runs: the text has their reciprocals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include <string>
#include <vector>

namespace fagen {

/// What the text calls the reciprocal of `value`: a Divisor (fagen/device/divisor.h), made once for a tile of rows, or
/// a Reciprocal (fagen/device/reciprocal.h) among the parameters.
struct TileDivisor {
  std::string name;
  ir::Expr value;
};

/// Of attention's kernels those of all maps and tests: numbers of the caller, and what is made of these and constants.
/// Of a program's those that its launch knows.
class TileDivisors {
public:
  explicit TileDivisors(const ir::Kernel &kernel);
  TileDivisors(const ir::Kernel &kernel, std::vector<TileDivisor> ofLaunch)
      : kernel(kernel), areOfLaunch(true), all(std::move(ofLaunch)) {}
  auto begin() const { return all.begin(); }
  auto end() const { return all.end(); }
  /// By which floor_div or floor_mod divides here; null where the text has no reciprocal.
  const TileDivisor *of(const ir::Expr &division) const;
  /// The reciprocal of this value, lets and constants expanded; null where the text has none.
  const TileDivisor *by(const ir::Expr &value) const;

private:
  const ir::Kernel &kernel;
  bool areOfLaunch = false;
  std::vector<TileDivisor> all;
};

} // namespace fagen
