// fagen: expression trees: folding, printing, evaluation, substitution.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <limits>

using namespace fagen::ir;
using llvm::StringRef;

namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::optional<int64_t> checkedArithmetic(ExprKind kind, int64_t a, int64_t b) {
  int64_t result = 0;
  const bool overflow = kind == ExprKind::Add   ? llvm::AddOverflow(a, b, result)
                        : kind == ExprKind::Sub ? llvm::SubOverflow(a, b, result)
                                                : llvm::MulOverflow(a, b, result);
  return overflow ? std::nullopt : std::optional(result);
}

/// Mod is C's %: the sign is that of the dividend. FloorDiv and CeilDiv round towards minus and plus infinity.
std::optional<int64_t> checkedDivision(ExprKind kind, int64_t a, int64_t b) {
  if (b == 0 || (a == kMin && b == -1))
    return std::nullopt;
  const int64_t quotient = a / b, remainder = a % b;
  if (kind == ExprKind::Mod)
    return remainder;
  if (kind == ExprKind::FloorMod)
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
  if (kind == ExprKind::FloorDiv)
    return quotient - (remainder != 0 && (remainder < 0) != (b < 0));
  return quotient + (remainder != 0 && (remainder < 0) == (b < 0));
}

/// Nothing for shifts by other than 0 to 31.
std::optional<int64_t> bits(ExprKind kind, int64_t a, int64_t b) {
  switch (kind) {
  case ExprKind::BitAnd:
    return a & b;
  case ExprKind::BitOr:
    return a | b;
  case ExprKind::BitXor:
    return a ^ b;
  default:
    break;
  }
  if (b < 0 || b > 31)
    return std::nullopt;
  return kind == ExprKind::ShiftLeft ? checkedArithmetic(ExprKind::Mul, a, int64_t(1) << b) : std::optional(a >> b);
}

bool isConstant(const Expr &expr) { return expr.kind() == ExprKind::Constant; }
bool isConstant(const Expr &expr, int64_t value) { return isConstant(expr) && expr.value() == value; }
bool isTruth(const Expr &expr) { return expr.kind() >= ExprKind::Lt; } // the kinds are in this order

/// x + c, with x - c for negative c and x + (c1 + c) for x = y + c1. Null when a sum would overflow.
Expr addConstant(const Expr &expr, int64_t addend) {
  const bool isSum = expr.kind() == ExprKind::Add || expr.kind() == ExprKind::Sub;
  if (!isSum || !isConstant(expr.rhs()))
    return {};
  int64_t inner = expr.rhs().value(), total = 0;
  if (expr.kind() == ExprKind::Sub && llvm::SubOverflow(int64_t(0), inner, inner))
    return {};
  if (llvm::AddOverflow(inner, addend, total) || total == kMin)
    return {};
  if (total == 0)
    return expr.lhs();
  return Expr::binary(ExprKind::Add, expr.lhs(), Expr::constant(total));
}

Expr foldSum(ExprKind kind, const Expr &lhs, const Expr &rhs) {
  if (isConstant(rhs, 0))
    return lhs;
  if (kind == ExprKind::Add && isConstant(lhs, 0))
    return rhs;
  if (kind == ExprKind::Sub && lhs == rhs && isOfIntegers(lhs)) // of real numbers the difference may be no number
    return Expr::constant(0);
  if (!isConstant(rhs) || rhs.value() == kMin)
    return {};
  const int64_t addend = kind == ExprKind::Add ? rhs.value() : -rhs.value();
  if (Expr folded = addConstant(lhs, addend))
    return folded;
  if (rhs.value() < 0) // x + -5 is x - 5
    return Expr::binary(kind == ExprKind::Add ? ExprKind::Sub : ExprKind::Add, lhs, Expr::constant(-rhs.value()));
  return {};
}

Expr foldProduct(ExprKind kind, const Expr &lhs, const Expr &rhs) {
  if (isConstant(rhs, 1))
    return kind == ExprKind::Mod || kind == ExprKind::FloorMod ? Expr::constant(0) : lhs;
  if (kind == ExprKind::Mul && isConstant(lhs, 1))
    return rhs;
  if (kind == ExprKind::Mul && (isConstant(lhs, 0) || isConstant(rhs, 0)))
    return Expr::constant(0);
  return {};
}

Expr foldExtreme(ExprKind kind, const Expr &lhs, const Expr &rhs) {
  const int64_t neutral = kind == ExprKind::Min ? kMax : kMin;
  if (lhs == rhs || isConstant(rhs, neutral))
    return lhs;
  if (isConstant(lhs, neutral))
    return rhs;
  if (lhs.kind() == kind && (lhs.lhs() == rhs || lhs.rhs() == rhs)) // min(min(a, b), b)
    return lhs;
  if (rhs.kind() == kind && (rhs.lhs() == lhs || rhs.rhs() == lhs))
    return rhs;
  return {};
}

Expr foldLogic(ExprKind kind, const Expr &lhs, const Expr &rhs) {
  const bool neutral = kind == ExprKind::And;
  if (isConstant(lhs))
    return (lhs.value() != 0) != neutral ? Expr::constant(!neutral) : isTruth(rhs) ? rhs : Expr();
  if (isConstant(rhs))
    return (rhs.value() != 0) != neutral ? Expr::constant(!neutral) : isTruth(lhs) ? lhs : Expr();
  return {};
}

/// A simpler expression of the same value, or null.
Expr fold(ExprKind kind, const Expr &lhs, const Expr &rhs) {
  if (isConstant(lhs) && isConstant(rhs))
    if (std::optional<int64_t> value = applyBinary(kind, lhs.value(), rhs.value()))
      return Expr::constant(*value);
  switch (kind) {
  case ExprKind::Add:
  case ExprKind::Sub:
    return foldSum(kind, lhs, rhs);
  case ExprKind::Mul:
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
  case ExprKind::Mod:
  case ExprKind::FloorMod:
    return foldProduct(kind, lhs, rhs);
  case ExprKind::Min:
  case ExprKind::Max:
    return foldExtreme(kind, lhs, rhs);
  case ExprKind::And:
  case ExprKind::Or:
    return foldLogic(kind, lhs, rhs);
  default:
    return {};
  }
}

/// How C spells a kind, and how tightly it binds; calls bind like names.
struct Spelling {
  const char *text;
  unsigned precedence;
  bool isCall;
};
constexpr unsigned kTightest = 11;
constexpr unsigned kEquality = 6, kOrder = 7; // comparisons

Spelling spellingOf(ExprKind kind) {
  switch (kind) {
  case ExprKind::Select:
    return {" ? ", 0, false};
  case ExprKind::Or:
    return {" || ", 1, false};
  case ExprKind::And:
    return {" && ", 2, false};
  case ExprKind::BitOr:
    return {" | ", 3, false};
  case ExprKind::BitXor:
    return {" ^ ", 4, false};
  case ExprKind::BitAnd:
    return {" & ", 5, false};
  case ExprKind::Eq:
    return {" == ", kEquality, false};
  case ExprKind::Ne:
    return {" != ", kEquality, false};
  case ExprKind::Lt:
    return {" < ", kOrder, false};
  case ExprKind::Le:
    return {" <= ", kOrder, false};
  case ExprKind::Gt:
    return {" > ", kOrder, false};
  case ExprKind::Ge:
    return {" >= ", kOrder, false};
  case ExprKind::ShiftLeft:
    return {" << ", 8, false};
  case ExprKind::ShiftRight:
    return {" >> ", 8, false};
  case ExprKind::Add:
    return {" + ", 9, false};
  case ExprKind::Sub:
    return {" - ", 9, false};
  case ExprKind::Mul:
    return {" * ", 10, false};
  case ExprKind::Div:
    return {" / ", 10, false};
  case ExprKind::Mod:
    return {" % ", 10, false};
  case ExprKind::Not:
    return {"!", kTightest, false};
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
  case ExprKind::FloorMod:
  case ExprKind::Min:
  case ExprKind::Max:
  case ExprKind::Exp2:
  case ExprKind::Log2:
  case ExprKind::Tanh:
  case ExprKind::Abs:
  case ExprKind::Sqrt:
  case ExprKind::F32:
  case ExprKind::I32:
    return {nullptr, kTightest, true};
  case ExprKind::Constant:
  case ExprKind::Real:
  case ExprKind::Variable:
  case ExprKind::Read:
    break;
  }
  return {"", kTightest, false};
}

void appendText(const Expr &expr, std::string &text);

bool isOfBits(ExprKind kind) { return kind >= ExprKind::BitAnd && kind <= ExprKind::ShiftRight; }

/// An operand of `parent`. Operators associate to the left. What compilers warn about gets parentheses though the
/// grammar needs none: a comparison inside a comparison, && inside ||, all but names and calls beside an operator of
/// bits.
void appendOperand(const Expr &operand, ExprKind parent, bool isRight, std::string &text) {
  const unsigned outer = spellingOf(parent).precedence, inner = spellingOf(operand.kind()).precedence;
  const bool isComparison = outer == kEquality || outer == kOrder,
             mixesBits = isOfBits(parent) || isOfBits(operand.kind());
  const bool wrap = inner < outer || (inner == outer && (isRight || isComparison)) ||
                    (isComparison && (inner == kEquality || inner == kOrder)) || (outer == 1 && inner == 2) ||
                    (mixesBits && inner != kTightest);
  if (wrap)
    text += '(';
  appendText(operand, text);
  if (wrap)
    text += ')';
}

/// The shortest text that stands for this f32 and for no other; a point or an exponent tells it from an integer.
std::string spellReal(float value) {
  const std::string digits = fmt::format("{}", value);
  return std::isinf(value) || digits.find_first_of(".e") != std::string::npos ? digits : digits + ".0";
}

void appendCall(const Expr &expr, std::string &text) {
  text += nameOfCall(expr.kind());
  text += '(';
  for (const Expr &operand : expr.operands()) {
    if (&operand != expr.operands().begin())
      text += ", ";
    appendText(operand, text);
  }
  text += ')';
}

void appendRead(const Expr &expr, std::string &text) {
  text += expr.operands().front().name();
  const char *separator = "[";
  for (const Expr &index : expr.indices()) {
    text += separator;
    appendText(index, text);
    separator = ", ";
  }
  text += ']';
}

void appendText(const Expr &expr, std::string &text) {
  const Spelling spelling = spellingOf(expr.kind());
  if (spelling.isCall)
    return appendCall(expr, text);
  switch (expr.kind()) {
  case ExprKind::Constant:
    text += std::to_string(expr.value());
    return;
  case ExprKind::Real:
    text += spellReal(expr.realValue());
    return;
  case ExprKind::Variable:
    text += expr.name();
    return;
  case ExprKind::Read:
    return appendRead(expr, text);
  case ExprKind::Not:
    text += spelling.text;
    return appendOperand(expr.operand(), expr.kind(), false, text);
  case ExprKind::Select:
    appendOperand(expr.operands()[0], expr.kind(), true, text); // a ? b : c to the left of ? gets parentheses
    text += spelling.text;
    appendText(expr.operands()[1], text);
    text += " : ";
    return appendText(expr.operands()[2], text);
  default:
    appendOperand(expr.lhs(), expr.kind(), false, text);
    text += spelling.text;
    appendOperand(expr.rhs(), expr.kind(), true, text);
  }
}

} // namespace

std::optional<int64_t> fagen::ir::applyBinary(ExprKind kind, int64_t a, int64_t b) {
  switch (kind) {
  case ExprKind::Add:
  case ExprKind::Sub:
  case ExprKind::Mul:
    return checkedArithmetic(kind, a, b);
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
  case ExprKind::Mod:
  case ExprKind::FloorMod:
    return checkedDivision(kind, a, b);
  case ExprKind::BitAnd:
  case ExprKind::BitOr:
  case ExprKind::BitXor:
  case ExprKind::ShiftLeft:
  case ExprKind::ShiftRight:
    return bits(kind, a, b);
  case ExprKind::Min:
    return std::min(a, b);
  case ExprKind::Max:
    return std::max(a, b);
  case ExprKind::Lt:
    return a < b;
  case ExprKind::Le:
    return a <= b;
  case ExprKind::Gt:
    return a > b;
  case ExprKind::Ge:
    return a >= b;
  case ExprKind::Eq:
    return a == b;
  case ExprKind::Ne:
    return a != b;
  case ExprKind::And:
    return a != 0 && b != 0;
  case ExprKind::Or:
    return a != 0 || b != 0;
  default: // of real numbers, or none of two integers
    return std::nullopt;
  }
}

bool fagen::ir::isOfIntegers(const Expr &expr) {
  if (expr.kind() == ExprKind::Variable)
    return !expr.name().starts_with("%");
  if (expr.kind() == ExprKind::Constant)
    return true;
  return expr.isBinary() && expr.kind() != ExprKind::Div && llvm::all_of(expr.operands(), isOfIntegers);
}

bool fagen::ir::isOfPlaces(const Expr &expr) {
  if (expr.kind() == ExprKind::Variable)
    return !expr.name().starts_with("%");
  return llvm::all_of(expr.kind() == ExprKind::Read ? expr.indices() : expr.operands(), isOfPlaces);
}

static constexpr std::pair<ExprKind, StringRef> kCalls[] = {{ExprKind::FloorDiv, "floor_div"},
                                                            {ExprKind::CeilDiv, "ceil_div"},
                                                            {ExprKind::FloorMod, "floor_mod"},
                                                            {ExprKind::Min, "min"},
                                                            {ExprKind::Max, "max"},
                                                            {ExprKind::Exp2, "exp2"},
                                                            {ExprKind::Log2, "log2"},
                                                            {ExprKind::Tanh, "tanh"},
                                                            {ExprKind::Abs, "abs"},
                                                            {ExprKind::Sqrt, "sqrt"},
                                                            {ExprKind::F32, "f32"},
                                                            {ExprKind::I32, "i32"}};

StringRef fagen::ir::nameOfCall(ExprKind kind) {
  for (const auto &[known, name] : kCalls)
    if (known == kind)
      return name;
  return {};
}

std::optional<ExprKind> fagen::ir::callByName(StringRef name) {
  for (const auto &[kind, known] : kCalls)
    if (known == name)
      return kind;
  return std::nullopt;
}

Expr Expr::constant(int64_t value) {
  Expr expr;
  expr.node = std::make_shared<const Node>(Node{ExprKind::Constant, value, 0, {}, {}, 1});
  return expr;
}

Expr Expr::real(float value) {
  assert(!std::isnan(value) && "no text stands for it");
  Expr expr;
  expr.node = std::make_shared<const Node>(Node{ExprKind::Real, 0, value, {}, {}, 1});
  return expr;
}

/// Of a name among 64.
static uint64_t bitOf(llvm::StringRef name) {
  unsigned hash = 0;
  for (const char letter : name)
    hash = hash * 33 + static_cast<unsigned char>(letter);
  return uint64_t(1) << hash % 64;
}

Expr Expr::variable(llvm::StringRef name) {
  assert(!name.empty() && "a variable has a name");
  Expr expr;
  expr.node = std::make_shared<const Node>(Node{ExprKind::Variable, 0, 0, name.str(), {}, 1, bitOf(name)});
  return expr;
}

Expr Expr::make(ExprKind kind, llvm::ArrayRef<Expr> operands) {
  unsigned depth = 0;
  uint64_t variables = 0;
  for (const Expr &operand : operands) {
    assert(operand && "an operand is an expression");
    depth = std::max(depth, operand.depth());
    variables |= operand.node->variables;
  }
  Expr expr;
  expr.node =
      std::make_shared<const Node>(Node{kind, 0, 0, {}, {operands.begin(), operands.end()}, 1 + depth, variables});
  return expr;
}

Expr Expr::unary(ExprKind kind, Expr operand) { return make(kind, operand); }

Expr Expr::binary(ExprKind kind, Expr lhs, Expr rhs) {
  assert(lhs && rhs && "a binary node has two operands");
  if (Expr folded = fold(kind, lhs, rhs))
    return folded;
  return make(kind, {std::move(lhs), std::move(rhs)});
}

Expr Expr::select(Expr condition, Expr whenTrue, Expr whenFalse) {
  if (condition.kind() == ExprKind::Constant)
    return condition.value() != 0 ? whenTrue : whenFalse;
  return make(ExprKind::Select, {std::move(condition), std::move(whenTrue), std::move(whenFalse)});
}

Expr Expr::read(llvm::StringRef buffer, llvm::ArrayRef<Expr> indices) {
  llvm::SmallVector<Expr, 4> operands = {variable("%" + buffer.str())};
  operands.append(indices.begin(), indices.end());
  return make(ExprKind::Read, operands);
}

Expr Expr::withOperands(llvm::ArrayRef<Expr> operands) const {
  if (kind() == ExprKind::Read)
    return make(kind(), operands);
  if (operands.size() == 2)
    return binary(kind(), operands[0], operands[1]);
  return kind() == ExprKind::Select ? select(operands[0], operands[1], operands[2]) : make(kind(), operands);
}

std::string Expr::str() const {
  std::string text;
  if (node)
    appendText(*this, text);
  return text;
}

std::optional<int64_t> Expr::evaluate(llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> lookup) const {
  if (kind() == ExprKind::Constant)
    return value();
  if (kind() == ExprKind::Variable)
    return lookup(name());
  if (kind() == ExprKind::Not) {
    const std::optional<int64_t> value = operand().evaluate(lookup);
    return value ? std::optional<int64_t>(*value == 0) : std::nullopt;
  }
  if (kind() == ExprKind::Select) {
    const std::optional<int64_t> condition = operands()[0].evaluate(lookup);
    return condition ? operands()[*condition != 0 ? 1 : 2].evaluate(lookup) : std::nullopt;
  }
  if (!isBinary())
    return std::nullopt;
  const std::optional<int64_t> a = lhs().evaluate(lookup);
  if (!a)
    return std::nullopt;
  if (kind() == ExprKind::And && *a == 0) // as in C, the right side may then have no value
    return 0;
  if (kind() == ExprKind::Or && *a != 0)
    return 1;
  const std::optional<int64_t> b = rhs().evaluate(lookup);
  return b ? applyBinary(kind(), *a, *b) : std::nullopt;
}

Expr Expr::substitute(llvm::StringRef variableName, const Expr &replacement) const {
  if (!uses(variableName))
    return *this;
  if (kind() == ExprKind::Variable)
    return replacement;
  llvm::SmallVector<Expr, 3> changed;
  for (const Expr &operand : operands())
    changed.push_back(operand.substitute(variableName, replacement));
  return withOperands(changed);
}

Expr Expr::rewritten(llvm::function_ref<Expr(const Expr &)> change) const {
  llvm::SmallVector<Expr, 3> changed;
  for (const Expr &operand : operands())
    changed.push_back(operand.rewritten(change));
  const Expr rebuilt = changed.empty() ? *this : withOperands(changed);
  const Expr replaced = change(rebuilt);
  return replaced ? replaced : rebuilt;
}

bool Expr::uses(llvm::StringRef variableName) const { return node && uses(variableName, bitOf(variableName)); }

bool Expr::uses(llvm::StringRef variableName, uint64_t bit) const {
  if (!(node->variables & bit))
    return false;
  if (kind() == ExprKind::Variable)
    return name() == variableName;
  return llvm::any_of(operands(), [&](const Expr &operand) { return operand.uses(variableName, bit); });
}

void Expr::forEachVariable(llvm::function_ref<void(llvm::StringRef)> visit) const {
  if (!node)
    return;
  if (kind() == ExprKind::Variable)
    return visit(name());
  for (const Expr &operand : operands())
    operand.forEachVariable(visit);
}

bool Expr::operator==(const Expr &other) const {
  if (node == other.node)
    return true;
  if (!node || !other.node || kind() != other.kind())
    return false;
  if (kind() == ExprKind::Constant)
    return value() == other.value();
  if (kind() == ExprKind::Real)
    return realValue() == other.realValue();
  if (kind() == ExprKind::Variable)
    return name() == other.name();
  return operands() == other.operands();
}
