// fagen: how many rows, columns, slots, warps: a number, and how the kernel writes it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   shared %k : f16[kTileKeys x kHeadDimQK] stages kStages
//   fragment %q_held : f16[kWarpRows x 16 * kHeldSlices]
//
// Analyses ask for the number, texts for the expression: nobody need guess which constant a number stands for.
#pragma once

#include "fagen/IR/Expr.h"

namespace fagen::ir {

class Count {
public:
  Count(unsigned number = 0) : value(number) {}
  /// `written`, over constants of the kernel, is that number (countOf of fagen/IR/Queries.h computes it).
  Count(unsigned number, Expr written) : value(number) {
    if (written.kind() != ExprKind::Constant)
      expression = std::move(written);
  }

  operator unsigned() const { return value; }
  unsigned number() const { return value; }
  Expr expr() const { return expression ? expression : constant(value); }
  std::string str() const { return expr().str(); }

private:
  unsigned value;
  Expr expression; ///< null where it is just the number
};

} // namespace fagen::ir
