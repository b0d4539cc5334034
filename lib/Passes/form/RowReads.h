// fagen: numbers that a score reads by the row alone: a fragment keeps them, one for each row.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

namespace fagen {

/// Rows of packed heads have a slope each: it is read once a row, before the loop, instead of once an element.
class RowReads {
public:
  /// The expression, which is of an element of `scores`, with an element of a fragment like `rows` in place of such a
  /// read. Two at most: as many operands has a map.
  ir::Expr keep(ir::Kernel &kernel, const ir::Expr &expr, const ir::Buffer &scores, const ir::Buffer &rows);

  void fill(ir::Builder &builder) const;
  /// The first or the second fragment, or none.
  ir::Operand operand(size_t index) const { return {index < kept.size() ? kept[index].buffer : nullptr, {}}; }

private:
  struct Kept {
    ir::Buffer *buffer;
    ir::Expr value;
  };
  llvm::SmallVector<Kept, 2> kept;
};

} // namespace fagen
