// fagen: the operators of forms by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/kernels/form_value.h"

#include <cstdint>
#include <string_view>

namespace fagen::lab {

struct FormOperatorInfo {
  std::string_view name;
  FormOperator op;
  uint16_t operands;
  enum Gives : uint8_t { Reals, Others, OperandType } gives;
};
/// Null where none is called so.
const FormOperatorInfo *formOperator(std::string_view name);
/// Whether it gives f32 where its operands are f32, and only there.
bool givesOperandType(FormOperator op);

} // namespace fagen::lab
