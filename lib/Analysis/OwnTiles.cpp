// fagen: whether each CTA of a launch writes elements of its own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/OwnTiles.h"

#include "fagen/Analysis/Inequalities.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/ValueRange.h"
#include "fagen/IR/Views.h"

#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// What an op reaches along one coordinate: [begin, begin + length), but nothing from `end` on, where that is not null.
/// It counts once `given` is known to be alike, where that is not null.
struct Reach {
  Expr begin, length, end = {}, given = {};
};

bool areNumbers(const Expr &a, const Expr &b) {
  return a.kind() == ExprKind::Constant && b.kind() == ExprKind::Constant;
}

/// With lets, constants and elements that lets are read from in place of their names.
Expr expanded(const Kernel &kernel, Expr expr) {
  for (const Let &let : llvm::reverse(kernel.lets))
    if (let.source)
      expr = expr.substitute(let.name, Expr::read(let.source->buffer->name, let.source->at));
    else if (!let.judged)
      expr = expr.substitute(let.name, let.value);
  return expand(kernel, expr); // whose lets are gone
}

const Buffer &tensorOfRead(const Kernel &kernel, const Expr &read) {
  return *kernel.buffer(read.operands().front().name().drop_front());
}

/// a - (b - c) as a, -b and c.
using Summands = llvm::SmallVector<std::pair<Expr, bool>, 8>; ///< and whether they are subtracted
void collect(const Expr &expr, bool isNegative, Summands &summands) {
  if (expr.kind() != ExprKind::Add && expr.kind() != ExprKind::Sub)
    return summands.push_back({expr, isNegative});
  collect(expr.lhs(), isNegative, summands);
  collect(expr.rhs(), isNegative != (expr.kind() == ExprKind::Sub), summands);
}
Expr sumOf(const Summands &summands) {
  Expr sum = constant(0);
  for (const auto &[expr, isNegative] : summands)
    sum = isNegative ? sum - expr : sum + expr;
  return sum;
}

/// Whether the sum is no more than one of the bounds, whatever its variables are. A sum with a min is the smaller of
/// two sums, one with a max the larger.
bool isAtMost(const Summands &summands, llvm::ArrayRef<Expr> bounds) {
  for (size_t i = 0; i < summands.size(); ++i) {
    const auto &[expr, isNegative] = summands[i];
    const bool isSelect = expr.kind() == ExprKind::Select;
    if (!isSelect && expr.kind() != ExprKind::Min && expr.kind() != ExprKind::Max)
      continue;
    auto isAtMostWith = [&](const Expr &part) {
      Summands parts(summands.begin(), summands.begin() + i);
      collect(part, isNegative, parts);
      parts.append(summands.begin() + i + 1, summands.end());
      return isAtMost(parts, bounds);
    };
    const bool isSmaller = (expr.kind() == ExprKind::Min) != isNegative && !isSelect;
    const llvm::ArrayRef<Expr> parts = expr.operands().take_back(2);
    return isSmaller ? llvm::any_of(parts, isAtMostWith) : llvm::all_of(parts, isAtMostWith);
  }
  return llvm::any_of(bounds, [&](const Expr &bound) {
    const std::optional<Interval> apart = difference(sumOf(summands), bound);
    return apart && apart->high <= 0;
  });
}

/// Which indices of the grid two CTAs must have alike where they reach the same element.
class AlikeIndices {
public:
  explicit AlikeIndices(const Kernel &kernel) : kernel(kernel) {
    for (const GridIndex &index : kernel.grid.indices)
      if (expand(kernel, index.extent) == constant(1))
        alike.insert(&index);
  }

  /// Whether these are all. What depends on those that are known to be alike is alike, too, so that others follow.
  bool areAll(llvm::ArrayRef<Reach> reaches) {
    find(reaches);
    return alike.size() == kernel.grid.indices.size();
  }

  /// Whether these are all but the one that is the number of the CTA's part.
  bool areAllButPart(llvm::ArrayRef<Reach> reaches, const Expr &part) {
    find(reaches);
    return indexOf(part) && alike.size() + 1 == kernel.grid.indices.size() && !alike.contains(indexOf(part));
  }

private:
  void find(llvm::ArrayRef<Reach> reaches) {
    for (const GridIndex &index : kernel.grid.indices)
      if (expand(kernel, index.extent) == constant(1))
        alike.insert(&index);
    for (size_t before = 0;; before = alike.size()) {
      for (const Reach &reach : reaches)
        add(reach);
      if (alike.size() == before)
        return;
    }
  }

  /// What a value moves with, and how far: an index of the grid, the variable of a loop, or an element of a tensor
  /// whose elements are distinct.
  struct Term {
    Expr of, factor;
  };

  void add(const Reach &reach) {
    if (reach.given && !isAlike(reach.given))
      return;
    if (!addTerms(reach))
      addSegment(reach);
  }

  const GridIndex *indexOf(const Expr &expr) const {
    const auto index =
        llvm::find_if(kernel.grid.indices, [&](const auto &each) { return expr == variable(each.name); });
    return index == kernel.grid.indices.end() ? nullptr : &*index;
  }

  bool isLoopVariable(const Expr &expr) const {
    bool found = false;
    for (const Role &role : kernel.roles)
      forEach<LoopOp>(role.body, [&](LoopOp<const Op> loop) {
        found |= expr == variable(loop.variable()) && loop.carry().empty();
      });
    return found;
  }

  /// Whether CTAs with these indices alike have it alike: it is made of sizes, of these, and of elements that they say.
  bool isAlike(const Expr &expr) const {
    bool isSame = true;
    expr.forEachVariable([&](llvm::StringRef used) {
      const GridIndex *const index = indexOf(variable(used));
      isSame &= used.starts_with("%") || llvm::is_contained(kernel.sizes, used) || (index && alike.contains(index));
    });
    return isSame;
  }

  /// The element that the value is, where it is held to what it is anyway: a place, from 0 to the tensor's last.
  Expr placeIn(const Expr &value) const {
    if (value.kind() == ExprKind::Read)
      return tensorOfRead(kernel, value).arePlaces ? value : Expr();
    const bool isMin = value.kind() == ExprKind::Min;
    const Expr place = isMin || value.kind() == ExprKind::Max ? placeIn(value.lhs()) : Expr();
    if (!place)
      return {};
    const Expr last = tensorOfRead(kernel, place).shape.front() - constant(1);
    Inequalities known(kernel);
    const bool isItself = isMin ? known.isAtMost(last, value.rhs()) : known.isAtMost(value.rhs(), constant(0));
    return isItself ? place : Expr();
  }

  /// Whether factor * value is a sum of such terms, each once, and of what is alike.
  bool isSumOf(const Expr &held, const Expr &factor, std::vector<Term> &terms) const {
    const Expr place = placeIn(held), value = place ? place : held;
    auto isSum = [&](const Expr &part) { return isSumOf(part, factor, terms); };
    if (isAlike(value))
      return true;
    if (value.kind() == ExprKind::Add || value.kind() == ExprKind::Sub) // which way a term moves makes no difference
      return isSum(value.lhs()) && isSum(value.rhs());
    if (value.kind() == ExprKind::Mul && isAlike(value.rhs()))
      return isSumOf(value.lhs(), factor * value.rhs(), terms);
    if (value.kind() == ExprKind::Mul && isAlike(value.lhs()))
      return isSumOf(value.rhs(), factor * value.lhs(), terms);
    const bool isDistinct = value.kind() == ExprKind::Read && tensorOfRead(kernel, value).isDistinct;
    if (!isDistinct && !indexOf(value) && !isLoopVariable(value))
      return false;
    if (llvm::any_of(terms, [&](const Term &term) { return term.of == value; }))
      return false;
    terms.push_back({value, factor});
    return true;
  }

  /// How many values it has; null where that is no number.
  Expr extentOf(const Term &term) const {
    const GridIndex *const index = indexOf(term.of);
    const Expr extent = index ? expand(kernel, index->extent) : Expr();
    return extent && extent.kind() == ExprKind::Constant ? extent : Expr();
  }

  /// Terms are alike where a single one moves by what the op reaches, or all move by numbers, each by at least as much
  /// as all that move by less reach together.
  bool addTerms(const Reach &reach) {
    std::vector<Term> terms;
    if (!isSumOf(reach.begin, constant(1), terms))
      return false;
    if (terms.size() == 1 && terms.front().factor == reach.length)
      return addAlike(terms.front());
    if (llvm::any_of(terms, [&](const Term &term) { return !areNumbers(term.factor, reach.length); }))
      return false;
    llvm::sort(terms, [](const Term &a, const Term &b) { return a.factor.value() < b.factor.value(); });
    int64_t reached = reach.length.value();
    for (const Term &term : terms) {
      if (term.factor.value() < reached)
        return false;
      const Expr extent = extentOf(term);
      int64_t moved = 0;
      if (&term != &terms.back() && (!extent || llvm::MulOverflow(term.factor.value(), extent.value(), moved) ||
                                     llvm::AddOverflow(reached, moved - term.factor.value(), reached)))
        return false;
    }
    for (const Term &term : terms)
      addAlike(term);
    return true;
  }

  /// The same element of distinct ones has the same place.
  bool addAlike(const Term &term) {
    if (const GridIndex *const index = indexOf(term.of))
      alike.insert(index);
    else if (term.of.kind() == ExprKind::Read)
      for (const Expr &at : term.of.indices())
        add({at, constant(1)});
    return true;
  }

  /// [T[e], T[e + 1]) of a T that ascends has no element of another e's: where the op begins no earlier and ends no
  /// later.
  void addSegment(const Reach &reach) {
    if (!reach.end)
      return;
    Summands begin;
    collect(reach.begin, false, begin);
    for (size_t i = 0; i < begin.size(); ++i) {
      const auto &[first, isNegative] = begin[i];
      const Expr element = isNegative ? Expr() : ascendingIn(first);
      if (!element)
        continue;
      Summands rest = begin;
      rest.erase(rest.begin() + i);
      const Expr index = element.indices()[0];
      const Expr next = with(first, element, Expr::read(tensorOfRead(kernel, element).name, {index + constant(1)}));
      const Expr ofFirst = variable("<first>"), ofNext = variable("<next>"); // else each clamp in them is looked at
      Summands end;
      collect(with(with(reach.end, first, ofFirst), next, ofNext), false, end);
      if (valueRange(kernel, sumOf(rest)).low >= 0 && isAtMost(end, {ofFirst, ofNext}))
        return add({index, constant(1)});
    }
  }

  static Expr with(const Expr &expr, const Expr &part, const Expr &other) {
    return expr.rewritten([&](const Expr &node) { return node == part ? other : Expr(); });
  }

  /// The element of an ascending tensor that the value is, or is clamped from: it grows with it. Null where it is
  /// another.
  Expr ascendingIn(const Expr &value) const {
    Expr element;
    value.rewritten([&](const Expr &node) {
      if (node.kind() == ExprKind::Read) // the outermost is the last: where that lies may be read, too
        element = node;
      return Expr();
    });
    if (!element || element.indices().size() != 1 || !tensorOfRead(kernel, element).isAscending)
      return {};
    const Expr clamp = with(value, element, variable("<element>"));
    bool isOfSizes = true;
    clamp.forEachVariable(
        [&](llvm::StringRef name) { isOfSizes &= name == "<element>" || llvm::is_contained(kernel.sizes, name); });
    return isOfSizes && direction(clamp, "<element>") == Direction::NotDecreasing ? element : Expr();
  }

  const Kernel &kernel;
  llvm::SmallPtrSet<const GridIndex *, 4> alike;
};

/// The divisor of mod(row, divisor) or floor_div(row, divisor), and what is added to it, where the index is that.
struct PartOfRow {
  Expr base, divisor;
};
std::optional<PartOfRow> partOf(ExprKind kind, const Expr &index, const Expr &row) {
  if (index.kind() == kind && index.lhs() == row)
    return PartOfRow{constant(0), index.rhs()};
  if (index.kind() != ExprKind::Add)
    return std::nullopt;
  if (const auto right = partOf(kind, index.rhs(), row))
    return PartOfRow{index.lhs() + right->base, right->divisor};
  if (const auto left = partOf(kind, index.lhs(), row))
    return PartOfRow{left->base + index.rhs(), left->divisor};
  return std::nullopt;
}

class ReachFinder {
public:
  ReachFinder(const Kernel &kernel, const Role &role, const Op &op)
      : ReachFinder(kernel, role, op, *globalOperandOf(op)) {}
  ReachFinder(const Kernel &kernel, const Role &role, const Op &op, const Operand &global)
      : kernel(kernel), op(op), matrix(global) {
    const TileShape reached = reachOf(kernel, role, op, global);
    rows = constant(reached.rows);
    columns = constant(reached.columns);
  }

  std::vector<Reach> find() {
    if (!matrix.isView() && matrix.isVector())
      return {along(constant(0), firstRowOf(op), rows, matrix.rows())};
    if (!matrix.isView())
      return {along(constant(0), firstRowOf(op), rows, matrix.rows()),
              along(constant(0), firstColumnOf(op), columns, matrix.columns())};
    const AddressMap &map = matrix.map();
    const Expr row = variable(map.row);
    std::vector<Reach> found;
    Expr quotientBy, remainderBy, first; // a row is its quotient, which is added to `first`, and its remainder
    for (const Expr &index : matrix.at().drop_back(matrix.isVector() ? 0 : 1)) {
      if (const Expr rest = restBeside(index, map.row))
        found.push_back(along(rest, firstRowOf(op), rows, matrix.rows()));
      else if (!index.uses(map.row))
        found.push_back({expanded(index), constant(1)});
      else if (const auto quotient = partOf(ExprKind::FloorDiv, index, row)) {
        quotientBy = quotient->divisor, first = expanded(quotient->base);
        if (matrix.rows().kind() == ExprKind::Mul && matrix.rows().rhs() == quotientBy) // whole groups of rows
          found.push_back({expanded(quotient->base + floorDiv(firstRowOf(op), quotientBy)), rows,
                           expanded(quotient->base + matrix.rows().lhs())});
      } else if (const auto remainder = partOf(ExprKind::Mod, index, row)) {
        remainderBy = remainder->divisor;
        found.push_back({expanded(remainder->base), expanded(remainder->divisor)});
      }
    }
    if (quotientBy && remainderBy && quotientBy == remainderBy)
      found.push_back({expanded(firstRowOf(op)), rows, {}, first});
    if (const Expr rest = matrix.isVector() ? Expr() : restBeside(matrix.at().back(), map.column))
      found.push_back(along(rest, firstColumnOf(op), columns, matrix.columns()));
    return found;
  }

private:
  Expr expanded(const Expr &expr) const { return ::expanded(kernel, expr); }

  /// From `first` of a matrix that begins at `rest` and ends after `extent`.
  Reach along(const Expr &rest, const Expr &first, const Expr &length, const Expr &extent) const {
    return {expanded(rest + first), length, expanded(rest + extent)};
  }

  const Kernel &kernel;
  const Op &op;
  const Matrix matrix;
  Expr rows, columns;
};

} // namespace

bool fagen::reachesOwnElements(const Kernel &kernel, const Role &role, const Op &op) {
  if (op.kind == OpKind::PlanRows) // of whole tensors
    return AlikeIndices(kernel).areAll({});
  return AlikeIndices(kernel).areAll(ReachFinder(kernel, role, op).find());
}

bool fagen::areOwnRowsOfParts(const Kernel &kernel, const Role &role, const Op &store, const Op &combine) {
  const StoreMergedSplitOp split(store);
  const CombineLastOp merge(combine);
  const Expr part = split.dst().position;
  const auto index =
      llvm::find_if(kernel.grid.indices, [&](const GridIndex &each) { return part == variable(each.name); });
  const bool isCounted =
      index != kernel.grid.indices.end() &&
      expanded(kernel, index->extent) == expanded(kernel, tensorOf(*split.dst().buffer).shape.front());
  if (!isCounted || split.dst().buffer != merge.parts().buffer || !reachesOwnElements(kernel, role, store))
    return false;
  return llvm::all_of(globalOperandsOf(combine), [&](const Operand *global) {
    std::vector<Reach> reaches = ReachFinder(kernel, role, combine, *global).find();
    if (global == &merge.parts())
      reaches.erase(reaches.begin()); // of all parts
    return AlikeIndices(kernel).areAllButPart(reaches, part);
  });
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
  return Reach{base + constant(begin), constant(end - begin), a.end && b.end && a.end == b.end ? a.end : Expr()};
}

/// The condition of the `if` that the op stands in, of those in this block; null where it stands in none.
static Expr conditionOf(const Block &block, const Op &op) {
  for (const std::unique_ptr<Op> &each : block.ops)
    if (const auto branch = dynCast<IfOp>(std::as_const(*each)))
      if (llvm::any_of(each->body.ops, [&](const auto &inner) { return inner.get() == &op; }))
        return branch->condition();
  return {};
}

/// Whether a tile takes one of the two ops and not the other: they stand in branches of a condition and its opposite,
/// among what is done once for a tile.
static bool excludeEachOther(const Role &roleOfA, const Op &a, const Role &roleOfB, const Op &b) {
  if (&roleOfA != &roleOfB)
    return false;
  const auto turns = turnsOf(roleOfA);
  const Block &once = turns ? (*turns)->body : roleOfA.body;
  const Expr ofA = conditionOf(once, a), ofB = conditionOf(once, b);
  auto isOpposite = [](const Expr &one, const Expr &other) { return one == equal(other, constant(0)); };
  return ofA && ofB && (isOpposite(ofA, ofB) || isOpposite(ofB, ofA));
}

bool fagen::reachApart(const Kernel &kernel, const Role &roleOfA, const Op &a, const Role &roleOfB, const Op &b) {
  const Operand *const ofA = globalOperandOf(a), *const ofB = globalOperandOf(b);
  if (!kernel.hasOwnParams() || !ofA || !ofB || ofA->buffer != ofB->buffer ||
      (ofA->position && !(ofA->position == ofB->position)))
    return false;
  const std::vector<Reach> reachesOfA = ReachFinder(kernel, roleOfA, a).find(),
                           reachesOfB = ReachFinder(kernel, roleOfB, b).find();
  if (reachesOfA.size() != reachesOfB.size())
    return false;
  std::vector<Reach> spans;
  bool isApart = excludeEachOther(roleOfA, a, roleOfB, b);
  for (const auto &[one, other] : llvm::zip_equal(reachesOfA, reachesOfB)) {
    const std::optional<Reach> span = spanOf(one, other);
    if (!span)
      return false;
    isApart |= span->length.value() >= one.length.value() + other.length.value();
    spans.push_back(*span);
  }
  return isApart && AlikeIndices(kernel).areAll(spans);
}
