// fagen: forms as text that parses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Form/Print.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen::form {

/// As the lexer takes it: digits, a point, digits.
static std::string printReal(double value) {
  if (value == -std::numeric_limits<double>::infinity())
    return "-inf";
  std::string text = fmt::format("{:.160f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  return text.back() == '.' ? text + "0" : text;
}

static std::string printList(ArrayRef<NodePtr> nodes, const Form &form) {
  std::string text;
  for (const NodePtr &node : nodes)
    text += (text.empty() ? "" : ", ") + printValue(*node, form);
  return text;
}

static std::string printOperator(const Node &node, const Form &form) {
  const OpInfo &info = opInfo(node.op);
  if (info.isCall())
    return (info.text + "(" + printList(node.operands, form) + ")").str();
  if (info.operands == 1)
    return ("(" + info.text + printValue(*node.operands[0], form) + ")").str();
  return "(" + printValue(*node.operands[0], form) + " " + info.text.str() + " " + printValue(*node.operands[1], form) +
         ")";
}

std::string printValue(const Node &node, const Form &form) {
  switch (node.op) {
  case Op::Integer:
    return std::to_string(node.integer);
  case Op::Real:
    return printReal(node.real);
  case Op::PlaceOf:
    return placeInfo(Place(node.index)).name.str();
  case Op::Param:
    return form.params[node.index].name;
  case Op::Let:
    return form.lets[node.index].name;
  case Op::Read:
    return form.params[node.index].name + "[" + printList(node.operands, form) + "]";
  case Op::Select:
    return "(" + printValue(*node.operands[0], form) + " ? " + printValue(*node.operands[1], form) + " : " +
           printValue(*node.operands[2], form) + ")";
  default:
    return printOperator(node, form);
  }
}

static std::string printExtent(const Extent &extent, const Form &form) {
  if (extent.kind == Extent::Number)
    return std::to_string(extent.value);
  return extent.kind == Extent::OfPlace ? placeInfo(Place(extent.value)).name.str() : form.params[extent.value].name;
}

static std::string printParam(const Param &param, const Form &form) {
  std::string text = "param " + param.name + ": " + toString(param.element).str();
  std::string extents;
  for (const Extent &extent : param.extents)
    extents += (extents.empty() ? "" : ", ") + printExtent(extent, form);
  if (param.isTensor())
    text += "[" + extents + "]";
  if (param.isAscending)
    text += " ascending";
  if (param.hasRange && typeOf(param.element) == Type::I32)
    text += fmt::format(" in [{}, {}]", param.range.low, param.range.high);
  else if (param.hasRange)
    text += " in [" + printReal(param.realRange.low) + ", " + printReal(param.realRange.high) + "]";
  return text + ";";
}

void printForm(const Form &form, raw_ostream &os) {
  os << "form " << form.name << " {\n";
  for (const Param &param : form.params)
    os << "  " << printParam(param, form) << "\n";
  for (const Let &let : form.lets)
    os << "  let " << let.name << " = " << printValue(*let.value, form) << ";\n";
  const std::pair<StringRef, NodePtr> lines[] = {{"score", form.score}, {"mask", form.mask}, {"sink", form.sink}, {"v_scale", form.vScale}};
  for (const auto &[name, value] : lines)
    if (value)
      os << "  " << name << " = " << printValue(*value, form) << ";\n";
  os << "}\n";
}

} // namespace fagen::form
