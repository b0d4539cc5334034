// fagen: values of forms: names, types and ranges of every subexpression.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Checker.h"
#include "Hints.h"
#include "Ranges.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen::form {

NodePtr Checker::fail(SMRange range, const Twine &message) {
  diags.error(range, message);
  return nullptr;
}

NodePtr Checker::value(const ast::Expr &expr) {
  switch (expr.kind) {
  case ast::Expr::Integer:
  case ast::Expr::Decimal:
    return literal(expr);
  case ast::Expr::Variable:
    return named(expr);
  case ast::Expr::Call:
    return call(expr);
  case ast::Expr::Read:
    return read(expr);
  case ast::Expr::Unary:
    return unary(expr);
  case ast::Expr::Binary:
    return binary(expr);
  case ast::Expr::Select:
    return select(expr);
  }
  llvm_unreachable("a kind of expression");
}

// Leaves

static NodePtr realNode(double value, bool isRounded = false) {
  Node node;
  node.op = Op::Real;
  node.type = Type::F32;
  node.real = value;
  node.isRounded = isRounded;
  const bool isFinite = value != -std::numeric_limits<double>::infinity();
  const double end = isFinite ? value : -double(std::numeric_limits<float>::max());
  node.realRange = {end, end, false, false, !isFinite, !isFinite};
  return std::make_shared<const Node>(std::move(node));
}

static NodePtr integerNode(int64_t value) {
  Node node;
  node.integer = value;
  node.range = {value, value};
  return std::make_shared<const Node>(std::move(node));
}

NodePtr Checker::literal(const ast::Expr &expr) {
  if (expr.kind == ast::Expr::Decimal) {
    if (expr.decimal > double(std::numeric_limits<float>::max()))
      return fail(expr.range, "'" + textAt(expr.range) + "' does not fit in f32");
    return realNode(float(expr.decimal), double(float(expr.decimal)) != expr.decimal);
  }
  if (expr.integer > kI32.high)
    return fail(expr.range, "'" + textAt(expr.range) + "' does not fit in 32 bits");
  return integerNode(expr.integer);
}

Checker::Name *Checker::lookup(StringRef name, SMRange range) {
  auto found = names.find(name);
  if (found != names.end())
    return &found->second;
  std::vector<StringRef> known;
  for (const auto &entry : names)
    known.push_back(entry.first());
  sort(known);
  StringRef near = nearestWord(name, known);
  const StringRef hint = hintForName(name);
  fail(range, !hint.empty() ? fmt::format("unknown name '{}'; {}", name.str(), hint.str())
              : near.empty()
                  ? fmt::format("unknown name '{0}'; known here are {1}; 'param {0}: i32;' before declares a "
                                "number of the caller's",
                                name.str(), alternatives(known))
                  : fmt::format("unknown name '{}'; did you mean '{}'?", name.str(), near.str()));
  return nullptr;
}

NodePtr Checker::named(const ast::Expr &expr) {
  if (expr.name == "inf")
    return fail(expr.range, "a score is finite or -inf; 'inf' stands after a minus only");
  Name *name = lookup(expr.name, expr.range);
  if (!name)
    return nullptr;
  name->isUsed = true;
  if (name->isBroken)
    return nullptr;
  Node node;
  node.index = name->index;
  if (name->kind == Name::OfPlace) {
    const PlaceInfo &place = placeInfo(Place(name->index));
    node.op = Op::PlaceOf;
    node.type = place.type;
    node.range = place.range;
    node.places = 1u << name->index;
    node.isRounded = place.type == Type::F32;
  } else if (name->kind == Name::OfLet) {
    const Node &value = *form.lets[name->index].value;
    node.op = Op::Let;
    node.type = value.type;
    node.range = value.range;
    node.realRange = value.realRange;
    node.places = value.places;
    node.isRounded = value.isRounded;
  } else {
    const Param &param = form.params[name->index];
    if (param.isTensor())
      return fail(expr.range, fmt::format("'{}' is a tensor; read it: {}[...]", expr.name, expr.name));
    node.op = Op::Param;
    node.type = typeOf(param.element);
    node.range = param.range;
    node.realRange = param.realRange;
  }
  return std::make_shared<const Node>(std::move(node));
}

// Operators

std::vector<NodePtr> Checker::valuesOf(const ast::Expr &expr) {
  std::vector<NodePtr> values;
  for (const std::unique_ptr<ast::Expr> &operand : expr.operands) {
    values.push_back(value(*operand));
    if (!values.back())
      return {}; // one mistake a value: the next may follow from it
  }
  return values;
}

NodePtr Checker::read(const ast::Expr &expr) {
  Name *name = lookup(expr.name, expr.range);
  if (!name)
    return nullptr;
  name->isUsed = true;
  if (name->isBroken)
    return nullptr;
  if (name->kind != Name::OfParam || !form.params[name->index].isTensor())
    return fail(expr.range, "'" + expr.name + "' is not a tensor; it takes no indices");
  const Param &param = form.params[name->index];
  if (expr.operands.size() != param.extents.size())
    return fail(expr.range, fmt::format("'{}' has {} {}; {} {} given", expr.name, param.extents.size(),
                                        param.extents.size() == 1 ? "index" : "indices", expr.operands.size(),
                                        expr.operands.size() == 1 ? "is" : "are"));
  Node node;
  node.op = Op::Read;
  node.index = name->index;
  node.type = typeOf(param.element);
  node.range = node.type == Type::Bool ? ir::Interval{0, 1} : param.range;
  node.realRange = param.realRange;
  node.operands = valuesOf(expr);
  if (node.operands.empty())
    return nullptr;
  for (auto [index, operand] : enumerate(node.operands)) {
    if (operand->type != Type::I32)
      return fail(expr.operands[index]->range, "an index is an integer, not " + describe(operand->type));
    node.places |= operand->places;
  }
  return std::make_shared<const Node>(std::move(node));
}

/// An integer that stands next to real numbers is one of them.
bool Checker::unify(std::vector<NodePtr> &operands) {
  const bool hasReal = any_of(operands, [](const NodePtr &node) { return node->type == Type::F32; });
  for (NodePtr &operand : operands)
    if (hasReal && operand->op == Op::Integer)
      operand = realNode(float(operand->integer));
  return all_of(operands, [&](const NodePtr &node) { return node->type == operands.front()->type; });
}

/// "'window' is 0 to 1048576, 'seq_kv' is 1 to 1073741824"
std::string Checker::rangesOf(const ast::Expr &expr, const Node &node) const {
  std::string text;
  for (auto [source, operand] : zip(expr.operands, node.operands))
    if (operand->type == Type::I32 && operand->op != Op::Integer)
      text += fmt::format("{}'{}' is {} to {}", text.empty() ? "" : ", ", textAt(source->range), operand->range.low,
                          operand->range.high);
  return text;
}

static std::string mayDivideByLess(const Node &divisor, const std::string &text, const std::string &ofDivisor) {
  if (divisor.range.low == divisor.range.high)
    return fmt::format("'{}' divides by {}; a divisor is 1 or more", text, divisor.range.low);
  return fmt::format("'{}' may divide by less than 1: '{}' is {} to {}; give a param a range from 1 on, or take "
                     "max(..., 1)",
                     text, ofDivisor, divisor.range.low, divisor.range.high);
}

/// Sets what follows from the operands.
NodePtr Checker::finish(Node node, const ast::Expr &expr) {
  for (const NodePtr &operand : node.operands)
    node.places |= operand->places;
  if (node.type == Type::Bool)
    node.range = {0, 1};
  if (node.type == Type::F32) {
    node.realRange = realRange(node);
    node.isRounded = isRounded(node);
  }
  if (node.type != Type::I32)
    return std::make_shared<const Node>(std::move(node));
  const std::string text = textAt(expr.range);
  const std::optional<ir::Interval> range = integerRange(node);
  if (!range && (node.op == Op::ShiftLeft || node.op == Op::ShiftRight))
    return fail(expr.range, "'" + text + "' may shift by less than 0 or by more than 31: " + rangesOf(expr, node) +
                                "; give a param a range, or clamp it");
  if (!range)
    return fail(expr.range, mayDivideByLess(*node.operands[1], text, textAt(expr.operands.back()->range)));
  if (range->low < kI32.low || range->high > kI32.high)
    return fail(expr.range, "'" + text + "' may leave 32 bits: " + rangesOf(expr, node) +
                                "; give a param a smaller range, or clamp it");
  node.range = *range;
  return std::make_shared<const Node>(std::move(node));
}

/// What operands an operator takes, in words; empty when these are right.
static std::string wantedBy(const OpInfo &info, ArrayRef<NodePtr> operands, bool areSame) {
  const Type type = operands.front()->type;
  switch (info.rule) {
  case OpInfo::Numbers:
  case OpInfo::Compares:
    return areSame && type != Type::Bool ? "" : info.operands == 1 ? "a number" : "two integers or two real numbers";
  case OpInfo::Integers:
    return areSame && type == Type::I32 ? "" : "integers";
  case OpInfo::Reals:
    return areSame && type == Type::F32 ? "" : "real numbers (f32)";
  case OpInfo::Truths:
    return areSame && type == Type::Bool ? "" : "truth values";
  case OpInfo::Converts:
    return info.op == Op::ToI32 && type == Type::I32   ? "a real number (f32) or a truth value"
           : info.op == Op::ToF32 && type == Type::F32 ? "an integer or a truth value"
                                                       : "";
  }
  llvm_unreachable("a rule");
}

static StringRef remedyFor(const OpInfo &info, ArrayRef<NodePtr> operands) {
  const bool hasIntegers = any_of(operands, [](const NodePtr &node) { return node->type == Type::I32; });
  const bool hasReals = any_of(operands, [](const NodePtr &node) { return node->type == Type::F32; });
  if (info.op == Op::Div && hasIntegers && !hasReals)
    return "; integers take floor_div(a, b)";
  if (info.op == Op::BitXor && hasReals)
    return "; a power is written x * x, or exp2(y * log2(x))";
  if (info.rule != OpInfo::Truths && any_of(operands, [](const NodePtr &node) { return node->type == Type::Bool; }))
    return "; truth values are joined with && and ||, and a choice makes numbers of them: c ? 1 : 0";
  return hasIntegers && hasReals ? "; f32(x) makes a real number of an integer" : "";
}

NodePtr Checker::apply(const OpInfo &info, const ast::Expr &expr, std::vector<NodePtr> operands) {
  if (operands.size() != info.operands)
    return fail(expr.range, fmt::format("{} takes {} argument{}, not {}", info.text.str(), info.operands,
                                        info.operands == 1 ? "" : "s", operands.size()));
  if (info.rule == OpInfo::Reals && info.operands == 1 && operands[0]->op == Op::Integer)
    operands[0] = realNode(float(operands[0]->integer));
  const bool areSame = unify(operands);
  if (std::string wanted = wantedBy(info, operands, areSame); !wanted.empty()) {
    std::string given;
    for (const NodePtr &operand : operands)
      given += (given.empty() ? "" : " and ") + describe(operand->type).str();
    return fail(expr.range, fmt::format("'{}' takes {}, not {}{}", info.text.str(), wanted, given,
                                        remedyFor(info, operands).str()));
  }
  Node node;
  node.op = info.op;
  node.type = info.rule == OpInfo::Compares || info.rule == OpInfo::Truths ? Type::Bool
              : info.rule == OpInfo::Converts ? (info.op == Op::ToF32 ? Type::F32 : Type::I32)
                                              : operands.front()->type;
  node.operands = std::move(operands);
  if (node.op == Op::ToI32 && node.operands[0]->isRounded)
    warnOfRounding(expr);
  return finish(std::move(node), expr);
}

/// Checks of kernels leave rows out in which an error of rounding decides.
void Checker::warnOfRounding(const ast::Expr &expr) {
  diags.warning(expr.range,
                "'" + textAt(expr.range) +
                    "' makes an integer of a number that f32 may have rounded: where it is near an integer, "
                    "fagen-run check cannot say which is right, and too few rows may be left to judge the "
                    "kernel by; calculate in integers");
}

NodePtr Checker::unary(const ast::Expr &expr) {
  const ast::Expr &operand = *expr.operands[0];
  const bool isMinus = expr.name == "-";
  if (isMinus && operand.kind == ast::Expr::Variable && operand.name == "inf")
    return realNode(-std::numeric_limits<double>::infinity());
  NodePtr node = value(operand);
  if (!node)
    return nullptr;
  if (isMinus && node->op == Op::Integer)
    return integerNode(-node->integer);
  if (isMinus && node->op == Op::Real && node->realRange.low == node->real)
    return realNode(-node->real);
  return apply(opInfo(isMinus ? Op::Neg : Op::Not), expr, {std::move(node)});
}

NodePtr Checker::binary(const ast::Expr &expr) {
  if (expr.name == "%")
    return fail(expr.range, "forms have no '%': floor_mod(a, b) has the sign of b");
  for (const OpInfo &info : allOps()) {
    if (info.text != expr.name || info.operands != 2)
      continue;
    std::vector<NodePtr> operands = valuesOf(expr);
    return operands.empty() ? nullptr : apply(info, expr, std::move(operands));
  }
  llvm_unreachable("the parser gives no other operator");
}

NodePtr Checker::select(const ast::Expr &expr) {
  std::vector<NodePtr> operands = valuesOf(expr);
  if (operands.empty())
    return nullptr;
  if (operands[0]->type != Type::Bool)
    return fail(expr.operands[0]->range, "a condition is a truth value, not " + describe(operands[0]->type));
  std::vector<NodePtr> values = {operands[1], operands[2]};
  if (!unify(values))
    return fail(expr.range, "the values of a condition have one type, not " + describe(values[0]->type) + " and " +
                                describe(values[1]->type));
  Node node;
  node.op = Op::Select;
  node.type = values[0]->type;
  node.operands = {operands[0], values[0], values[1]};
  return finish(std::move(node), expr);
}

/// clamp(x, low, high) is min(max(x, low), high).
NodePtr Checker::clamp(const ast::Expr &expr) {
  if (expr.operands.size() != 3)
    return fail(expr.range, fmt::format("clamp takes 3 arguments, not {}", expr.operands.size()));
  std::vector<NodePtr> operands = valuesOf(expr);
  if (operands.empty())
    return nullptr;
  unify(operands);
  NodePtr above = apply(opInfo(Op::Max), expr, {operands[0], operands[1]});
  return above ? apply(opInfo(Op::Min), expr, {std::move(above), operands[2]}) : nullptr;
}

NodePtr Checker::call(const ast::Expr &expr) {
  if (expr.name == "clamp")
    return clamp(expr);
  std::vector<StringRef> known = {"clamp"};
  for (const OpInfo &info : allOps()) {
    if (!info.isCall())
      continue;
    known.push_back(info.text);
    if (info.text != expr.name)
      continue;
    std::vector<NodePtr> operands = valuesOf(expr);
    return operands.empty() && !expr.operands.empty() ? nullptr : apply(info, expr, std::move(operands));
  }
  const StringRef hint = hintForFunction(expr.name), near = nearestWord(expr.name, known);
  return fail(expr.range, !hint.empty() ? fmt::format("unknown function '{}'; {}", expr.name, hint.str())
                          : near.empty()
                              ? fmt::format("unknown function '{}'; there are {}", expr.name, alternatives(known))
                              : fmt::format("unknown function '{}'; did you mean '{}'?", expr.name, near.str()));
}

} // namespace fagen::form
