// fagen: where a reference reads an element: "h / 4", "begin[b] + q".
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fagen::lab {

/// An integer made of indices, numbers, elements of u32 and i32 buffers and + - * / %. Division rounds down.
struct IndexExpr {
  enum Kind : uint8_t { Number, Index, Element, Operation } kind = Number;
  int64_t number = 0;              ///< of Number
  std::string name;                ///< of Index and of Element: the index, the buffer
  char operation = '+';            ///< of Operation
  std::vector<IndexExpr> operands; ///< of Operation: two; of Element: an index for each dimension

  bool isIndex() const { return kind == Index; }
};

/// Calls visit with the name of each index in it.
template <typename Visit> void forEachIndex(const IndexExpr &expr, Visit visit) {
  if (expr.kind == IndexExpr::Index)
    visit(expr.name);
  for (const IndexExpr &operand : expr.operands)
    forEachIndex(operand, visit);
}

} // namespace fagen::lab
