// fagen: products of matrices, in rows, columns and sums, and which instruction does them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product has rows, columns, and sums over as many terms as the operands have in common. By its form a is
// rows x sums (abt, ab) or sums x rows (atb), b is columns x sums (abt) or sums x columns (ab, atb). Nothing here knows
// what a product is for.
#pragma once

#include "fagen/IR/OpClasses.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/DenseSet.h"

namespace fagen::ir {

/// An mma or mma_issue.
struct Product {
  const Buffer *acc = nullptr, *a = nullptr, *b = nullptr;
  MmaForm form = MmaForm::Abt;
  bool accumulates = false; ///< adds to what acc holds
  bool sumsInF16 = false;
  bool isAsynchronous = false;
  unsigned first = 0; ///< column of b from which on acc has them

  bool takesLeftTransposed() const { return form == MmaForm::Atb; }
  bool takesRightTransposed() const { return form == MmaForm::Abt; }
  /// Of the buffers, which in registers are a warp's.
  unsigned rowsOfLeft() const { return takesLeftTransposed() ? a->columns : a->rows; }
  unsigned sumsOfLeft() const { return takesLeftTransposed() ? a->rows : a->columns; }
  unsigned sumsOfRight() const { return takesRightTransposed() ? b->columns : b->rows; }
  unsigned columnsOfRight() const { return takesRightTransposed() ? b->rows : b->columns; }
  /// Whether acc may have columns of b from any on.
  bool mayBeginLater() const { return form == MmaForm::Ab; }
  /// Whether warps side by side divide what is summed over, each with its part of the left operand; else they divide
  /// the columns.
  bool dividesSums() const { return form == MmaForm::Ab && a->space == Space::Fragment; }
};
std::optional<Product> asProduct(const Op &op);

/// Whether the right operand has one-byte floats that become the left one's 16 bits on their way (ops/widen.h). Then
/// what is summed over comes in quads, and so do the result's columns where b is not transposed.
bool widensRight(const Product &product);

/// Null where the family has none for these types.
const MmaInstrInfo *instructionOf(const Kernel &kernel, const Product &product);

/// Why the instruction cannot do it: types, where the left operand lies, and which way operands run. Empty: it can.
std::string whyNoInstruction(const Kernel &kernel, const Product &product);

/// The products of a block that others feed: whose operands are made, by whatever stands between, of others' results.
llvm::DenseSet<const Op *> fedProducts(const Block &block);

/// The device function; empty: there is none.
llvm::StringRef functionOf(const Kernel &kernel, const Product &product);

} // namespace fagen::ir
