// fagen: where elements of matrices in global memory lie.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies and stores name a matrix: a global buffer of two dimensions, or a view
// of another buffer. Whatever a view's map says, rows and columns end where the view's shape does. What has one value a
// row may be of one dimension: its rows.
#pragma once

#include "fagen/IR/IR.h"

namespace fagen::ir {

/// The buffer whose elements they are: of a view its base.
const Buffer &tensorOf(const Buffer &matrix);

/// A matrix as an op names it: of a view with an index the one at the op's position.
class Matrix {
public:
  explicit Matrix(const Operand &operand);

  const Buffer &tensor() const { return tensorOf(*buffer); }
  const Expr &rows() const { return shape[0]; }
  const Expr &columns() const { return shape[1]; }
  bool isView() const { return buffer->map.has_value(); }
  bool isVector() const { return shape.size() == 1; } ///< a value a row, without columns
  /// Of a view: what `at` calls row and column, and an index for each dimension of the tensor.
  const AddressMap &map() const { return *buffer->map; }
  llvm::ArrayRef<Expr> at() const { return indices; }
  /// The index in each dimension of the tensor of element (row, column).
  llvm::SmallVector<Expr, 4> indexOf(const Expr &row, const Expr &column) const;

private:
  const Buffer *buffer;
  llvm::SmallVector<Expr, 4> shape, indices;
};

/// Calls `visit` with each index tensor that the op's own expressions, or the view that it names, take elements of.
void forEachRead(const Kernel &kernel, const Op &op, llvm::function_ref<void(const Buffer &)> visit);
void forEachRead(const Kernel &kernel, const Expr &expr, llvm::function_ref<void(const Buffer &)> visit);
/// Whether its elements are real numbers that values may take: a tensor among the parameters, of f32.
bool isOfReals(const Buffer &tensor);

/// `expr` minus the variable, where the rest does not depend on it; null elsewhere.
Expr restBeside(const Expr &expr, llvm::StringRef variable);

/// Whether the op stores a value for each row, as sums of rows are.
bool storesValues(const Op &op);

/// A matrix of which any rectangle is a box of its tensor, or is made of boxes of pages.
struct BoxMap {
  unsigned rowDimension = 0;
  Expr firstRow, firstColumn; ///< of the tensor, along those dimensions
  /// Each so many rows are a page, all that the tensor has along their dimension; where it lies, other indices say by
  /// the page's number, floor_div(row, pageRows). 0: rows follow each other without end.
  unsigned pageRows = 0;
};
/// Null where rows do not follow each other along one dimension.
std::optional<BoxMap> boxMapOf(const Matrix &matrix);
/// Whether each row lies as far after the one before it, from the first to the last.
bool hasEvenRows(const Matrix &matrix);
/// Whether a copy takes rows of the whole matrix, of which each lies as far after the one before it.
bool copiesWholeRows(const Op &copy);
/// Likewise of a store of elements of 16 bits, where they fill vectors of 16 bytes.
bool storesVectors(const Op &store);
/// Whether the engine, which knows where the tensor ends, moves nothing beyond the matrix: of a bulk copy or store of a
/// tile as large as this, in such a matrix. It does not if the two end together, or the tile covers the matrix.
bool boxEndsWithMatrix(const Op &op, const Buffer &tile);
/// That the whole tile lies inside the matrix, as a condition: the box then reaches nothing else.
Expr isBoxInside(const Op &op, const Buffer &tile);

/// Of a view whose index counts the parts of a result (store_merged_split): the dimension of its tensor that the index
/// is by itself; nothing where there is no such view, or no such dimension.
std::optional<unsigned> partDimensionOf(const Buffer &view);

/// Which of the op's operands is in global memory, the first; null where none is.
const Operand *globalOperandOf(const Op &op);
const Buffer *globalOf(const Op &op);
/// All that are, in order.
llvm::SmallVector<const Operand *, 3> globalOperandsOf(const Op &op);
/// Of an op that has one.
Matrix matrixOf(const Op &op);

/// Where the rows that the op names end: at its limit, or where its matrix does.
Expr rowEndOf(const Op &op);
/// Row and column of the op's first element, of ops that name a matrix; with the columns of a tile that leave before
/// it.
Expr firstRowOf(const Op &op);
Expr firstColumnOf(const Op &op);
/// Likewise in one of its matrices: rows of what is transposed are columns of what it becomes.
Expr firstRowOf(const Op &op, const Operand &matrix);
Expr firstColumnOf(const Op &op, const Operand &matrix);

} // namespace fagen::ir
