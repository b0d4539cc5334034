// fagen: which keys all, some or none of a tile's query rows see.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each conjunct is brought to the form c k + f(q) < 0 (or <= 0) with constant c and monotone f. For c > 0 it bounds k
// from above by an expression that is monotone in q, so its smallest and largest value over the tile's rows stand at
// the first and the last row:
//
//   k <= q + shift, rows [r, r + 128):   every row sees k < r + shift + 1, no row sees k >= r + 127 + shift + 1
//
// For c < 0 it bounds k from below in the same way. Conjuncts meet by min and max. Of two alternatives the hull is seen
// by some row; what all rows see is that of one of them, or of both where they begin or end together; between first
// keys and others that begin later there may be a gap. floor_div(k, c)
// <= x is k < c (x + 1).

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/ValueRange.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace fagen::ir;
using llvm::StringRef;

namespace {

/// constant + sum of factor * term; terms are expressions that are no sums, in order of their first appearance.
class LinearForm {
public:
  /// Adds factor * expr; false when a coefficient leaves 64 bits.
  bool add(const Expr &expr, int64_t factor) {
    switch (expr.kind()) {
    case ExprKind::Constant:
      return accumulate(constantPart, expr.value(), factor);
    case ExprKind::Add:
      return add(expr.lhs(), factor) && add(expr.rhs(), factor);
    case ExprKind::Sub:
      return add(expr.lhs(), factor) && factor != kLeast && add(expr.rhs(), -factor);
    case ExprKind::Mul:
      for (auto [number, other] : {std::pair(expr.lhs(), expr.rhs()), std::pair(expr.rhs(), expr.lhs())})
        if (number.kind() == ExprKind::Constant) {
          int64_t product = 0;
          return !llvm::MulOverflow(number.value(), factor, product) && add(other, product);
        }
      break;
    default:
      break;
    }
    return addTerm(expr, factor);
  }

  /// Removes the variable and returns its factor.
  int64_t take(StringRef variable) {
    for (Term &term : terms)
      if (term.expr.kind() == ExprKind::Variable && term.expr.name() == variable)
        return std::exchange(term.factor, 0);
    return 0;
  }

  bool uses(StringRef variable) const {
    return llvm::any_of(terms, [&](const Term &term) { return term.factor != 0 && term.expr.uses(variable); });
  }

  /// Terms with a positive factor first, then the others, then the constant.
  Expr toExpr() const {
    Expr sum;
    for (bool positive : {true, false})
      for (const Term &term : terms)
        if (term.factor != 0 && (term.factor > 0) == positive)
          sum = append(sum, term);
    return sum ? sum + constant(constantPart) : constant(constantPart);
  }

private:
  static constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  struct Term {
    Expr expr;
    int64_t factor;
  };

  static bool accumulate(int64_t &sum, int64_t value, int64_t factor) {
    int64_t product = 0;
    return !llvm::MulOverflow(value, factor, product) && !llvm::AddOverflow(sum, product, sum) && sum != kLeast;
  }

  bool addTerm(const Expr &expr, int64_t factor) {
    for (Term &term : terms)
      if (term.expr == expr)
        return accumulate(term.factor, 1, factor);
    terms.push_back({expr, factor});
    return factor != kLeast;
  }

  static Expr append(const Expr &sum, const Term &term) {
    if (!sum)
      return term.factor == 1 ? term.expr : constant(term.factor) * term.expr;
    const Expr scaled = term.factor == 1 || term.factor == -1 ? term.expr : constant(std::abs(term.factor)) * term.expr;
    return term.factor > 0 ? sum + scaled : sum - scaled;
  }

  llvm::SmallVector<Term, 4> terms;
  int64_t constantPart = 0;
};

class MaskAnalysis {
public:
  MaskAnalysis(StringRef q, StringRef k, const Expr &rowBegin, int64_t rows, const Kernel *kernel)
      : q(q), k(k), rowBegin(rowBegin), rows(rows), kernel(kernel) {}

  void addConjunct(const Expr &predicate) {
    switch (predicate.kind()) {
    case ExprKind::And:
      addConjunct(predicate.lhs());
      addConjunct(predicate.rhs());
      return;
    case ExprKind::Lt:
      return addComparison(predicate.lhs(), predicate.rhs(), true);
    case ExprKind::Le:
      return addComparison(predicate.lhs(), predicate.rhs(), false);
    case ExprKind::Gt:
      return addComparison(predicate.rhs(), predicate.lhs(), true);
    case ExprKind::Ge:
      return addComparison(predicate.rhs(), predicate.lhs(), false);
    case ExprKind::Eq:
      return addEquality(predicate);
    case ExprKind::Constant:
      return addConstant(predicate.value() != 0);
    case ExprKind::Or:
      return meet(join(of(predicate.lhs()), of(predicate.rhs())));
    case ExprKind::Not:
      if (const Expr opposite = negated(predicate.operand()))
        return addConjunct(opposite);
      break;
    default:
      break;
    }
    addUnknown(predicate);
  }

  MaskBounds bounds{constant(0),
                    constant(0),
                    constant(std::numeric_limits<int64_t>::max()),
                    constant(std::numeric_limits<int64_t>::max()),
                    {},
                    {},
                    {}};

private:
  MaskBounds of(const Expr &predicate) const {
    MaskAnalysis analysis(q, k, rowBegin, rows, kernel);
    analysis.addConjunct(predicate);
    return analysis.bounds;
  }

  void meet(const MaskBounds &other) {
    bounds.firstKey = max(bounds.firstKey, other.firstKey);
    bounds.fullBegin = max(bounds.fullBegin, other.fullBegin);
    endWholeAt(other.fullEnd);
    bounds.keyEnd = min(bounds.keyEnd, other.keyEnd);
    if (!bounds.hasGap()) {
      bounds.gapBegin = other.gapBegin;
      bounds.gapEnd = other.gapEnd;
    }
    llvm::append_range(bounds.unknown, other.unknown);
  }

  /// Nothing is known to be seen by all.
  void addUnknown(const Expr &condition) {
    bounds.fullEnd = constant(0);
    if (!llvm::is_contained(bounds.unknown, condition))
      bounds.unknown.push_back(condition);
  }

  /// Of no keys there are no fewer: 0 stays a number, by which passes know that no tile is whole.
  void endWholeAt(const Expr &end) {
    const Expr none = constant(0);
    bounds.fullEnd = bounds.fullEnd == none || end == none ? none : min(bounds.fullEnd, end);
  }

  /// What the rows see of either.
  static MaskBounds join(const MaskBounds &a, const MaskBounds &b) {
    const Expr none = constant(0), all = constant(std::numeric_limits<int64_t>::max());
    MaskBounds joined;
    joined.firstKey = a.firstKey == none || b.firstKey == none ? none : min(a.firstKey, b.firstKey);
    joined.keyEnd = a.keyEnd == all || b.keyEnd == all ? all : max(a.keyEnd, b.keyEnd);
    joined.unknown = a.unknown;
    llvm::append_range(joined.unknown, b.unknown);
    const MaskBounds &whole = isWholeOf(a, b) ? a : b, &other = &whole == &a ? b : a;
    joined.fullBegin = whole.fullBegin;
    joined.fullEnd = whole.fullEnd;
    if (beginsBehind(whole, other)) {
      joined.gapBegin = other.keyEnd;
      joined.gapEnd = whole.firstKey;
    }
    if (whole.fullEnd == none || other.fullEnd == none)
      return joined;
    if (a.fullBegin == b.fullBegin)
      joined.fullEnd = a.fullEnd == all || b.fullEnd == all ? all : max(a.fullEnd, b.fullEnd);
    else if (a.fullEnd == b.fullEnd)
      joined.fullBegin = a.fullBegin == none || b.fullBegin == none ? none : min(a.fullBegin, b.fullBegin);
    return joined;
  }

  /// Whether a's whole keys are taken: those of one alternative. First keys are few where others follow the rows.
  static bool isWholeOf(const MaskBounds &a, const MaskBounds &b) {
    const Expr none = constant(0), all = constant(std::numeric_limits<int64_t>::max());
    if (beginsBehind(a, b) != beginsBehind(b, a))
      return beginsBehind(a, b);
    if (a.fullEnd == none || b.fullEnd == none)
      return b.fullEnd == none;
    return a.fullEnd == all || !(a.fullBegin == none) || b.fullBegin == none;
  }

  /// Whether one alternative ends, and the other begins where that may be over.
  static bool beginsBehind(const MaskBounds &later, const MaskBounds &first) {
    const Expr none = constant(0), all = constant(std::numeric_limits<int64_t>::max());
    return first.firstKey == none && !(first.keyEnd == all) && !(later.firstKey == none);
  }

  /// Of a comparison, or of comparisons; null of anything else.
  static Expr negated(const Expr &predicate) {
    switch (predicate.kind()) {
    case ExprKind::Lt:
      return Expr::binary(ExprKind::Ge, predicate.lhs(), predicate.rhs());
    case ExprKind::Le:
      return greaterThan(predicate.lhs(), predicate.rhs());
    case ExprKind::Gt:
      return lessEqual(predicate.lhs(), predicate.rhs());
    case ExprKind::Ge:
      return lessThan(predicate.lhs(), predicate.rhs());
    case ExprKind::Not:
      return predicate.operand();
    case ExprKind::And:
    case ExprKind::Or: {
      const Expr a = negated(predicate.lhs()), b = a ? negated(predicate.rhs()) : Expr();
      return b ? Expr::binary(predicate.kind() == ExprKind::And ? ExprKind::Or : ExprKind::And, a, b) : Expr();
    }
    default:
      return {};
    }
  }

  /// x / c rounded down, of keys: null where the expression is no such division.
  bool isQuotient(const Expr &expr) const {
    return expr.kind() == ExprKind::FloorDiv && expr.lhs().uses(k) && isPositive(expr.rhs());
  }

  void addConstant(bool visible) {
    if (!visible)
      bounds.fullEnd = bounds.keyEnd = constant(0);
  }

  void addEquality(const Expr &equality) {
    const size_t known = bounds.unknown.size();
    addComparison(equality.lhs(), equality.rhs(), false);
    addComparison(equality.rhs(), equality.lhs(), false);
    if (bounds.unknown.size() != known) { // of neither side
      bounds.unknown.resize(known);
      addUnknown(equality);
    }
  }

  /// lhs < rhs, or lhs <= rhs.
  void addComparison(const Expr &lhs, const Expr &rhs, bool strict) {
    if (!addBounds(lhs, rhs, strict))
      addUnknown(Expr::binary(strict ? ExprKind::Lt : ExprKind::Le, lhs, rhs));
  }

  /// False where the comparison bounds no keys, or the bounds may not be computed in 32 bits.
  bool addBounds(const Expr &lhs, const Expr &rhs, bool strict) {
    const Expr next = constant(strict ? 0 : 1);
    if (isQuotient(lhs) && !rhs.uses(k))
      return addBounds(lhs.lhs(), lhs.rhs() * (rhs + next), true);
    if (isQuotient(rhs) && !lhs.uses(k))
      return addBounds(rhs.rhs() * (lhs + constant(strict ? 1 : 0)), rhs.lhs(), false);
    LinearForm form;
    const bool isLinear = form.add(lhs, 1) && form.add(rhs, -1);
    const int64_t ofK = isLinear ? form.take(k) : 0;
    const Direction ofForm = isLinear ? direction(form.toExpr(), q) : Direction::Unknown;
    if (ofK == 0 || form.uses(k) || ofForm == Direction::Unknown)
      return false;
    const int64_t ofQ = form.take(q);
    const Expr atFirst = boundAt(form, ofK, ofQ, rowBegin, strict);
    const Expr atLast = boundAt(form, ofK, ofQ, rowBegin + constant(rows - 1), strict);
    if (!atFirst || !atLast || (kernel && !(fitsInInt(*kernel, atFirst) && fitsInInt(*kernel, atLast))))
      return false;
    const bool grows = (ofForm == Direction::NotDecreasing) != (ofK > 0); // the bound is -form / ofK
    const Expr smallest = grows ? atFirst : atLast, largest = grows ? atLast : atFirst;
    if (ofK > 0) {
      endWholeAt(smallest);
      bounds.keyEnd = min(bounds.keyEnd, largest);
    } else {
      bounds.firstKey = max(bounds.firstKey, smallest);
      bounds.fullBegin = max(bounds.fullBegin, largest);
    }
    return true;
  }

  /// For c k + a row + rest(row) < 0 (<= 0 if not strict): the end of the keys that fulfil it when c > 0, their
  /// beginning when c < 0. Null when a coefficient leaves 64 bits.
  Expr boundAt(const LinearForm &rest, int64_t c, int64_t a, const Expr &row, bool strict) const {
    const int64_t sign = c > 0 ? -1 : 1, divisor = std::abs(c);
    LinearForm form; // c > 0: |c| k < form; c < 0: |c| k > form
    int64_t slope = 0;
    if (llvm::MulOverflow(a, sign, slope) || !form.add(row, slope) || !form.add(rest.toExpr().substitute(q, row), sign))
      return {};
    if (strict == (c > 0)) // k < x / c ends at ceil(x / c); k >= x / c begins there
      return ceilDiv(form.toExpr(), constant(divisor));
    if (!form.add(constant(divisor), 1)) // k <= x / c ends at floor(x / c) + 1; k > x / c begins there
      return {};
    return floorDiv(form.toExpr(), constant(divisor));
  }

  StringRef q, k;
  const Expr &rowBegin;
  const int64_t rows;
  const Kernel *const kernel;
};

} // namespace

MaskBounds fagen::ir::analyzeMask(const Expr &predicate, StringRef q, StringRef k, const Expr &rowBegin, int64_t rows,
                                  const Kernel *kernel) {
  MaskAnalysis analysis(q, k, rowBegin, rows, kernel);
  analysis.addConjunct(predicate);
  return analysis.bounds;
}
