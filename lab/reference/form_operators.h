// fagen: the operators of forms, on numbers and on numbers with errors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "form.h"

#include <string_view>

namespace fagen::lab {

enum class FormOperator : uint8_t {
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

struct FormOperatorInfo {
  std::string_view name;
  FormOperator op;
  uint16_t operands;
  enum Gives : uint8_t { Reals, Others, OperandType } gives;
};
/// Null where none is called so.
const FormOperatorInfo *formOperator(std::string_view name);

double applyFormOperator(FormOperator op, const double *operands);
/// `isReal`: the operands are f32, so that arithmetic rounds.
FormValue applyFormOperator(FormOperator op, bool isReal, const FormValue *operands);

/// What one f32 operation may be off, relative to what it gives: it rounds, and so does what the compiler makes of it
/// when it turns natural units into powers of two.
inline constexpr double kFormRounding = 0x1p-23;

} // namespace fagen::lab
