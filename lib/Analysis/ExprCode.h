// fagen: expressions whose variables have numbers, to be evaluated often.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/Expr.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

namespace fagen {

/// The values of named variables, each under a number; nothing where it has none now.
class ExprValues {
public:
  unsigned numberOf(llvm::StringRef name) {
    auto [it, isNew] = numbers.try_emplace(name, values.size());
    if (isNew)
      values.emplace_back();
    return it->second;
  }
  /// That of the empty name has none, ever.
  std::optional<int64_t> &operator[](unsigned number) { return values[number]; }
  const std::optional<int64_t> &operator[](unsigned number) const { return values[number]; }

private:
  llvm::StringMap<unsigned> numbers;
  llvm::SmallVector<std::optional<int64_t>, 32> values;
};

/// An expression in postfix order. Gives what Expr::evaluate gives.
class ExprCode {
public:
  ExprCode() = default; ///< of no expression
  ExprCode(const ir::Expr &expr, ExprValues &values) {
    if (expr)
      add(expr, values);
  }
  explicit operator bool() const { return !steps.empty(); }
  std::optional<int64_t> evaluate(const ExprValues &values) const;

private:
  struct Step {
    ir::ExprKind kind;
    int64_t value; ///< of a constant; of a variable its number
  };
  void add(const ir::Expr &expr, ExprValues &values);

  llvm::SmallVector<Step, 4> steps;
};

} // namespace fagen
