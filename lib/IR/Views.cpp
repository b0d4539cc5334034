// fagen: where elements of matrices in global memory lie.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Views.h"

#include "fagen/IR/OpClasses.h"

#include <array>

using namespace fagen::ir;
using llvm::StringRef;

const Buffer &fagen::ir::tensorOf(const Buffer &matrix) { return matrix.map ? *matrix.map->base : matrix; }

Matrix::Matrix(const Operand &operand) : buffer(operand.buffer), shape(operand.buffer->shape) {
  if (!buffer->map)
    return;
  indices = buffer->map->at;
  if (!operand.position)
    return;
  for (llvm::SmallVector<Expr, 4> *list : {&shape, &indices})
    for (Expr &expr : *list)
      expr = expr.substitute(buffer->map->index, operand.position);
}

llvm::SmallVector<Expr, 4> Matrix::indexOf(const Expr &row, const Expr &column) const {
  if (!isView())
    return isVector() ? llvm::SmallVector<Expr, 4>{row} : llvm::SmallVector<Expr, 4>{row, column};
  llvm::SmallVector<Expr, 4> index;
  for (const Expr &at : indices) // in two steps: the row may name the column
    index.push_back(
        at.substitute(map().row, variable("<row>")).substitute(map().column, column).substitute("<row>", row));
  return index;
}

bool fagen::ir::isOfReals(const Buffer &tensor) {
  return tensor.type == ElementType::F32 && !tensor.shape.empty() && !tensor.map && !tensor.param.empty();
}

void fagen::ir::forEachRead(const Kernel &kernel, const Expr &expr, llvm::function_ref<void(const Buffer &)> visit) {
  if (expr.kind() == ExprKind::Read)
    visit(*kernel.buffer(expr.operands().front().name().drop_front()));
  for (const Expr &operand : expr.operands())
    forEachRead(kernel, operand, visit);
}

void fagen::ir::forEachRead(const Kernel &kernel, const Op &op, llvm::function_ref<void(const Buffer &)> visit) {
  forEachExpr(op, [&](const Expr &expr) { forEachRead(kernel, expr, visit); });
  for (const Operand *const operand : globalOperandsOf(op))
    if (const Buffer &matrix = *operand->buffer; matrix.map)
      for (const llvm::ArrayRef<Expr> list : {llvm::ArrayRef(matrix.map->at), llvm::ArrayRef(matrix.shape)})
        for (const Expr &expr : list)
          forEachRead(kernel, expr, visit);
}

Expr fagen::ir::restBeside(const Expr &expr, StringRef name) {
  if (expr == variable(name))
    return constant(0);
  if (expr.kind() == ExprKind::Add && !expr.rhs().uses(name)) {
    const Expr rest = restBeside(expr.lhs(), name);
    return rest ? rest + expr.rhs() : rest;
  }
  if (expr.kind() == ExprKind::Add && !expr.lhs().uses(name)) {
    const Expr rest = restBeside(expr.rhs(), name);
    return rest ? expr.lhs() + rest : rest;
  }
  if (expr.kind() == ExprKind::Sub && !expr.rhs().uses(name)) {
    const Expr rest = restBeside(expr.lhs(), name);
    return rest ? rest - expr.rhs() : rest;
  }
  return {};
}

/// Whether the row has no part in it but by its page.
static bool usesPagesOnly(const Expr &expr, const Expr &row, int64_t pageRows) {
  if (expr == floorDiv(row, constant(pageRows)))
    return true;
  return expr != row &&
         llvm::all_of(expr.operands(), [&](const Expr &part) { return usesPagesOnly(part, row, pageRows); });
}

/// Of a map that gives row r of the matrix row r % pageRows of a page.
static std::optional<BoxMap> pagesOf(const Matrix &matrix) {
  const Expr row = variable(matrix.map().row);
  const llvm::ArrayRef<Expr> at = matrix.at();
  std::optional<BoxMap> found;
  for (unsigned i = 0; i + 1 < at.size(); ++i)
    if (at[i].kind() == ExprKind::Mod && at[i].lhs() == row && at[i].rhs().kind() == ExprKind::Constant &&
        matrix.tensor().shape[i] == at[i].rhs())
      found = BoxMap{i, constant(0), restBeside(at.back(), matrix.map().column), unsigned(at[i].rhs().value())};
  for (unsigned i = 0; found && i + 1 < at.size(); ++i)
    if (i != found->rowDimension && !usesPagesOnly(at[i], row, found->pageRows))
      return std::nullopt;
  if (found && !found->firstColumn)
    return std::nullopt;
  return found;
}

std::optional<BoxMap> fagen::ir::boxMapOf(const Matrix &matrix) {
  if (!matrix.isView())
    return BoxMap{0, constant(0), constant(0)};
  if (const std::optional<BoxMap> pages = pagesOf(matrix))
    return pages;
  const AddressMap &map = matrix.map();
  const llvm::ArrayRef<Expr> at = matrix.at();
  std::optional<BoxMap> found;
  for (unsigned i = 0; i + 1 < at.size(); ++i) {
    if (!at[i].uses(map.row))
      continue;
    const Expr first = restBeside(at[i], map.row);
    if (found || !first)
      return std::nullopt;
    found = BoxMap{i, first, restBeside(at.back(), map.column)};
  }
  if (found && !found->firstColumn)
    return std::nullopt;
  return found;
}

namespace {

/// One dimension of a box and of its matrix.
struct Side {
  Expr first, size, begin; ///< of the matrix: its place in the tensor, its extent, where the box begins in it
  const Expr &extent;      ///< of the tensor
  unsigned count;          ///< of the box

  bool endsWithMatrix() const {
    if (first + size == extent || size == extent - first)
      return true;
    return size == constant(count) && begin == constant(0);
  }
};

} // namespace

/// Rows, then columns. Pages are whole, wherever they lie.
static std::array<Side, 2> sidesOf(const Op &op, const Buffer &tile, const Matrix &matrix, const BoxMap &box) {
  const llvm::ArrayRef<Expr> shape = matrix.tensor().shape;
  const Expr &end = box.pageRows != 0 ? matrix.rows() : shape[box.rowDimension];
  return {Side{box.firstRow, matrix.rows(), firstRowOf(op), end, tile.rows},
          Side{box.firstColumn, matrix.columns(), firstColumnOf(op), shape.back(), tile.columns}};
}

bool fagen::ir::boxEndsWithMatrix(const Op &op, const Buffer &tile) {
  const Matrix matrix = matrixOf(op);
  const std::optional<BoxMap> box = boxMapOf(matrix);
  return box && llvm::all_of(sidesOf(op, tile, matrix, *box), [](const Side &side) { return side.endsWithMatrix(); });
}

Expr fagen::ir::isBoxInside(const Op &op, const Buffer &tile) {
  const Matrix matrix = matrixOf(op);
  const std::optional<BoxMap> box = boxMapOf(matrix);
  Expr inside;
  for (const Side &side : sidesOf(op, tile, matrix, *box))
    if (!side.endsWithMatrix()) {
      const Expr fits = lessEqual(side.begin + constant(side.count), side.size);
      inside = inside ? logicalAnd(inside, fits) : fits;
    }
  return inside;
}

bool fagen::ir::hasEvenRows(const Matrix &matrix) {
  const std::optional<BoxMap> box = boxMapOf(matrix);
  return box && box->pageRows == 0;
}

bool fagen::ir::copiesWholeRows(const Op &copy) {
  const Matrix matrix = matrixOf(copy);
  return !matrix.isVector() && hasEvenRows(matrix) && firstColumnOf(copy) == constant(0) &&
         matrix.columns() == copy.operands.front().buffer->columns.expr();
}

bool fagen::ir::storesValues(const Op &op) { return op.kind == OpKind::Store && op.operands[1].buffer->columns == 1; }

bool fagen::ir::storesVectors(const Op &store) {
  const Matrix matrix = matrixOf(store);
  const Buffer &source = *store.operands[1].buffer;
  return sizeOf(matrix.tensor().type) == 2 && source.columns.number() % 32 == 0 && !matrix.isVector() &&
         hasEvenRows(matrix) && firstColumnOf(store) == constant(0) && matrix.columns() == source.columns.expr();
}

std::optional<unsigned> fagen::ir::partDimensionOf(const Buffer &view) {
  if (!view.map || view.map->index.empty())
    return std::nullopt;
  const llvm::ArrayRef<Expr> at = view.map->at;
  const auto *const index = llvm::find(at, variable(view.map->index));
  return index == at.end() ? std::nullopt : std::optional(unsigned(index - at.begin()));
}

llvm::SmallVector<const Operand *, 3> fagen::ir::globalOperandsOf(const Op &op) {
  llvm::SmallVector<const Operand *, 3> found;
  for (const Operand &operand : op.operands)
    if (operand.buffer && operand.buffer->space == Space::Global)
      found.push_back(&operand);
  return found;
}

const Operand *fagen::ir::globalOperandOf(const Op &op) {
  const llvm::SmallVector<const Operand *, 3> all = globalOperandsOf(op);
  return all.empty() ? nullptr : all.front();
}

const Buffer *fagen::ir::globalOf(const Op &op) {
  const Operand *const operand = globalOperandOf(op);
  return operand ? operand->buffer : nullptr;
}

Matrix fagen::ir::matrixOf(const Op &op) { return Matrix(*globalOperandOf(op)); }

Expr fagen::ir::rowEndOf(const Op &op) { return op.has(Attr::Limit) ? op.expr(Attr::Limit) : matrixOf(op).rows(); }
Expr fagen::ir::firstRowOf(const Op &op) { return op.has(Attr::Row) ? op.expr(Attr::Row) : constant(0); }
Expr fagen::ir::firstColumnOf(const Op &op) {
  const Expr column = op.has(Attr::Column) ? op.expr(Attr::Column) : constant(0);
  return op.has(Attr::First) ? column + constant(op.integer(Attr::First)) : column;
}

static bool isTransposed(const Op &op, const Operand &matrix) {
  const auto transpose = dynCast<TransposeOp>(op);
  return transpose && &matrix == &transpose->src();
}
Expr fagen::ir::firstRowOf(const Op &op, const Operand &matrix) {
  return isTransposed(op, matrix) ? firstColumnOf(op) : firstRowOf(op);
}
Expr fagen::ir::firstColumnOf(const Op &op, const Operand &matrix) {
  return isTransposed(op, matrix) ? firstRowOf(op) : firstColumnOf(op);
}
