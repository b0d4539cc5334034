// fagen: which integers an expression of a kernel may be.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/ValueRange.h"

#include "fagen/IR/IR.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/RunValues.h"
#include "fagen/IR/Verifier.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>

using namespace fagen::ir;
using llvm::StringRef;

namespace {

constexpr int64_t kMostOfInt = std::numeric_limits<int32_t>::max();
constexpr Interval kInt = {std::numeric_limits<int32_t>::min(), kMostOfInt};
constexpr Interval kNatural = {0, kMostOfInt};
constexpr int64_t kMostOfTile = 1 << 15; ///< rows or keys
constexpr Interval kTruth = {0, 1};
/// Of 64 bits, so that sums of such ends stay in them.
constexpr Interval kAnything = {-(int64_t(1) << 61), int64_t(1) << 61};

Interval hullOf(Interval a, Interval b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

Interval within(Interval bounds, Interval a) {
  return {std::clamp(a.low, bounds.low, bounds.high), std::clamp(a.high, bounds.low, bounds.high)};
}

class Ranges {
public:
  explicit Ranges(const Kernel &kernel) : kernel(kernel) {}

  Interval of(const Expr &expr) const {
    switch (expr.kind()) {
    case ExprKind::Constant:
      return within(kAnything, {expr.value(), expr.value()});
    case ExprKind::Variable:
      return ofName(expr.name());
    case ExprKind::Read:
      return ofElement(expr);
    case ExprKind::Ascending:
    case ExprKind::Lowest:
    case ExprKind::Highest:
      return of(expr.operand());
    case ExprKind::Select:
      return hullOf(of(expr.operands()[1]), of(expr.operands()[2]));
    case ExprKind::Abs:
      return ofMagnitude(of(expr.operand()));
    case ExprKind::SeenTiles:
    case ExprKind::WholeTiles:
    case ExprKind::TileOf:
      return kNatural;
    case ExprKind::Not:
      return kTruth;
    default:
      return expr.isBinary() ? ofBinary(expr) : kInt;
    }
  }

private:
  /// Of what nobody declares, as what emission has put in a value's place, nothing is known.
  Interval ofName(StringRef name) const {
    for (const Scalar &scalar : kernel.scalars)
      if (scalar.name == name)
        return within(kAnything, {scalar.low, scalar.high});
    if (const std::optional<Interval> own = ofProgram(name))
      return *own;
    if (const RunValueInfo *const info = findRunValue(name))
      return ofRunValue(*info);
    if (kernel.hasConstant(name))
      return {kernel.constant(name), kernel.constant(name)};
    const Let *const let = letOf(kernel, Expr::variable(name));
    if ((let && let->judged) || isCounted(name))
      return kNatural;
    if (!let)
      return kInt;
    return let->source ? Interval{let->source->low, let->source->high} : of(let->value);
  }

  /// Whether it is a key of a tile that is judged, or the variable of a loop over tiles.
  bool isCounted(StringRef name) const {
    bool found = llvm::any_of(kernel.lets, [&](const Let &let) {
      return let.judged && (let.judged->low == name || let.judged->high == name);
    });
    for (const Role &role : kernel.roles)
      forEach<LoopOp>(role.body,
                      [&](LoopOp<const Op> loop) { found |= loop.variable() == name || loop.carry() == name; });
    return found;
  }

  /// Of a size, an index of the grid, or the row of a view.
  std::optional<Interval> ofProgram(StringRef name) const {
    for (const GridIndex &index : kernel.grid.indices)
      if (index.name == name)
        return Interval{0, std::max<int64_t>(of(index.extent).high - 1, 0)};
    if (kernel.sizeRanges.count(name.str()) != 0)
      return kernel.rangeOfSize(name);
    const bool isLength =
        llvm::is_contained(kernel.sizes, name) ||
        llvm::any_of(kernel.buffers, [&](const auto &buffer) { return buffer->map && buffer->map->row == name; });
    return isLength ? std::optional(Interval{0, kMostLength}) : std::nullopt;
  }

  /// Packed rows are those of several heads; those of the last tile, too, are below 2^31.
  Interval ofRunValue(const RunValueInfo &info) const {
    const bool isCount = info.kind == RunKind::Count || info.kind == RunKind::Divisor,
               isRow = info.value == RunValue::RowBegin || info.value == RunValue::ElementRow;
    return {isCount ? 1 : 0, info.value == RunValue::GroupRow ? kMostOfTile
                             : isRow && kernel.packsHeads()   ? kMostOfInt - kMostOfTile
                                                              : kMostLength};
  }

  Interval ofElement(const Expr &read) const {
    const Buffer *const tensor = kernel.buffer(read.operands().front().name().drop_front());
    if (!tensor)
      return kInt;
    if (tensor->values)
      return *tensor->values;
    switch (tensor->type) {
    case ElementType::Bit:
      return kTruth;
    case ElementType::U8:
      return {0, 255};
    case ElementType::U32:
      return kNatural;
    default:
      return {-kMaxReadValue, kMaxReadValue};
    }
  }

  static Interval ofMagnitude(Interval a) {
    const int64_t most = std::max(std::abs(a.low), std::abs(a.high));
    return {a.low > 0 || a.high < 0 ? std::min(std::abs(a.low), std::abs(a.high)) : 0, most};
  }

  /// d (x / d + n), which is near x whatever d is: between x + apart.low and x + apart.high.
  struct Rounded {
    Expr x;
    Interval apart;
  };

  std::optional<Rounded> rounded(const Expr &expr) const {
    if (expr.kind() != ExprKind::Mul)
      return std::nullopt;
    for (auto [divisor, quotient] : {std::pair(expr.lhs(), expr.rhs()), std::pair(expr.rhs(), expr.lhs())}) {
      const bool isNext = quotient.kind() == ExprKind::Add && quotient.rhs() == constant(1);
      const Expr &division = isNext ? quotient.lhs() : quotient;
      const Interval d = of(divisor);
      if (division.kind() == ExprKind::FloorDiv && division.rhs() == divisor && d.low >= 1)
        return Rounded{division.lhs(), {isNext ? 1 : 1 - d.high, isNext ? d.high : 0}};
    }
    return std::nullopt;
  }

  /// What a sum is made of, and what its products add to that.
  using Terms = llvm::SmallVector<std::pair<Expr, bool>, 8>; ///< and whether they are subtracted
  struct Sum {
    Terms terms;
    Interval known = {0, 0};
    void add(Interval term, bool isNegative) {
      known.low = std::max(known.low + (isNegative ? -term.high : term.low), kAnything.low);
      known.high = std::min(known.high + (isNegative ? -term.low : term.high), kAnything.high);
    }
  };

  void collect(const Expr &expr, bool isNegative, Sum &sum) const {
    if (const std::optional<Rounded> product = rounded(expr)) {
      sum.add(product->apart, isNegative);
      return collect(product->x, isNegative, sum);
    }
    if (expr.kind() != ExprKind::Add && expr.kind() != ExprKind::Sub)
      return sum.terms.push_back({expr, isNegative});
    collect(expr.lhs(), isNegative, sum);
    collect(expr.rhs(), isNegative != (expr.kind() == ExprKind::Sub), sum);
  }

  static bool isRow(const Expr &term) {
    if (term.kind() == ExprKind::FloorDiv && term.rhs() == variable(RunValue::HeadsPerKv))
      return term.lhs().uses(nameOf(RunValue::RowBegin)) || term.lhs().uses(nameOf(RunValue::ElementRow));
    return term == variable(RunValue::RowBegin) || term == variable(RunValue::ElementRow);
  }

  /// Takes a - b, or b - a, out of the terms; nothing where they have not both.
  static std::optional<bool> takeDifference(Terms &terms, llvm::function_ref<bool(const Expr &)> isA, RunValue b) {
    auto *const minuend = llvm::find_if(terms, [&](const auto &term) { return isA(term.first); });
    auto *const other = llvm::find_if(terms, [&](const auto &term) { return term.first == variable(b); });
    if (minuend == terms.end() || other == terms.end() || minuend->second == other->second)
      return std::nullopt;
    const bool isNegative = minuend->second;
    terms.erase(std::max(minuend, other));
    terms.erase(std::min(minuend, other));
    return isNegative;
  }

  /// As of q + seq_kv - seq_q: no row lies beyond the last tile of seq_q. Nor does a split begin far beyond seq_kv:
  /// where there are fewer tiles than splits, by no more than a tile for each.
  Interval ofSum(const Expr &expr) const {
    constexpr int64_t kMostOfSplits = 2 * kMostOfTile;
    Sum sum;
    collect(expr, false, sum);
    if (const auto isNegative = takeDifference(sum.terms, isRow, RunValue::SeqQ))
      sum.add({-kMostLength, kMostOfTile}, *isNegative);
    auto isKeys = [](const Expr &term) { return term == variable(RunValue::SeqKv); };
    if (const auto isNegative = takeDifference(sum.terms, isKeys, RunValue::SplitBegin))
      sum.add({-kMostOfSplits, kMostLength}, *isNegative);
    for (const auto &[term, isNegative] : sum.terms)
      sum.add(of(term), isNegative);
    return sum.known;
  }

  Interval ofBinary(const Expr &expr) const {
    if (expr.kind() == ExprKind::Add || expr.kind() == ExprKind::Sub || rounded(expr))
      return ofSum(expr);
    const Interval a = of(expr.lhs()), b = of(expr.rhs());
    switch (expr.kind()) {
    case ExprKind::BitAnd:
      return a.low >= 0 || b.low >= 0 ? Interval{0, a.low < 0   ? b.high
                                                    : b.low < 0 ? a.high
                                                                : std::min(a.high, b.high)}
                                      : kInt;
    case ExprKind::BitOr:
    case ExprKind::BitXor:
      return a.low >= 0 && b.low >= 0 ? kNatural : kInt;
    case ExprKind::ShiftLeft: // forms prove that it fits
      return a.low >= 0 ? kNatural : kInt;
    case ExprKind::ShiftRight:
      return {std::min<int64_t>(a.low, 0), std::max<int64_t>(a.high, 0)};
    case ExprKind::FloorDiv: // of packed rows: a query
      if (expr.rhs() == variable(RunValue::HeadsPerKv) && a.low >= 0)
        return {0, std::min(a.high, kMostLength)};
      break;
    default:
      break;
    }
    const std::optional<Interval> range = fagen::ir::range(expr.kind(), a, b);
    return range ? within(kAnything, *range) : kAnything;
  }

  const Kernel &kernel;
};

} // namespace

Interval fagen::ir::valueRange(const Kernel &kernel, const Expr &expr) { return Ranges(kernel).of(expr); }

static bool isWithin(Interval own, int64_t room) { return own.low >= kInt.low + room && own.high <= kInt.high - room; }

/// Parts of sums need not fit: ints wrap around.
static bool partsFit(const Kernel &kernel, const Expr &expr) {
  const bool isSum = expr.kind() == ExprKind::Add || expr.kind() == ExprKind::Sub;
  return expr.kind() == ExprKind::Read || llvm::all_of(expr.operands(), [&](const Expr &operand) {
           const bool isPartialSum = isSum && (operand.kind() == ExprKind::Add || operand.kind() == ExprKind::Sub);
           return (isPartialSum || isWithin(valueRange(kernel, operand), 0)) && partsFit(kernel, operand);
         });
}

/// The variable of a loop, or of nothing.
static bool isUndeclared(const Kernel &kernel, StringRef name) {
  const auto scalar = llvm::find_if(kernel.scalars, [&](const Scalar &each) { return each.name == name; });
  return !findRunValue(name) && scalar == kernel.scalars.end() && !kernel.hasConstant(name) &&
         !letOf(kernel, Expr::variable(name)) && !name.starts_with("%");
}

bool fagen::ir::fitsInInt(const Kernel &kernel, const Expr &expr) {
  bool hasUndeclared = false;
  expr.forEachVariable([&](StringRef name) { hasUndeclared |= isUndeclared(kernel, name); });
  if (hasUndeclared)
    return true;
  return isWithin(valueRange(kernel, expr), kMostOfTile) && partsFit(kernel, expr);
}
