// fagen: the operators of forms by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "form_operators.h"

#include <algorithm>

namespace fagen::lab {

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

bool givesOperandType(FormOperator op) {
  return std::any_of(std::begin(kOperators), std::end(kOperators), [&](const FormOperatorInfo &info) {
    return info.op == op && info.gives == FormOperatorInfo::OperandType;
  });
}

} // namespace fagen::lab
