// fagen: the operators of forms: values, and first-order errors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "form_operators.h"
#include "criteria.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fagen::lab {

static constexpr double kUndecided = std::numeric_limits<double>::infinity();

/// exp, log and sqrt are approximate instructions with factors around them.
static constexpr double kFunctionRounding = 4 * kFormRounding;

static constexpr FormOperatorInfo kOperators[] = {
    {"neg", FormOperator::Neg, 1, FormOperatorInfo::OperandType},
    {"!", FormOperator::Not, 1, FormOperatorInfo::Others},
    {"abs", FormOperator::Abs, 1, FormOperatorInfo::OperandType},
    {"f32", FormOperator::ToF32, 1, FormOperatorInfo::Reals},
    {"i32", FormOperator::ToI32, 1, FormOperatorInfo::Others},
    {"exp", FormOperator::Exp, 1, FormOperatorInfo::Reals},
    {"exp2", FormOperator::Exp2, 1, FormOperatorInfo::Reals},
    {"log", FormOperator::Log, 1, FormOperatorInfo::Reals},
    {"log2", FormOperator::Log2, 1, FormOperatorInfo::Reals},
    {"sqrt", FormOperator::Sqrt, 1, FormOperatorInfo::Reals},
    {"tanh", FormOperator::Tanh, 1, FormOperatorInfo::Reals},
    {"+", FormOperator::Add, 2, FormOperatorInfo::OperandType},
    {"-", FormOperator::Sub, 2, FormOperatorInfo::OperandType},
    {"*", FormOperator::Mul, 2, FormOperatorInfo::OperandType},
    {"/", FormOperator::Div, 2, FormOperatorInfo::Reals},
    {"floor_div", FormOperator::FloorDiv, 2, FormOperatorInfo::Others},
    {"floor_mod", FormOperator::FloorMod, 2, FormOperatorInfo::Others},
    {"min", FormOperator::Min, 2, FormOperatorInfo::OperandType},
    {"max", FormOperator::Max, 2, FormOperatorInfo::OperandType},
    {"&", FormOperator::BitAnd, 2, FormOperatorInfo::Others},
    {"|", FormOperator::BitOr, 2, FormOperatorInfo::Others},
    {"^", FormOperator::BitXor, 2, FormOperatorInfo::Others},
    {"<<", FormOperator::ShiftLeft, 2, FormOperatorInfo::Others},
    {">>", FormOperator::ShiftRight, 2, FormOperatorInfo::Others},
    {"<", FormOperator::Less, 2, FormOperatorInfo::Others},
    {"<=", FormOperator::LessEqual, 2, FormOperatorInfo::Others},
    {">", FormOperator::Greater, 2, FormOperatorInfo::Others},
    {">=", FormOperator::GreaterEqual, 2, FormOperatorInfo::Others},
    {"==", FormOperator::Equal, 2, FormOperatorInfo::Others},
    {"!=", FormOperator::NotEqual, 2, FormOperatorInfo::Others},
    {"&&", FormOperator::And, 2, FormOperatorInfo::Others},
    {"||", FormOperator::Or, 2, FormOperatorInfo::Others},
    {"?:", FormOperator::Select, 3, FormOperatorInfo::OperandType},
};

const FormOperatorInfo *formOperator(std::string_view name) {
  const auto *found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                   [&](const FormOperatorInfo &info) { return info.name == name; });
  return found == std::end(kOperators) ? nullptr : found;
}

static int64_t integer(double value) { return static_cast<int64_t>(value); }

static int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// Towards zero; NaN is 0, and what 32 bits do not hold their end.
static double truncated(double x) {
  if (std::isnan(x))
    return 0;
  return std::trunc(
      std::clamp(x, double(std::numeric_limits<int32_t>::min()), double(std::numeric_limits<int32_t>::max())));
}

double applyFormOperator(FormOperator op, const double *x) {
  switch (op) {
  case FormOperator::Neg:
    return -x[0];
  case FormOperator::Not:
    return x[0] == 0;
  case FormOperator::Abs:
    return std::abs(x[0]);
  case FormOperator::ToF32:
    return x[0];
  case FormOperator::ToI32:
    return truncated(x[0]);
  case FormOperator::Exp:
    return std::exp(x[0]);
  case FormOperator::Exp2:
    return std::exp2(x[0]);
  case FormOperator::Log:
    return std::log(x[0]);
  case FormOperator::Log2:
    return std::log2(x[0]);
  case FormOperator::Sqrt:
    return std::sqrt(x[0]);
  case FormOperator::Tanh:
    return std::tanh(x[0]);
  case FormOperator::Add:
    return x[0] + x[1];
  case FormOperator::Sub:
    return x[0] - x[1];
  case FormOperator::Mul:
    return x[0] * x[1];
  case FormOperator::Div:
    return x[0] / x[1];
  case FormOperator::FloorDiv:
    return double(floorDiv(integer(x[0]), integer(x[1])));
  case FormOperator::FloorMod:
    return x[0] - x[1] * double(floorDiv(integer(x[0]), integer(x[1])));
  case FormOperator::Min:
    return std::fmin(x[0], x[1]);
  case FormOperator::Max:
    return std::fmax(x[0], x[1]);
  case FormOperator::BitAnd:
    return double(integer(x[0]) & integer(x[1]));
  case FormOperator::BitOr:
    return double(integer(x[0]) | integer(x[1]));
  case FormOperator::BitXor:
    return double(integer(x[0]) ^ integer(x[1]));
  case FormOperator::ShiftLeft:
    return x[0] * std::exp2(x[1]);
  case FormOperator::ShiftRight:
    return std::floor(x[0] / std::exp2(x[1]));
  case FormOperator::Less:
    return x[0] < x[1];
  case FormOperator::LessEqual:
    return x[0] <= x[1];
  case FormOperator::Greater:
    return x[0] > x[1];
  case FormOperator::GreaterEqual:
    return x[0] >= x[1];
  case FormOperator::Equal:
    return x[0] == x[1];
  case FormOperator::NotEqual:
    return x[0] != x[1];
  case FormOperator::And:
    return x[0] != 0 && x[1] != 0;
  case FormOperator::Or:
    return x[0] != 0 || x[1] != 0;
  case FormOperator::Select:
    return x[0] != 0 ? x[1] : x[2];
  }
  return 0;
}

/// `value`, with the errors of the operands times their factors, and a share of its own size.
static FormValue combined(double value, const FormValue &a, double byA, const FormValue &b, double byB, double share) {
  FormValue result{value};
  if (!std::isfinite(value)) { // -inf stays what it is, whatever is added
    result.rounding = std::isinf(a.rounding) || std::isinf(b.rounding) ? kUndecided : 0;
    return result;
  }
  const auto sum = [&](double ofA, double ofB) {
    return (ofA ? std::abs(byA) * ofA : 0) + (ofB ? std::abs(byB) * ofB : 0);
  };
  result.rounding = sum(a.rounding, b.rounding) + share * std::abs(value);
  result.tanh = sum(a.tanh, b.tanh);
  result.score = sum(a.score, b.score);
  return result;
}

/// All that a value may be off, the worst tanh and today's bound for scores taken.
static double doubt(const FormValue &x) {
  return x.rounding + x.tanh * kTanhErrors[size_t(Tanh::Approx)] + x.score * kTolerances.lse;
}

static bool isDecided(const FormValue &x) { return !std::isinf(x.rounding); }

static FormValue selected(const FormValue &condition, const FormValue &a, const FormValue &b) {
  FormValue chosen = condition.value != 0 ? a : b;
  if (!isDecided(condition) && a.value != b.value)
    chosen.rounding = std::max(a.rounding, b.rounding) + std::abs(a.value - b.value);
  if (std::isnan(chosen.rounding))
    chosen.rounding = kUndecided;
  return chosen;
}

/// A truth value or an integer: exact, or not known.
static FormValue decidedIf(double value, bool isDecided) { return {value, isDecided ? 0 : kUndecided}; }

static FormValue compared(FormOperator op, const FormValue *x) {
  const double values[] = {x[0].value, x[1].value};
  const double distance = std::abs(values[0] - values[1]), allowed = doubt(x[0]) + doubt(x[1]);
  return decidedIf(applyFormOperator(op, values), allowed == 0 || distance > allowed);
}

static FormValue both(FormOperator op, const FormValue *x) {
  const double values[] = {x[0].value, x[1].value}, deciding = op == FormOperator::Or;
  const auto decides = [&](const FormValue &one) { return isDecided(one) && (one.value != 0) == (deciding != 0); };
  return decidedIf(applyFormOperator(op, values),
                   (isDecided(x[0]) && isDecided(x[1])) || decides(x[0]) || decides(x[1]));
}

static FormValue functionOf(FormOperator op, const FormValue &x) {
  const double value = applyFormOperator(op, &x.value);
  switch (op) {
  case FormOperator::Exp:
    return combined(value, x, value, {}, 0, kFunctionRounding + kFormRounding * std::abs(x.value));
  case FormOperator::Exp2:
    return combined(value, x, value * std::log(2.0), {}, 0, kFunctionRounding);
  case FormOperator::Sqrt:
    return combined(value, x, value > 0 ? 0.5 / value : std::sqrt(doubt(x)) / std::max(doubt(x), 1e-300), {}, 0,
                    kFunctionRounding);
  case FormOperator::Tanh: {
    FormValue result = combined(value, x, 1 - value * value, {}, 0, 0);
    result.tanh += 1;
    return result;
  }
  default: { // logarithms are off by a share of 1 where they are near 0
    const double slope = op == FormOperator::Log ? 1 / x.value : 1 / (x.value * std::log(2.0));
    FormValue result = combined(value, x, slope, {}, 0, kFunctionRounding);
    result.rounding += std::isfinite(value) ? kFunctionRounding : 0;
    return result;
  }
  }
}

static FormValue arithmetic(FormOperator op, bool isReal, const FormValue *x) {
  const double values[] = {x[0].value, x[1].value}, value = applyFormOperator(op, values);
  const double share = isReal ? kFormRounding : 0;
  switch (op) {
  case FormOperator::Mul:
    return combined(value, x[0], values[1], x[1], values[0], share);
  case FormOperator::Div: // by way of a reciprocal
    return combined(value, x[0], 1 / values[1], x[1], value / values[1], 2 * share);
  case FormOperator::Min:
  case FormOperator::Max: {
    const FormValue &chosen = value == values[0] ? x[0] : x[1], &other = value == values[0] ? x[1] : x[0];
    if (std::abs(values[0] - values[1]) > doubt(x[0]) + doubt(x[1]))
      return chosen;
    return {value, std::max(chosen.rounding, other.rounding), std::max(chosen.tanh, other.tanh),
            std::max(chosen.score, other.score)};
  }
  default:
    return combined(value, x[0], 1, x[1], 1, share);
  }
}

FormValue applyFormOperator(FormOperator op, bool isReal, const FormValue *x) {
  switch (op) {
  case FormOperator::Neg:
    return {-x[0].value, x[0].rounding, x[0].tanh, x[0].score};
  case FormOperator::Abs:
    return {std::abs(x[0].value), x[0].rounding, x[0].tanh, x[0].score};
  case FormOperator::Not:
    return decidedIf(x[0].value == 0, isDecided(x[0]));
  case FormOperator::ToF32: // integers beyond 24 bits are rounded
    return {x[0].value,
            x[0].rounding + (double(float(x[0].value)) == x[0].value ? 0 : kFormRounding * std::abs(x[0].value)),
            x[0].tanh, x[0].score};
  case FormOperator::ToI32: {
    const double low = x[0].value - doubt(x[0]), high = x[0].value + doubt(x[0]);
    return decidedIf(truncated(x[0].value), truncated(low) == truncated(high));
  }
  case FormOperator::Select:
    return selected(x[0], x[1], x[2]);
  case FormOperator::And:
  case FormOperator::Or:
    return both(op, x);
  case FormOperator::Less:
  case FormOperator::LessEqual:
  case FormOperator::Greater:
  case FormOperator::GreaterEqual:
  case FormOperator::Equal:
  case FormOperator::NotEqual:
    return compared(op, x);
  case FormOperator::FloorDiv:
  case FormOperator::FloorMod:
  case FormOperator::BitAnd:
  case FormOperator::BitOr:
  case FormOperator::BitXor:
  case FormOperator::ShiftLeft:
  case FormOperator::ShiftRight: {
    const double values[] = {x[0].value, x[1].value};
    return decidedIf(applyFormOperator(op, values), isDecided(x[0]) && isDecided(x[1]));
  }
  default:
    return op >= FormOperator::Exp && op <= FormOperator::Tanh ? functionOf(op, x[0]) : arithmetic(op, isReal, x);
  }
}

} // namespace fagen::lab
