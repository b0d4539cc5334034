// fagen: where elements of matrices in global memory lie.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Views.h"

using namespace fagen::ir;
using llvm::StringRef;

const Buffer &fagen::ir::tensorOf(const Buffer &matrix) { return matrix.map ? *matrix.map->base : matrix; }

llvm::SmallVector<Expr, 4> fagen::ir::indexOf(const Buffer &matrix, const Expr &row, const Expr &column) {
  if (!matrix.map)
    return matrix.shape.size() == 1 ? llvm::SmallVector<Expr, 4>{row} : llvm::SmallVector<Expr, 4>{row, column};
  llvm::SmallVector<Expr, 4> index;
  for (const Expr &at : matrix.map->at) // in two steps: the row may name the column
    index.push_back(at.substitute(matrix.map->row, variable("<row>"))
                        .substitute(matrix.map->column, column)
                        .substitute("<row>", row));
  return index;
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

std::optional<BoxMap> fagen::ir::boxMapOf(const Buffer &matrix) {
  if (!matrix.map)
    return BoxMap{0, constant(0), constant(0)};
  const AddressMap &map = *matrix.map;
  std::optional<BoxMap> found;
  for (unsigned i = 0; i + 1 < map.at.size(); ++i) {
    if (!map.at[i].uses(map.row))
      continue;
    const Expr first = restBeside(map.at[i], map.row);
    if (found || !first)
      return std::nullopt;
    found = BoxMap{i, first, restBeside(map.at.back(), map.column)};
  }
  return found;
}

const Buffer *fagen::ir::globalOf(const Op &op) {
  for (const Operand &operand : op.operands)
    if (operand.buffer && operand.buffer->space == Space::Global)
      return operand.buffer;
  return nullptr;
}

Expr fagen::ir::firstRowOf(const Op &op) { return op.expr(Attr::Row); }
Expr fagen::ir::firstColumnOf(const Op &op) { return op.has(Attr::Column) ? op.expr(Attr::Column) : constant(0); }
