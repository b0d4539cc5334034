// fagen: expressions that say where a tile lies, to be compared.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which tile an op means its expressions say: of loop variables, of lets that steer the kernel, and of values that only
// a launch knows. For each of the latter stands a number made of its name, and what has no integer value, such as an
// element of a tensor, is a number made of its parts. So places that are equal have equal numbers, and others have not,
// but by a chance of one in a million.
#pragma once

#include "ExprCode.h"

#include "fagen/IR/IR.h"

#include "llvm/ADT/StringSet.h"

namespace fagen {

/// The expression with lets in place of their names, but for those of `kept`.
ir::Expr withoutLets(const ir::Kernel &kernel, const ir::Expr &expr, const llvm::StringSet<> &kept);

/// Whether the number is none that stands for a name.
inline bool isNumberOfTile(int64_t value) { return value < (int64_t(1) << 20) && value > -(int64_t(1) << 20); }

/// An expression in postfix order that has a value whatever it names.
class PlaceCode {
public:
  PlaceCode() = default; ///< of no expression
  PlaceCode(const ir::Expr &expr, ExprValues &values) { add(expr, values); }
  explicit operator bool() const { return !steps.empty(); }
  int64_t evaluate(const ExprValues &values) const;

private:
  struct Step {
    ir::ExprKind kind;
    unsigned operands; ///< of a variable its number
    int64_t value;     ///< of a constant; of a variable what stands for it where it has none
  };
  void add(const ir::Expr &expr, ExprValues &values);

  llvm::SmallVector<Step, 4> steps;
};

} // namespace fagen
