// fagen: what an element of a result should be: "exp2(a[m, k] * b[n, k] - l[m])".
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "function.h"
#include "index_expr.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fagen::lab {

/// A tensor of a statement, with a place for each dimension: "a[m, k]", "x[begin[b] + q, h / 4]".
struct IndexedTensor {
  std::string buffer;
  std::vector<IndexExpr> places;
};

enum class ValueOperation : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  Mod, ///< the sign is the dividend's
  FloorDiv,
  CeilDiv,
  Min,
  Max,
  Lt,
  Le,
  Gt,
  Ge,
  Eq,
  Ne,
  And,
  Or,
  Not,
  Select
};

/// A number made of elements, indices, sizes and numbers, by the operators of the IR's expressions. A truth is 0 or 1.
struct ValueExpr {
  /// Sum and Max are over an index: from 0 to where a tensor ends along it, or below the second operand.
  enum Kind : uint8_t { Number, Index, Element, Apply, Operation, Sum, Max } kind = Number;
  double number = 0;                  ///< of Number
  bool isWhole = false;               ///< of Number: an integer
  std::string name = {};              ///< of Index, Sum and Max: the index, or a size
  IndexedTensor element = {};         ///< of Element
  const Function *function = nullptr; ///< of Apply, to one operand
  ValueOperation operation = {};      ///< of Operation
  std::vector<ValueExpr> operands = {};
};

/// Whether the index stands in it and no sum or max in it is over that.
bool usesIndex(const ValueExpr &expr, const std::string &index);

/// Sums over the index, which no sum is over yet, each product that has it: in the smallest product that has all places
/// of it in a term. Terms, what a function is of, and both sides of a quotient, have sums of their own.
void sumOver(ValueExpr &expr, const std::string &index);

} // namespace fagen::lab
