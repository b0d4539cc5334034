// fagen: values of forms, with how far f32 may be from them, and the operators; host code and the reference kernels
// share this text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Checking.md has the table of errors. Freestanding: NVRTC compiles it after sum_loss.h.
#pragma once

#ifndef __CUDACC_RTC__
#include "sum_loss.h"

#include <math.h> // global names, as NVRTC has them
#endif

namespace fagen::lab {

enum class FormOperator : unsigned char {
  Neg,
  Not,
  Abs,
  ToF32,
  ToI32,
  Exp,
  Exp2,
  Log,
  Log2,
  Sqrt,
  Tanh,
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  FloorMod,
  Min,
  Max,
  BitAnd,
  BitOr,
  BitXor,
  ShiftLeft,
  ShiftRight,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Equal,
  NotEqual,
  And,
  Or,
  Select,
};

/// A value and how far f32 may be from it, to first order: `rounding`, `tanh` times what a tanh is off, and `score`
/// times what the element's own score is off. An infinite rounding: a comparison is too close to say.
struct FormValue {
  double value = 0, rounding = 0, tanh = 0, score = 0;
  bool follows = false; ///< made of an integer, as of a place: kernels add that up in another order
};

/// What one f32 operation may be off, relative to what it gives: it rounds, and so does what the compiler makes of it
/// when it turns natural units into powers of two.
inline constexpr double kFormRounding = 0x1p-23;
/// Sums beyond this are those of f32: kernels leave them as they were rounded. Of smaller scores they may make others.
inline constexpr double kRoundedFrom = 16384;
/// exp, log and sqrt are approximate instructions with factors around them.
inline constexpr double kFunctionRounding = 4 * kFormRounding;
/// How far a tanh is off, at most: 1 - 2 / (1 + exp(2x)); the instruction.
inline constexpr double kTanhErrors[] = {2.7e-7, 7.7e-6};
/// Weights below this may be 0 in a kernel: exp2 gives 0 below f32's smallest normal number, and a weight is a product
/// of exp2 of which none exceeds 1. Twice that number, since rounding moves weights.
inline constexpr double kLeastWeight = 0x1p-125;
/// How far a score is taken to be off where a form compares it: as much as an LSE is allowed.
inline constexpr double kScoreDoubt = 1e-5;

inline double asF32(double x) { return static_cast<double>(static_cast<float>(x)); }

inline double infinity() { return doubleOfBits(0x7ff0000000000000ll); }
inline bool isInfinite(double x) { return fabs(x) == infinity(); }
inline bool isNan(double x) { return x != x; }

inline long long integerOf(double value) { return static_cast<long long>(value); }

inline long long floorDiv(long long a, long long b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// Towards zero; NaN is 0, and what 32 bits do not hold their end.
inline double truncated(double x) {
  return isNan(x) ? 0 : x < -2147483648.0 ? -2147483648.0 : x > 2147483647.0 ? 2147483647.0 : trunc(x);
}

__attribute__((noinline)) inline double applyFormOperator(FormOperator op, const double *x) {
  switch (op) {
  case FormOperator::Neg:
    return -x[0];
  case FormOperator::Not:
    return x[0] == 0;
  case FormOperator::Abs:
    return fabs(x[0]);
  case FormOperator::ToF32:
    return x[0];
  case FormOperator::ToI32:
    return truncated(x[0]);
  case FormOperator::Exp:
    return exp(x[0]);
  case FormOperator::Exp2:
    return exp2(x[0]);
  case FormOperator::Log:
    return log(x[0]);
  case FormOperator::Log2:
    return log2(x[0]);
  case FormOperator::Sqrt:
    return sqrt(x[0]);
  case FormOperator::Tanh:
    return tanh(x[0]);
  case FormOperator::Add:
    return x[0] + x[1];
  case FormOperator::Sub:
    return x[0] - x[1];
  case FormOperator::Mul:
    return x[0] * x[1];
  case FormOperator::Div:
    return x[0] / x[1];
  case FormOperator::FloorDiv:
    return static_cast<double>(floorDiv(integerOf(x[0]), integerOf(x[1])));
  case FormOperator::FloorMod:
    return x[0] - x[1] * static_cast<double>(floorDiv(integerOf(x[0]), integerOf(x[1])));
  case FormOperator::Min:
    return fmin(x[0], x[1]);
  case FormOperator::Max:
    return fmax(x[0], x[1]);
  case FormOperator::BitAnd:
    return static_cast<double>(integerOf(x[0]) & integerOf(x[1]));
  case FormOperator::BitOr:
    return static_cast<double>(integerOf(x[0]) | integerOf(x[1]));
  case FormOperator::BitXor:
    return static_cast<double>(integerOf(x[0]) ^ integerOf(x[1]));
  case FormOperator::ShiftLeft:
    return x[0] * exp2(x[1]);
  case FormOperator::ShiftRight:
    return floor(x[0] / exp2(x[1]));
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

/// A value that a comparison decides, and the comparison is too close to say.
inline double undecided() { return infinity(); }
inline bool isDecided(const FormValue &x) { return !isInfinite(x.rounding); }

/// `value`, with the errors of the operands times their factors, and a share of its own size.
inline FormValue combined(double value, const FormValue &a, double byA, const FormValue &b, double byB, double share) {
  FormValue result{value};
  result.follows = a.follows || b.follows;
  if (isInfinite(value) || isNan(value)) { // -inf stays what it is, whatever is added
    result.rounding = isDecided(a) && isDecided(b) ? 0 : undecided();
    return result;
  }
  const auto sum = [&](double ofA, double ofB) {
    return (ofA != 0 ? fabs(byA) * ofA : 0) + (ofB != 0 ? fabs(byB) * ofB : 0);
  };
  result.rounding = sum(a.rounding, b.rounding) + share * fabs(value);
  result.tanh = sum(a.tanh, b.tanh);
  result.score = sum(a.score, b.score);
  return result;
}

/// All that a value may be off, with the worst tanh.
inline double doubt(const FormValue &x) { return x.rounding + x.tanh * kTanhErrors[1] + x.score * kScoreDoubt; }

/// What a key of weight `p` may move O by, in units of the distance of its V from O: with each kind of tanh, and by
/// underflow alone.
inline constexpr int kMoves = 3, kUnderflow = 2;
inline void movesOf(const FormValue &value, double p, double (&moves)[kMoves]) {
  moves[kUnderflow] = p < kLeastWeight ? p : 0;
  for (int kind = 0; kind < kUnderflow; ++kind)
    moves[kind] = p * expm1(2 * (value.rounding + kTanhErrors[kind] * value.tanh)) + moves[kUnderflow];
}

inline FormValue selected(const FormValue &condition, const FormValue &a, const FormValue &b) {
  FormValue chosen = condition.value != 0 ? a : b;
  if (!isDecided(condition) && a.value != b.value)
    chosen.rounding = fmax(a.rounding, b.rounding) + fabs(a.value - b.value);
  if (isNan(chosen.rounding))
    chosen.rounding = undecided();
  return chosen;
}

/// A truth value or an integer: exact, or not known.
inline FormValue decidedIf(double value, bool isDecided) { return {value, isDecided ? 0 : undecided()}; }

inline FormValue compared(FormOperator op, const FormValue *x) {
  const double values[] = {x[0].value, x[1].value};
  const double distance = fabs(values[0] - values[1]), allowed = doubt(x[0]) + doubt(x[1]);
  return decidedIf(applyFormOperator(op, values), allowed == 0 || distance > allowed);
}

inline FormValue both(FormOperator op, const FormValue *x) {
  const double values[] = {x[0].value, x[1].value};
  const bool deciding = op == FormOperator::Or;
  const auto decides = [&](const FormValue &one) { return isDecided(one) && (one.value != 0) == deciding; };
  return decidedIf(applyFormOperator(op, values),
                   (isDecided(x[0]) && isDecided(x[1])) || decides(x[0]) || decides(x[1]));
}

inline FormValue functionOf(FormOperator op, const FormValue &x) {
  constexpr double kLog2 = 0.69314718055994530942;
  const double value = applyFormOperator(op, &x.value);
  switch (op) {
  case FormOperator::Exp:
    return combined(value, x, value, {}, 0, kFunctionRounding + kFormRounding * fabs(x.value));
  case FormOperator::Exp2:
    return combined(value, x, value * kLog2, {}, 0, kFunctionRounding);
  case FormOperator::Sqrt:
    return combined(value, x, value > 0 ? 0.5 / value : sqrt(doubt(x)) / fmax(doubt(x), 1e-300), {}, 0,
                    kFunctionRounding);
  case FormOperator::Tanh: {
    FormValue result = combined(value, x, 1 - value * value, {}, 0, 0);
    result.tanh += 1;
    return result;
  }
  default: { // logarithms are off by a share of 1 where they are near 0
    const double slope = op == FormOperator::Log ? 1 / x.value : 1 / (x.value * kLog2);
    FormValue result = combined(value, x, slope, {}, 0, kFunctionRounding);
    result.rounding += isInfinite(value) || isNan(value) ? 0 : kFunctionRounding;
    return result;
  }
  }
}

inline bool isSum(FormOperator op) { return op == FormOperator::Add || op == FormOperator::Sub; }

/// A sum as f32 has it, where it is large.
inline double roundedSum(double sum) { return fabs(sum) > kRoundedFrom ? asF32(sum) : sum; }

/// `exact` of a large sum, given how far the exact one of a kernel's operands may be from it. Where all of that rounds
/// to one value of f32, the kernel has this value, and nothing that the operands are off is left.
inline FormValue roundedSum(const FormValue &exact, double off) {
  FormValue rounded = exact;
  rounded.value = roundedSum(exact.value);
  if (!exact.follows && asF32(exact.value - off) == rounded.value && asF32(exact.value + off) == rounded.value)
    rounded.rounding = rounded.tanh = rounded.score = 0;
  return rounded;
}

inline FormValue sumOf(FormOperator op, const FormValue *x) {
  const double values[] = {x[0].value, x[1].value}, value = applyFormOperator(op, values);
  const FormValue exact = combined(value, x[0], 1, x[1], 1, kFormRounding);
  return fabs(value) > kRoundedFrom && isDecided(exact) ? roundedSum(exact, doubt(x[0]) + doubt(x[1])) : exact;
}

inline FormValue arithmetic(FormOperator op, bool isReal, const FormValue *x) {
  if (isReal && isSum(op))
    return sumOf(op, x);
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
    if (fabs(values[0] - values[1]) > doubt(x[0]) + doubt(x[1]))
      return chosen;
    return {value, fmax(chosen.rounding, other.rounding), fmax(chosen.tanh, other.tanh),
            fmax(chosen.score, other.score), chosen.follows || other.follows};
  }
  default:
    return combined(value, x[0], 1, x[1], 1, share);
  }
}

/// `isReal`: the operands are f32, so that arithmetic rounds.
__attribute__((noinline)) inline FormValue applyFormOperator(FormOperator op, bool isReal, const FormValue *x) {
  switch (op) {
  case FormOperator::Neg:
    return {-x[0].value, x[0].rounding, x[0].tanh, x[0].score, x[0].follows};
  case FormOperator::Abs:
    return {fabs(x[0].value), x[0].rounding, x[0].tanh, x[0].score, x[0].follows};
  case FormOperator::Not:
    return decidedIf(x[0].value == 0, isDecided(x[0]));
  case FormOperator::ToF32: { // integers beyond 24 bits are rounded
    const bool isExact = asF32(x[0].value) == x[0].value;
    return {x[0].value, x[0].rounding + (isExact ? 0 : kFormRounding * fabs(x[0].value)), x[0].tanh, x[0].score};
  }
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
