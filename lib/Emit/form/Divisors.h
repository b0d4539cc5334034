// fagen: numbers that places of elements are divided by, known when a kernel runs: the text has their reciprocals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include <string>
#include <vector>

namespace fagen {

/// What the text calls the reciprocal of `value`: a Divisor (fagen/device/divisor.h), made once for a tile of rows.
struct TileDivisor {
  std::string name;
  ir::Expr value;
};

/// Those of all maps and tests of a kernel: numbers of the caller, and what is made of these and constants.
class TileDivisors {
public:
  explicit TileDivisors(const ir::Kernel &kernel);
  auto begin() const { return all.begin(); }
  auto end() const { return all.end(); }
  /// By which floor_div or floor_mod divides here; null where the text has no reciprocal.
  const TileDivisor *of(const ir::Expr &division) const;

private:
  const ir::Kernel &kernel;
  std::vector<TileDivisor> all;
};

} // namespace fagen
