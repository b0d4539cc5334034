// fagen: values of forms as postfix programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Form/Postfix.h"

#include "fagen/Form/Print.h"

using namespace llvm;

namespace fagen::form {

static std::string wordOf(const Node &node, const Form &form) {
  switch (node.op) {
  case Op::Integer:
  case Op::Real:
    return printValue(node, form);
  case Op::PlaceOf:
    return "@" + printValue(node, form);
  case Op::Param:
    return "$" + printValue(node, form);
  case Op::Let:
    return "=" + printValue(node, form);
  case Op::Read:
    return form.params[node.index].name + "[" + std::to_string(node.operands.size()) + "]";
  case Op::Select:
    return "?:";
  case Op::Neg:
    return "neg";
  default:
    return opInfo(node.op).text.str();
  }
}

std::string toPostfix(const Node &node, const Form &form) {
  std::string text;
  for (const NodePtr &operand : node.operands)
    text += toPostfix(*operand, form) + " ";
  return text + wordOf(node, form);
}

} // namespace fagen::form
