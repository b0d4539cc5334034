// fagen: whether some row of a tile sees some of its keys, and whether all see all, as conditions on the tile's ends.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Three-valued logic over intervals: each value of integers becomes its least and its largest over the rows and keys of
// the tile, each truth value whether it may hold and whether it must. What is read in ascending order has its ends at
// the ends of the tile. Where few elements of a tensor belong to a tile, as of a map of blocks, these are read when the
// kernel runs (lowest, highest): where these are many, the ends of what the type holds, which arithmetic takes as those
// of what elements may be. A tensor with another element for each row or key is read only by a launch before; one
// with another for each row and key is not judged.

#include "fagen/IR/ExprAnalysis.h"

#include "fagen/IR/IR.h"
#include "fagen/IR/RunValues.h"
#include "fagen/IR/ValueRange.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen::ir;
using llvm::StringRef;

namespace {

/// The least and the largest value; null where they are not known.
struct Ends {
  Expr low, high;
  explicit operator bool() const { return bool(low); }
};

Expr isTrue(bool value) { return constant(value ? 1 : 0); }

class MaskJudge {
public:
  MaskJudge(const Kernel &kernel, const Ends &rows, const Ends &keys, JudgedReads reads)
      : kernel(kernel), rows(rows), keys(keys), reads(reads) {}

  MaskJudgement judge(const Expr &condition) const {
    if (!isOfElement(condition))
      return {condition, condition};
    switch (condition.kind()) {
    case ExprKind::And:
    case ExprKind::Or: {
      const MaskJudgement a = judge(condition.lhs()), b = judge(condition.rhs());
      return {Expr::binary(condition.kind(), a.seen, b.seen), Expr::binary(condition.kind(), a.whole, b.whole)};
    }
    case ExprKind::Not: {
      const MaskJudgement opposite = judge(condition.operand());
      return {negated(opposite.whole), negated(opposite.seen)};
    }
    case ExprKind::Gt:
    case ExprKind::Ge:
      return compare(condition.kind() == ExprKind::Gt ? ExprKind::Lt : ExprKind::Le, condition.rhs(), condition.lhs());
    case ExprKind::Lt:
    case ExprKind::Le:
      return compare(condition.kind(), condition.lhs(), condition.rhs());
    case ExprKind::Eq:
      return equality(condition.lhs(), condition.rhs());
    case ExprKind::Ne: {
      const MaskJudgement same = equality(condition.lhs(), condition.rhs());
      return {negated(same.whole), negated(same.seen)};
    }
    default: { // of an integer
      const MaskJudgement isZero = equality(condition, constant(0));
      return {negated(isZero.whole), negated(isZero.seen)};
    }
    }
  }

private:
  static bool isOfElement(const Expr &expr) {
    return expr.uses(nameOf(RunValue::ElementRow)) || expr.uses(nameOf(RunValue::ElementKey));
  }

  static Expr negated(const Expr &condition) {
    if (condition.kind() == ExprKind::Constant)
      return isTrue(condition.value() == 0);
    return Expr::unary(ExprKind::Not, condition);
  }

  MaskJudgement compare(ExprKind kind, const Expr &lhs, const Expr &rhs) const {
    const Ends a = endsOfSide(lhs), b = endsOfSide(rhs);
    if (!a || !b)
      return {isTrue(true), isTrue(false)};
    return {Expr::binary(kind, a.low, b.high), Expr::binary(kind, a.high, b.low)};
  }

  /// Of an element of bytes or bits, or 0 where there is none.
  bool isNeverNegative(const Expr &expr) const {
    if (expr.kind() == ExprKind::Select)
      return isNeverNegative(expr.operands()[1]) && isNeverNegative(expr.operands()[2]);
    if (expr.kind() == ExprKind::Constant)
      return expr.value() >= 0;
    const Buffer *const tensor = expr.kind() == ExprKind::Read ? tensorOf(expr) : nullptr;
    return tensor && tensor->type != ElementType::I32;
  }

  MaskJudgement equality(const Expr &lhs, const Expr &rhs) const {
    const Ends a = endsOfSide(lhs), b = endsOfSide(rhs);
    if (!a || !b)
      return {isTrue(true), isTrue(false)};
    if (isNeverNegative(lhs) && rhs == constant(0))
      return {equal(a.low, rhs), equal(a.high, rhs)};
    return {logicalAnd(lessEqual(a.low, b.high), lessEqual(b.low, a.high)),
            logicalAnd(equal(a.low, b.high), equal(a.high, b.low))};
  }

  Ends endsOf(const Expr &expr) const {
    if (!isOfElement(expr))
      return {expr, expr};
    switch (expr.kind()) {
    case ExprKind::Variable:
      return expr.name() == nameOf(RunValue::ElementRow) ? rows : keys;
    case ExprKind::Ascending:
      return endsOfAscending(expr.operand());
    case ExprKind::Read:
      return endsOfRead(expr);
    case ExprKind::Select:
      return endsOfSelect(expr);
    default:
      return expr.isBinary() ? endsOfBinary(expr, endsOf(expr.lhs()), endsOf(expr.rhs())) : Ends();
    }
  }

  /// Of a side of a comparison. Elements that are compared as they are need no holding.
  Ends endsOfSide(const Expr &side) const {
    const Ends ends = endsOf(side);
    return ends && computes(side) ? Ends{withHeldElements(ends.low), withHeldElements(ends.high)} : ends;
  }

  static bool computes(const Expr &side) {
    return side.isBinary() || (side.kind() == ExprKind::Select && llvm::any_of(side.operands().drop_front(), computes));
  }

  /// Of few elements the least, of many no less than elements may be: so sums and products stay in 32 bits.
  Expr withHeldElements(const Expr &end) const {
    return end.rewritten([&](const Expr &node) {
      const bool isLow = node.kind() == ExprKind::Lowest;
      if (!isLow && node.kind() != ExprKind::Highest)
        return Expr();
      const Buffer *const tensor = kernel.buffer(node.operand().operands().front().name().drop_front());
      if (tensor->type != ElementType::I32 && !tensor->values)
        return Expr();
      const Interval values = valueRange(kernel, node);
      return isLow ? max(node, constant(values.low)) : min(node, constant(values.high));
    });
  }

  static Ends endsOfBinary(const Expr &expr, const Ends &a, const Ends &b) {
    if (!a || !b)
      return {};
    auto of = [&](const Expr &x, const Expr &y) { return Expr::binary(expr.kind(), x, y); };
    switch (expr.kind()) {
    case ExprKind::Add:
    case ExprKind::Min:
    case ExprKind::Max:
      return {of(a.low, b.low), of(a.high, b.high)};
    case ExprKind::Sub:
      return {of(a.low, b.high), of(a.high, b.low)};
    case ExprKind::Mul:
    case ExprKind::FloorDiv:
    case ExprKind::CeilDiv:
      return b.low == b.high && isPositive(b.low) ? Ends{of(a.low, b.low), of(a.high, b.low)} : Ends();
    default:
      return {};
    }
  }

  Ends endsOfSelect(const Expr &expr) const {
    const Ends a = endsOf(expr.operands()[1]), b = endsOf(expr.operands()[2]);
    if (!a || !b)
      return {};
    const Expr &condition = expr.operands()[0];
    if (isOfElement(condition))
      return {min(a.low, b.low), max(a.high, b.high)};
    return {select(condition, a.low, b.low), select(condition, a.high, b.high)};
  }

  const Buffer *tensorOf(const Expr &read) const {
    const Buffer *const tensor = kernel.buffer(read.operands().front().name().drop_front());
    const bool isOfIntegers = tensor && (tensor->type == ElementType::I32 || tensor->type == ElementType::U8 ||
                                         tensor->type == ElementType::Bit);
    return isOfIntegers && tensor->shape.size() == read.indices().size() ? tensor : nullptr;
  }

  /// The ends of an index, held to its dimension where the index itself is not: intervals are wider than what they
  /// hold.
  Ends endsOfIndex(const Expr &index, const Expr &extent) const {
    Ends ends = endsOf(index);
    const bool isHeld = index.kind() == ExprKind::Min || index.kind() == ExprKind::Max || !isOfElement(index);
    if (!ends || isHeld)
      return ends;
    auto hold = [&](const Expr &end) { return max(min(end, extent - constant(1)), constant(0)); };
    return {hold(ends.low), hold(ends.high)};
  }

  /// Whether the index is another one for each row or key.
  static bool movesByOne(const Expr &index) {
    if (index.kind() == ExprKind::Variable)
      return isOfElement(index);
    const bool isShift = index.kind() == ExprKind::Add || index.kind() == ExprKind::Sub ||
                         index.kind() == ExprKind::Min || index.kind() == ExprKind::Max;
    return isShift && llvm::any_of(index.operands(), movesByOne);
  }

  Ends endsOfAscending(const Expr &read) const {
    const Buffer *const tensor = read.kind() == ExprKind::Read ? tensorOf(read) : nullptr;
    if (!tensor || llvm::any_of(read.indices().drop_back(), isOfElement))
      return {};
    const Ends last = endsOfIndex(read.indices().back(), tensor->shape.back());
    if (!last)
      return {};
    auto at = [&](const Expr &end) {
      llvm::SmallVector<Expr, 4> indices(read.indices().begin(), read.indices().end());
      indices.back() = end;
      return Expr::unary(ExprKind::Ascending, Expr::read(tensor->name, indices));
    };
    return {at(last.low), at(last.high)};
  }

  /// Of the elements of a box.
  Ends endsOfRead(const Expr &read) const {
    const Buffer *const tensor = tensorOf(read);
    if (!tensor || llvm::count_if(read.indices(), movesByOne) > (reads == JudgedReads::Runs ? 1 : 0))
      return {};
    llvm::SmallVector<Expr, 8> lows, highs;
    for (const auto &[index, extent] : llvm::zip(read.indices(), tensor->shape)) {
      const Ends ends = endsOfIndex(index, extent);
      if (!ends)
        return {};
      lows.push_back(ends.low);
      highs.push_back(ends.high);
    }
    lows.append(highs);
    const Expr box = Expr::read(tensor->name, lows);
    return {Expr::unary(ExprKind::Lowest, box), Expr::unary(ExprKind::Highest, box)};
  }

  const Kernel &kernel;
  const Ends rows, keys;
  const JudgedReads reads;
};

} // namespace

MaskJudgement fagen::ir::judgeMask(const Kernel &kernel, const Expr &condition, const Expr &firstRow,
                                   const Expr &lastRow, const Expr &firstKey, const Expr &lastKey, JudgedReads reads) {
  return MaskJudge(kernel, {firstRow, lastRow}, {firstKey, lastKey}, reads).judge(condition);
}

bool fagen::ir::canBeJudged(const Kernel &kernel, const Expr &condition, JudgedReads reads) {
  const Expr row = variable(RunValue::ElementRow), key = variable(RunValue::ElementKey); // any ends will do
  const MaskJudgement judgement = judgeMask(kernel, condition, row, row, key, key, reads);
  return readsMemory(condition) && !(judgement.seen == isTrue(true) && judgement.whole == isTrue(false));
}

bool fagen::ir::needsMore(const Kernel &kernel, const Expr &condition, JudgedReads reads) {
  if (condition.kind() == ExprKind::And || condition.kind() == ExprKind::Or || condition.kind() == ExprKind::Not)
    return llvm::any_of(condition.operands(), [&](const Expr &part) { return needsMore(kernel, part, reads); });
  return readsMemory(condition) && !canBeJudged(kernel, condition, reads);
}
