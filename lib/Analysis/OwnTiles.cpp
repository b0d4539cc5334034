// fagen: whether each CTA of a launch writes elements of its own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/OwnTiles.h"

#include "fagen/IR/Queries.h"
#include "fagen/IR/Views.h"

#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// What an op reaches along one coordinate: [begin, begin + length).
struct Reach {
  Expr begin, length;
};

/// An index of the grid, and how far the value moves with it.
struct Term {
  const GridIndex *index = nullptr;
  Expr factor;
};

bool isOfSizes(const Kernel &kernel, const Expr &expr) {
  bool isSame = true;
  expr.forEachVariable([&](llvm::StringRef used) { isSame &= llvm::is_contained(kernel.sizes, used); });
  return isSame;
}

/// Whether factor * value is a sum of such terms, each index once, and of sizes and constants, which all CTAs have
/// alike.
bool isSumOf(const Kernel &kernel, const Expr &value, const Expr &factor, std::vector<Term> &terms) {
  auto isSum = [&](const Expr &part) { return isSumOf(kernel, part, factor, terms); };
  if (isOfSizes(kernel, value))
    return true;
  if (value.kind() == ExprKind::Add)
    return isSum(value.lhs()) && isSum(value.rhs());
  if (value.kind() == ExprKind::Sub)
    return isSum(value.lhs()) && isOfSizes(kernel, value.rhs());
  if (value.kind() == ExprKind::Mul && isOfSizes(kernel, value.rhs()))
    return isSumOf(kernel, value.lhs(), factor * value.rhs(), terms);
  if (value.kind() == ExprKind::Mul && isOfSizes(kernel, value.lhs()))
    return isSumOf(kernel, value.rhs(), factor * value.lhs(), terms);
  if (value.kind() != ExprKind::Variable)
    return false;
  const auto index = llvm::find_if(kernel.grid.indices, [&](const auto &each) { return each.name == value.name(); });
  if (index == kernel.grid.indices.end() ||
      llvm::any_of(terms, [&](const Term &term) { return term.index == &*index; }))
    return false;
  terms.push_back({&*index, factor});
  return true;
}

bool areNumbers(const Expr &a, const Expr &b) {
  return a.kind() == ExprKind::Constant && b.kind() == ExprKind::Constant;
}

/// The indices that no two CTAs have different and reach the same: a single one that moves by what the op reaches; of
/// several those that move by numbers, each by at least as much as all that move by less reach together.
std::vector<const GridIndex *> ownIndices(const Kernel &kernel, const Reach &reach) {
  std::vector<Term> terms;
  if (!isSumOf(kernel, reach.begin, constant(1), terms))
    return {};
  if (terms.size() == 1 && terms.front().factor == reach.length)
    return {terms.front().index};
  if (llvm::any_of(terms, [&](const Term &term) { return !areNumbers(term.factor, reach.length); }))
    return {};
  llvm::sort(terms, [](const Term &a, const Term &b) { return a.factor.value() < b.factor.value(); });
  std::vector<const GridIndex *> own;
  int64_t reached = reach.length.value();
  for (const Term &term : terms) {
    if (term.factor.value() < reached)
      return {};
    own.push_back(term.index);
    const Expr extent = expand(kernel, term.index->extent);
    int64_t moved = 0;
    if (&term != &terms.back() &&
        (extent.kind() != ExprKind::Constant || llvm::MulOverflow(term.factor.value(), extent.value(), moved) ||
         llvm::AddOverflow(reached, moved - term.factor.value(), reached)))
      return {};
  }
  return own;
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
    if (!matrix.map && matrix.shape.size() == 1)
      return {{expanded(firstRowOf(op)), rows}};
    if (!matrix.map)
      return {{expanded(firstRowOf(op)), rows}, {expanded(firstColumnOf(op)), columns}};
    const AddressMap &map = *matrix.map;
    const Expr row = variable(map.row);
    std::vector<Reach> found;
    Expr quotientBy, remainderBy; // a row is its quotient and its remainder
    for (const Expr &index : llvm::ArrayRef(map.at).drop_back(map.column.empty() ? 0 : 1)) {
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
    if (const Expr rest = map.column.empty() ? Expr() : restBeside(map.at.back(), map.column))
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

/// Whether no two tiles have the same elements there.
static bool areOwn(const Kernel &kernel, llvm::ArrayRef<Reach> reaches) {
  llvm::SmallPtrSet<const GridIndex *, 4> own;
  for (const Reach &reach : reaches)
    for (const GridIndex *index : ownIndices(kernel, reach))
      own.insert(index);
  return own.size() == kernel.grid.indices.size();
}

bool fagen::reachesOwnElements(const Kernel &kernel, const Role &role, const Op &op) {
  return areOwn(kernel, ReachFinder(kernel, role, op).find());
}

/// An expression and the number that is added to it.
static std::pair<Expr, int64_t> splitNumber(const Expr &sum) {
  const bool isSum = sum.kind() == ExprKind::Add || sum.kind() == ExprKind::Sub;
  if (sum.kind() == ExprKind::Constant)
    return {constant(0), sum.value()};
  if (!isSum || sum.rhs().kind() != ExprKind::Constant)
    return {sum, 0};
  return {sum.lhs(), sum.kind() == ExprKind::Add ? sum.rhs().value() : -sum.rhs().value()};
}

/// What the two reach together; nothing where it is not known how far they are apart.
static std::optional<Reach> spanOf(const Reach &a, const Reach &b) {
  const auto [base, first] = splitNumber(a.begin);
  const auto [otherBase, second] = splitNumber(b.begin);
  if (!(base == otherBase) || !areNumbers(a.length, b.length))
    return std::nullopt;
  const int64_t end = std::max(first + a.length.value(), second + b.length.value()), begin = std::min(first, second);
  return Reach{base + constant(begin), constant(end - begin)};
}

bool fagen::reachApart(const Kernel &kernel, const Role &roleOfA, const Op &a, const Role &roleOfB, const Op &b) {
  if (!kernel.hasOwnParams() || !globalOf(a) || globalOf(a) != globalOf(b))
    return false;
  const std::vector<Reach> reachesOfA = ReachFinder(kernel, roleOfA, a).find(),
                           reachesOfB = ReachFinder(kernel, roleOfB, b).find();
  if (reachesOfA.size() != reachesOfB.size())
    return false;
  std::vector<Reach> spans;
  bool isApart = false;
  for (const auto &[one, other] : llvm::zip_equal(reachesOfA, reachesOfB)) {
    const std::optional<Reach> span = spanOf(one, other);
    if (!span)
      return false;
    isApart |= span->length.value() >= one.length.value() + other.length.value();
    spans.push_back(*span);
  }
  return isApart && areOwn(kernel, spans);
}
