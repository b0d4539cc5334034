// fagen: which values nodes of forms may have: integers, and f32.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Ranges.h"

#include "fagen/Form/Use.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace llvm;
using fagen::ir::ExprKind;
using fagen::ir::Interval;

namespace fagen::form {

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

static Interval hullOf(Interval a, Interval b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

/// Numbers of as many bits as both operands have.
static Interval bitsRange(Op op, Interval a, Interval b) {
  if (op == Op::BitAnd && (a.low >= 0 || b.low >= 0))
    return {0, a.low < 0 ? b.high : b.low < 0 ? a.high : std::min(a.high, b.high)};
  const int64_t most = std::max({a.high, b.high, -a.low - 1, -b.low - 1, int64_t(0)});
  const int64_t end = int64_t(NextPowerOf2(most));
  return {a.low >= 0 && b.low >= 0 ? 0 : -end, end - 1};
}

static std::optional<Interval> shiftRange(Op op, Interval a, Interval by) {
  if (by.low < 0 || by.high > 31)
    return std::nullopt;
  const Interval factor = {int64_t(1) << by.low, int64_t(1) << by.high};
  return ir::range(op == Op::ShiftLeft ? ExprKind::Mul : ExprKind::FloorDiv, a, factor);
}

/// The device divides by 1 and more: floor_div and FloorMod (fagen/device/tile/integer.h).
static std::optional<Interval> divisionRange(ExprKind kind, Interval a, Interval by) {
  return by.low < 1 ? std::nullopt : ir::range(kind, a, by);
}

static Interval absRange(Interval a) {
  const int64_t most = std::max(std::abs(a.low), std::abs(a.high));
  return {a.low <= 0 && a.high >= 0 ? 0 : std::min(std::abs(a.low), std::abs(a.high)), most};
}

/// Towards zero; what i32 cannot hold becomes its end.
static Interval truncatedRange(const Node &from) {
  if (from.type == Type::Bool)
    return {0, 1};
  auto bounded = [](double value) {
    return int64_t(std::trunc(std::clamp(value, double(kI32.low), double(kI32.high))));
  };
  const RealRange &range = from.realRange;
  const Interval finite = {bounded(range.low), bounded(range.high)};
  return {range.mayBeNegativeInfinity ? kI32.low
          : range.mayBeNan            ? std::min<int64_t>(finite.low, 0)
                                      : finite.low,
          range.mayBePositiveInfinity ? kI32.high
          : range.mayBeNan            ? std::max<int64_t>(finite.high, 0)
                                      : finite.high};
}

std::optional<Interval> integerRange(const Node &node) {
  const Interval a = node.operands.front()->range, b = node.operands.back()->range;
  switch (node.op) {
  case Op::Neg:
    return Interval{-a.high, -a.low};
  case Op::Add:
    return ir::range(ExprKind::Add, a, b);
  case Op::Sub:
    return ir::range(ExprKind::Sub, a, b);
  case Op::Mul:
    return ir::range(ExprKind::Mul, a, b);
  case Op::FloorDiv:
    return divisionRange(ExprKind::FloorDiv, a, b);
  case Op::FloorMod:
    return divisionRange(ExprKind::FloorMod, a, b);
  case Op::Min:
    return ir::range(ExprKind::Min, a, b);
  case Op::Max:
    return ir::range(ExprKind::Max, a, b);
  case Op::BitAnd:
  case Op::BitOr:
  case Op::BitXor:
    return bitsRange(node.op, a, b);
  case Op::ShiftLeft:
  case Op::ShiftRight:
    return shiftRange(node.op, a, b);
  case Op::Abs:
    return absRange(a);
  case Op::ToI32:
    return truncatedRange(*node.operands.front());
  case Op::Select:
    return hullOf(node.operands[1]->range, b);
  default:
    llvm_unreachable("gives no integer");
  }
}

// Real numbers

static RealRange joined(const RealRange &a, const RealRange &b) {
  return {std::min(a.low, b.low),
          std::max(a.high, b.high),
          a.mayBeNan || b.mayBeNan,
          a.mayBePositiveInfinity || b.mayBePositiveInfinity,
          a.mayBeNegativeInfinity || b.mayBeNegativeInfinity,
          a.isNeverFinite && b.isNeverFinite};
}

static bool mayBeInfinite(const RealRange &a) { return a.mayBePositiveInfinity || a.mayBeNegativeInfinity; }
static bool mayBeZero(const RealRange &a) { return a.low <= 0 && a.high >= 0; }

static RealRange negated(const RealRange &a) {
  return {-a.high, -a.low, a.mayBeNan, a.mayBeNegativeInfinity, a.mayBePositiveInfinity, a.isNeverFinite};
}

static RealRange sum(const RealRange &a, const RealRange &b) {
  RealRange result = joined(a, b);
  result.low = a.low + b.low;
  result.high = a.high + b.high;
  result.isNeverFinite = a.isNeverFinite || b.isNeverFinite;
  result.mayBeNan |=
      (a.mayBePositiveInfinity && b.mayBeNegativeInfinity) || (a.mayBeNegativeInfinity && b.mayBePositiveInfinity);
  return result;
}

/// 0 times an end without a bound is 0: the end stands for finite values.
static double timesEnds(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

static RealRange product(const RealRange &a, const RealRange &b) {
  RealRange result = joined(a, b);
  const auto ends = {timesEnds(a.low, b.low), timesEnds(a.low, b.high), timesEnds(a.high, b.low),
                     timesEnds(a.high, b.high)};
  result.low = std::min(ends);
  result.high = std::max(ends);
  result.isNeverFinite = a.isNeverFinite || b.isNeverFinite;
  result.mayBeNan |= (mayBeInfinite(a) && mayBeZero(b)) || (mayBeInfinite(b) && mayBeZero(a));
  auto mayBe = [](const RealRange &infinite, const RealRange &other, bool isPositive) {
    const bool mayGrow = other.high > 0 || other.mayBePositiveInfinity;
    const bool mayFall = other.low < 0 || other.mayBeNegativeInfinity;
    return (infinite.mayBePositiveInfinity && (isPositive ? mayGrow : mayFall)) ||
           (infinite.mayBeNegativeInfinity && (isPositive ? mayFall : mayGrow));
  };
  result.mayBePositiveInfinity = mayBe(a, b, true) || mayBe(b, a, true);
  result.mayBeNegativeInfinity = mayBe(a, b, false) || mayBe(b, a, false);
  return result;
}

static RealRange quotient(const RealRange &a, const RealRange &b) {
  if (mayBeZero(b))
    return {-kInfinity, kInfinity, true, true, true};
  RealRange reciprocal = {1 / b.high, 1 / b.low, b.mayBeNan, false, false};
  if (mayBeInfinite(b))
    reciprocal = joined(reciprocal, {0, 0, mayBeInfinite(a), false, false});
  return product(a, reciprocal);
}

/// Of a function that does not decrease.
static RealRange increasing(const RealRange &a, double (*function)(double)) {
  return {function(a.low), function(a.high), a.mayBeNan, a.mayBePositiveInfinity, a.mayBeNegativeInfinity};
}

/// exp and exp2. From `limit` on f32 has no value for it.
static RealRange power(const RealRange &a, double (*function)(double), double limit) {
  RealRange result = increasing(a, function);
  result.low = a.mayBeNegativeInfinity ? 0 : result.low;
  result.mayBeNegativeInfinity = false;
  result.mayBePositiveInfinity |= a.high >= limit;
  result.isNeverFinite = a.low >= limit + 1 && !a.mayBeNegativeInfinity; // the limit is rounded
  return result;
}

static RealRange logarithm(const RealRange &a, double (*function)(double)) {
  RealRange result = increasing(a, [](double x) { return x; });
  result.mayBeNan |= a.low < 0 || a.mayBeNegativeInfinity;
  result.mayBeNegativeInfinity = mayBeZero(a);
  result.low = a.low > 0 ? function(a.low) : -kInfinity;
  result.high = a.high > 0 ? function(a.high) : -kInfinity;
  result.isNeverFinite = a.isNeverFinite || a.high <= 0;
  return result;
}

static RealRange squareRoot(const RealRange &a) {
  return {std::sqrt(std::max(a.low, 0.0)),
          std::sqrt(std::max(a.high, 0.0)),
          a.mayBeNan || a.low < 0 || a.mayBeNegativeInfinity,
          a.mayBePositiveInfinity,
          false,
          a.isNeverFinite};
}

static RealRange hyperbolicTangent(const RealRange &a) {
  return {a.mayBeNegativeInfinity ? -1 : std::tanh(a.low), a.mayBePositiveInfinity ? 1 : std::tanh(a.high), a.mayBeNan,
          false, false};
}

static RealRange absolute(const RealRange &a) {
  const double most = std::max(std::abs(a.low), std::abs(a.high));
  const double least = mayBeZero(a) ? 0 : std::min(std::abs(a.low), std::abs(a.high));
  return {least, most, a.mayBeNan, mayBeInfinite(a), false, a.isNeverFinite};
}

static RealRange lesser(const RealRange &a, const RealRange &b) {
  RealRange result = joined(a, b);
  result.high = std::min(a.high, b.high);
  result.mayBePositiveInfinity = a.mayBePositiveInfinity && b.mayBePositiveInfinity;
  result.isNeverFinite |= a.isNegativeInfinity() || b.isNegativeInfinity();
  return result;
}

RealRange realRange(const Node &node) {
  const RealRange &a = node.operands.front()->realRange, &b = node.operands.back()->realRange;
  switch (node.op) {
  case Op::Neg:
    return negated(a);
  case Op::Add:
    return sum(a, b);
  case Op::Sub:
    return sum(a, negated(b));
  case Op::Mul:
    return product(a, b);
  case Op::Div:
    return quotient(a, b);
  case Op::Min:
    return lesser(a, b);
  case Op::Max:
    return negated(lesser(negated(a), negated(b)));
  case Op::Abs:
    return absolute(a);
  case Op::ToF32:
    return {double(node.operands.front()->range.low), double(node.operands.front()->range.high)};
  case Op::Exp:
    return power(a, std::exp, 88.72);
  case Op::Exp2:
    return power(a, std::exp2, 128);
  case Op::Log:
    return logarithm(a, std::log);
  case Op::Log2:
    return logarithm(a, std::log2);
  case Op::Sqrt:
    return squareRoot(a);
  case Op::Tanh:
    return hyperbolicTangent(a);
  case Op::Select:
    return joined(node.operands[1]->realRange, b);
  default:
    llvm_unreachable("gives no f32");
  }
}

namespace {

/// Values that stand for all that s, or f32 of a place, may be.
struct Plain {
  RealRange score, place;
};

/// Values of a form whose params may be bound: ranges by the ranges of operands, from the leaves on.
class BoundRanges {
public:
  explicit BoundRanges(const Use &use, const Plain &plain = {}) : use(use), plain(plain) {}

  Node of(const Node &node) const {
    if (node.op == Op::Let)
      return of(*use.form->lets[node.index].value);
    Node own = node;
    if (node.op == Op::Param) {
      if (const Bound *bound = use.boundOf(node.index)) {
        own.range = {bound->integer, bound->integer};
        own.realRange = {bound->real, bound->real};
      }
      return own;
    }
    if (node.op == Op::PlaceOf && Place(node.index) == Place::Score)
      own.realRange = plain.score;
    if (node.operands.empty() || node.op == Op::Read)
      return own;
    for (std::shared_ptr<const Node> &operand : own.operands)
      operand = std::make_shared<const Node>(of(*operand));
    if (node.type == Type::F32)
      own.realRange = isOfPlace(node) ? within(realRange(own), plain.place) : realRange(own);
    else if (node.type == Type::I32)
      own.range = integerRange(own).value_or(node.range);
    return own;
  }

private:
  static bool isOfPlace(const Node &node) {
    constexpr uint32_t kPlacesOfElements =
        1u << unsigned(Place::Query) | 1u << unsigned(Place::Key) | 1u << unsigned(Place::QueryPlace);
    return node.op == Op::ToF32 && (node.places & kPlacesOfElements) != 0;
  }
  static RealRange within(const RealRange &range, const RealRange &most) {
    return {std::clamp(range.low, most.low, most.high), std::clamp(range.high, most.low, most.high)};
  }

  const Use &use;
  const Plain plain;
};

} // namespace

RealRange scoreRange(const Use &use) {
  if (!use.form->score)
    return {};
  return BoundRanges(use).of(*use.form->score).realRange;
}

bool isRounded(const Node &node) {
  constexpr int64_t kExact = int64_t(1) << 24;
  constexpr uint32_t kKey = 1u << unsigned(Place::Key);
  const auto any = [&](ArrayRef<NodePtr> operands) {
    return any_of(operands, [](const NodePtr &operand) { return operand->isRounded; });
  };
  switch (node.op) {
  case Op::ToF32: {
    const Node &integer = *node.operands[0];
    return (integer.places & kKey) != 0 || integer.range.low < -kExact || integer.range.high > kExact;
  }
  case Op::Neg:
  case Op::Abs:
  case Op::Min:
  case Op::Max:
    return any(node.operands);
  case Op::Select:
    return any(ArrayRef(node.operands).drop_front());
  default:
    return true;
  }
}

/// Of what is added up, each sum included: one that cancels has lost as much as the largest of its terms.
static bool areTermsSmall(const Node &node) {
  if (!(std::max(-node.realRange.low, node.realRange.high) <= kSmallScore))
    return false;
  const bool isSum = node.op == Op::Add || node.op == Op::Sub;
  return !isSum || all_of(node.operands, [](const NodePtr &term) { return areTermsSmall(*term); });
}

bool mayBeLarge(const Use &use) {
  const Plain plain = {{-kPlainScore, kPlainScore}, {-kPlainPlace, kPlainPlace}};
  return use.form->score && !areTermsSmall(BoundRanges(use, plain).of(*use.form->score));
}

} // namespace fagen::form
