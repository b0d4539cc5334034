// fagen: expressions of when and select, checked and compiled to postfix programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Conditions.h"
#include "Hints.h"

#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

namespace {

class ConditionCompiler {
public:
  ConditionCompiler(const ConditionScope &scope, Diagnostics &diags) : scope(scope), diags(diags) {}

  std::optional<Program> compile(const ast::Expr &expr);

private:
  std::optional<Program> fail(SMRange range, const std::string &message) {
    diags.error(range, message);
    return std::nullopt;
  }

  std::optional<Program> compileVariable(const ast::Expr &expr);
  std::optional<Program> compileCall(const ast::Expr &expr);
  std::optional<Program> compileUnary(const ast::Expr &expr);
  std::optional<Program> compileBinary(const ast::Expr &expr);
  std::optional<Program> compileComparison(const ast::Expr &expr, const ast::Expr &key, const ast::Expr &value);
  std::optional<Program> combine(SelectOp::Kind kind, const ast::Expr &left, const ast::Expr &right);
  std::vector<int64_t> valueNumbers(const ConditionName &name, const ast::Expr &key, const ast::Expr &value);
  const ConditionName *lookup(const ast::Expr &expr) const;
  bool isEnumeration(const ast::Expr &expr) const;

  const ConditionScope &scope;
  Diagnostics &diags;
};

} // namespace

static Program constant(int64_t value) { return {{SelectOp::Constant, value}}; }
static bool isConstant(const Program &program) { return program.size() == 1 && program[0].kind == SelectOp::Constant; }

const ConditionName *ConditionCompiler::lookup(const ast::Expr &expr) const {
  if (expr.kind != ast::Expr::Variable)
    return nullptr;
  auto found = scope.names.find(expr.name);
  return found == scope.names.end() ? nullptr : &found->second;
}

bool ConditionCompiler::isEnumeration(const ast::Expr &expr) const {
  const ConditionName *name = lookup(expr);
  return name && (name->kind == ConditionName::Enumeration || name->kind == ConditionName::Target);
}

std::optional<Program> ConditionCompiler::compile(const ast::Expr &expr) {
  switch (expr.kind) {
  case ast::Expr::Integer:
    return constant(expr.integer);
  case ast::Expr::Decimal:
    return fail(expr.range, "conditions are integer arithmetic; decimals stand in require only");
  case ast::Expr::Variable:
    return compileVariable(expr);
  case ast::Expr::Call:
    return compileCall(expr);
  case ast::Expr::Unary:
    return compileUnary(expr);
  case ast::Expr::Binary:
    return compileBinary(expr);
  case ast::Expr::Read:
  case ast::Expr::Select:
    llvm_unreachable("the parser gives them to forms only");
  }
  return std::nullopt;
}

std::optional<Program> ConditionCompiler::compileVariable(const ast::Expr &expr) {
  const ConditionName *name = lookup(expr);
  if (!name) {
    std::vector<StringRef> names;
    for (const auto &entry : scope.names)
      if (entry.second.kind != ConditionName::Refused)
        names.push_back(entry.first);
    StringRef near = nearestWord(expr.name, names);
    const bool isForm =
        scope.forms && (scope.forms->find(expr.name) || optionInfo(OptionKey::Mask).findValue(expr.name));
    return fail(expr.range, isForm ? fmt::format("'{0}' is a form; ask for it as form == {0}", expr.name)
                            : near.empty()
                                ? fmt::format("unknown name '{}'; known here are {}", expr.name, join(names, ", "))
                                : fmt::format("unknown name '{}'; did you mean '{}'?", expr.name, near.str()));
  }
  if (name->kind == ConditionName::Refused)
    return fail(expr.range, name->refusal);
  if (isEnumeration(expr))
    return fail(expr.range, fmt::format("{} is not a number; compare it with == or !=", expr.name));
  return name->constant ? constant(*name->constant) : Program{{SelectOp::Variable, name->variable}};
}

std::optional<Program> ConditionCompiler::compileCall(const ast::Expr &expr) {
  if (expr.name != "ceil_div")
    return fail(expr.range, fmt::format("unknown function '{}'; there is ceil_div(a, b)", expr.name));
  if (expr.operands.size() != 2)
    return fail(expr.range, fmt::format("ceil_div takes 2 arguments, not {}", expr.operands.size()));
  return combine(SelectOp::CeilDiv, *expr.operands[0], *expr.operands[1]);
}

std::optional<Program> ConditionCompiler::compileUnary(const ast::Expr &expr) {
  SelectOp::Kind kind = expr.name == "-" ? SelectOp::Neg : SelectOp::Not;
  std::optional<Program> program = compile(*expr.operands[0]);
  if (!program)
    return std::nullopt;
  if (isConstant(*program))
    return constant(*applyUnary(kind, program->front().value));
  program->push_back({kind, 0});
  return program;
}

static SelectOp::Kind binaryKind(StringRef text) {
  static constexpr std::pair<const char *, SelectOp::Kind> kKinds[] = {
      {"+", SelectOp::Add}, {"-", SelectOp::Sub},  {"*", SelectOp::Mul}, {"/", SelectOp::Div}, {"%", SelectOp::Mod},
      {"==", SelectOp::Eq}, {"!=", SelectOp::Ne},  {"<", SelectOp::Lt},  {"<=", SelectOp::Le}, {">", SelectOp::Gt},
      {">=", SelectOp::Ge}, {"&&", SelectOp::And}, {"||", SelectOp::Or},
  };
  for (const auto &[spelling, kind] : kKinds)
    if (text == spelling)
      return kind;
  llvm_unreachable("the parser gives no other operator");
}

std::optional<Program> ConditionCompiler::compileBinary(const ast::Expr &expr) {
  const ast::Expr &left = *expr.operands[0], &right = *expr.operands[1];
  SelectOp::Kind kind = binaryKind(expr.name);
  bool compares = kind >= SelectOp::Eq && kind <= SelectOp::Ge;
  if (compares && isEnumeration(left))
    return compileComparison(expr, left, right);
  if (compares && isEnumeration(right))
    return compileComparison(expr, right, left);
  return combine(kind, left, right);
}

std::optional<Program> ConditionCompiler::combine(SelectOp::Kind kind, const ast::Expr &left, const ast::Expr &right) {
  std::optional<Program> a = compile(left);
  std::optional<Program> b = a ? compile(right) : std::nullopt; // one mistake a condition: the next may follow from it
  if (!b)
    return std::nullopt;
  bool divides = kind == SelectOp::Div || kind == SelectOp::Mod || kind == SelectOp::CeilDiv;
  if (divides && isConstant(*b) && b->front().value == 0)
    return fail(right.range, "division by zero");
  if (isConstant(*a) && isConstant(*b))
    return constant(*applyBinary(kind, a->front().value, b->front().value));
  append_range(*a, *b);
  a->push_back({kind, 0});
  return a;
}

/// The numbers of a value's name: mask's `causal`, target's `sm_89`, lse's `on`. A form has one for each way in which
/// its params are bound.
std::vector<int64_t> ConditionCompiler::valueNumbers(const ConditionName &name, const ast::Expr &key,
                                                     const ast::Expr &value) {
  std::vector<StringRef> texts;
  if (name.kind == ConditionName::Target) {
    for (const TargetInfo &target : allTargets())
      texts.push_back(target.name);
  } else if (name.option->type == OptionType::Switch) {
    texts = {"off", "on"};
  } else {
    texts = name.option->valueTexts();
  }
  const bool takesForms = name.option && name.option->key == OptionKey::Mask && scope.forms;
  if (takesForms)
    append_range(texts, scope.forms->names());
  if (value.kind != ast::Expr::Variable) {
    diags.error(value.range, fmt::format("{} is compared with {}", key.name, alternatives(texts)));
    return {};
  }
  if (takesForms && scope.forms->find(value.name)) {
    const std::vector<unsigned> numbers = scope.forms->numbersOf(value.name);
    return numbers.empty() ? std::vector<int64_t>{0} : std::vector<int64_t>(numbers.begin(), numbers.end());
  }
  auto found = find(texts, value.name);
  if (found != texts.end())
    return {name.kind == ConditionName::Enumeration && name.option->type == OptionType::Enum
                ? int64_t(name.option->findValue(value.name)->number)
                : found - texts.begin()};
  const StringRef near = nearestWord(value.name, texts);
  const StringRef hint = takesForms && near.empty() ? hintForValue(OptionKey::Mask, value.name) : "";
  diags.error(value.range, !hint.empty() ? fmt::format("unknown {} '{}'; {}", key.name, value.name, hint.str())
                           : near.empty()
                               ? fmt::format("unknown {} '{}'; it is {}", key.name, value.name, alternatives(texts))
                               : fmt::format("unknown {} '{}'; did you mean '{}'?", key.name, value.name, near.str()));
  return {};
}

std::optional<Program> ConditionCompiler::compileComparison(const ast::Expr &expr, const ast::Expr &key,
                                                            const ast::Expr &value) {
  const ConditionName &name = *lookup(key);
  if (expr.name != "==" && expr.name != "!=")
    return fail(expr.range, fmt::format("{} has no order; compare it with == or !=", key.name));
  const std::vector<int64_t> numbers = valueNumbers(name, key, value);
  if (numbers.empty())
    return std::nullopt;
  const bool equals = expr.name == "==";
  if (name.constant)
    return constant(is_contained(numbers, *name.constant) == equals);
  Program program;
  for (int64_t number : numbers) {
    program.insert(
        program.end(),
        {{SelectOp::Variable, name.variable}, {SelectOp::Constant, number}, {equals ? SelectOp::Eq : SelectOp::Ne, 0}});
    if (number != numbers.front())
      program.push_back({equals ? SelectOp::Or : SelectOp::And, 0});
  }
  return program;
}

std::optional<Program> compileCondition(const ast::Expr &expr, const ConditionScope &scope, Diagnostics &diags) {
  std::optional<Program> program = ConditionCompiler(scope, diags).compile(expr);
  if (program && programDepth(*program) > kProgramDepth) {
    diags.error(expr.range, fmt::format("the condition holds {} values at once; {} is the most", programDepth(*program),
                                        kProgramDepth));
    return std::nullopt;
  }
  return program;
}

void collectNames(const ast::Expr &expr, function_ref<void(StringRef)> visit) {
  if (expr.kind == ast::Expr::Variable)
    visit(expr.name);
  for (const std::unique_ptr<ast::Expr> &operand : expr.operands)
    collectNames(*operand, visit);
}

} // namespace fagen
