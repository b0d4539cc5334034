// fagen: whether each CTA of a launch writes elements of its own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/OwnTiles.h"

#include "fagen/IR/Queries.h"
#include "fagen/IR/Views.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// What an op reaches along one coordinate: [begin, begin + length).
struct Reach {
  Expr begin, length;
};

/// The factor of the variable, where the value is factor * variable + rest and the rest is made of sizes and constants:
/// the same in all CTAs. Null elsewhere.
Expr factorOf(const Kernel &kernel, const Expr &value, llvm::StringRef name) {
  auto isSame = [&](const Expr &expr) {
    bool same = true;
    expr.forEachVariable([&](llvm::StringRef used) { same &= llvm::is_contained(kernel.sizes, used); });
    return same;
  };
  if (value == variable(name))
    return constant(1);
  if (value.kind() == ExprKind::Add || value.kind() == ExprKind::Sub) {
    if (isSame(value.rhs()))
      return factorOf(kernel, value.lhs(), name);
    return value.kind() == ExprKind::Add && isSame(value.lhs()) ? factorOf(kernel, value.rhs(), name) : Expr();
  }
  if (value.kind() != ExprKind::Mul)
    return {};
  if (value.lhs() == variable(name) && isSame(value.rhs()))
    return value.rhs();
  return value.rhs() == variable(name) && isSame(value.lhs()) ? value.lhs() : Expr();
}

bool isAtLeast(const Expr &factor, const Expr &length) {
  const bool areNumbers = factor.kind() == ExprKind::Constant && length.kind() == ExprKind::Constant;
  return areNumbers ? factor.value() >= length.value() : factor == length;
}

/// The divisor of mod(row, divisor) and what is added to it, where the index is that.
struct Remainder {
  Expr base, divisor;
};
std::optional<Remainder> remainderOf(const Expr &index, const Expr &row) {
  if (index.kind() == ExprKind::Mod && index.lhs() == row)
    return Remainder{constant(0), index.rhs()};
  if (index.kind() != ExprKind::Add)
    return std::nullopt;
  if (const auto right = remainderOf(index.rhs(), row))
    return Remainder{index.lhs() + right->base, right->divisor};
  if (const auto left = remainderOf(index.lhs(), row))
    return Remainder{left->base + index.rhs(), left->divisor};
  return std::nullopt;
}

class ReachFinder {
public:
  ReachFinder(const Kernel &kernel, const Role &role, const Op &op)
      : kernel(kernel), op(op), matrix(*globalOf(op)), rows(constant(rowsOf(role))), columns(constant(columnsOf())) {}

  std::vector<Reach> find() {
    if (!matrix.map)
      return {{expanded(firstRowOf(op)), rows}, {expanded(firstColumnOf(op)), columns}};
    const AddressMap &map = *matrix.map;
    const Expr row = variable(map.row);
    std::vector<Reach> found;
    Expr quotientBy, remainderBy; // a row is its quotient and its remainder
    for (const Expr &index : llvm::ArrayRef(map.at).drop_back()) {
      if (const Expr rest = restBeside(index, map.row))
        found.push_back({expanded(rest + firstRowOf(op)), rows});
      else if (!index.uses(map.row))
        found.push_back({expanded(index), constant(1)});
      else if (index.kind() == ExprKind::FloorDiv && index.lhs() == row)
        quotientBy = index.rhs();
      else if (const auto remainder = remainderOf(index, row)) {
        remainderBy = remainder->divisor;
        found.push_back({expanded(remainder->base), expanded(remainder->divisor)});
      }
    }
    if (quotientBy && remainderBy && quotientBy == remainderBy)
      found.push_back({expanded(firstRowOf(op)), rows});
    if (const Expr rest = restBeside(map.at.back(), map.column))
      found.push_back({expanded(rest + firstColumnOf(op)), columns});
    return found;
  }

private:
  Expr expanded(const Expr &expr) const { return expand(kernel, expr); }

  const Buffer &tile() const {
    for (const Operand &operand : op.operands)
      if (operand.buffer && operand.buffer->space != Space::Global)
        return *operand.buffer;
    return matrix;
  }
  /// Fragments are a warp's, shared tiles the CTA's.
  int64_t rowsOf(const Role &role) const {
    return tile().rows * (tile().space == Space::Fragment ? warpGridOf(kernel, role).rows : 1);
  }
  int64_t columnsOf() const { return tile().columns; }

  const Kernel &kernel;
  const Op &op;
  const Buffer &matrix;
  const Expr rows, columns;
};

} // namespace

bool fagen::reachesOwnElements(const Kernel &kernel, const Role &role, const Op &op) {
  const std::vector<Reach> reaches = ReachFinder(kernel, role, op).find();
  return llvm::all_of(kernel.grid.indices, [&](const GridIndex &index) {
    return llvm::any_of(reaches, [&](const Reach &reach) {
      const Expr factor = factorOf(kernel, reach.begin, index.name);
      return factor && isAtLeast(factor, reach.length);
    });
  });
}
