// fagen: where elements of matrices in global memory lie.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies and stores of kernels with parameters of their own name a matrix: a global buffer of two dimensions, or a view
// of another buffer. Whatever a view's map says, rows and columns end where the view's shape does. What has one value a
// row may be of one dimension: its rows.
#pragma once

#include "fagen/IR/IR.h"

namespace fagen::ir {

/// The buffer whose elements they are: of a view its base.
const Buffer &tensorOf(const Buffer &matrix);

/// The index in each dimension of tensorOf() of element (row, column).
llvm::SmallVector<Expr, 4> indexOf(const Buffer &matrix, const Expr &row, const Expr &column);

/// `expr` minus the variable, where the rest does not depend on it; null elsewhere.
Expr restBeside(const Expr &expr, llvm::StringRef variable);

/// A matrix of which any rectangle is a box of its tensor.
struct BoxMap {
  unsigned rowDimension = 0;
  Expr firstRow, firstColumn; ///< of the tensor, along those dimensions
};
/// Null where rows do not follow each other along one dimension.
std::optional<BoxMap> boxMapOf(const Buffer &matrix);

/// Which of the op's operands is in global memory; null where none is.
const Buffer *globalOf(const Op &op);

/// Row and column of the op's first element, of ops that name a matrix.
Expr firstRowOf(const Op &op);
Expr firstColumnOf(const Op &op);

} // namespace fagen::ir
