// fagen: expression trees: folding, printing, evaluation, substitution.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/ExprAnalysis.h"

#include "llvm/Support/MathExtras.h"

#include <cassert>
#include <limits>

using namespace fagen::ir;

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
  if (kind == ExprKind::FloorDiv)
    return quotient - (remainder != 0 && (remainder < 0) != (b < 0));
  return quotient + (remainder != 0 && (remainder < 0) == (b < 0));
}

bool isConstant(const Expr &expr) { return expr.kind() == ExprKind::Constant; }
bool isConstant(const Expr &expr, int64_t value) { return isConstant(expr) && expr.value() == value; }
bool isTruth(const Expr &expr) { return expr.kind() >= ExprKind::Lt; }

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
  if (kind == ExprKind::Sub && lhs == rhs)
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
    return kind == ExprKind::Mod ? Expr::constant(0) : lhs;
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

Spelling spellingOf(ExprKind kind) {
  switch (kind) {
  case ExprKind::Or:
    return {" || ", 1, false};
  case ExprKind::And:
    return {" && ", 2, false};
  case ExprKind::Eq:
    return {" == ", 3, false};
  case ExprKind::Ne:
    return {" != ", 3, false};
  case ExprKind::Lt:
    return {" < ", 4, false};
  case ExprKind::Le:
    return {" <= ", 4, false};
  case ExprKind::Gt:
    return {" > ", 4, false};
  case ExprKind::Ge:
    return {" >= ", 4, false};
  case ExprKind::Add:
    return {" + ", 5, false};
  case ExprKind::Sub:
    return {" - ", 5, false};
  case ExprKind::Mul:
    return {" * ", 6, false};
  case ExprKind::Mod:
    return {" % ", 6, false};
  case ExprKind::FloorDiv:
    return {"floor_div", 7, true};
  case ExprKind::CeilDiv:
    return {"ceil_div", 7, true};
  case ExprKind::Min:
    return {"min", 7, true};
  case ExprKind::Max:
    return {"max", 7, true};
  case ExprKind::Constant:
  case ExprKind::Variable:
    break;
  }
  return {"", 7, false};
}

void appendText(const Expr &expr, std::string &text);

/// An operand of `parent`. Operators associate to the left. What compilers warn about gets parentheses though the
/// grammar needs none: a comparison inside a comparison, && inside ||.
void appendOperand(const Expr &operand, ExprKind parent, bool isRight, std::string &text) {
  const unsigned outer = spellingOf(parent).precedence, inner = spellingOf(operand.kind()).precedence;
  const bool isComparison = outer == 3 || outer == 4;
  const bool wrap = inner < outer || (inner == outer && (isRight || isComparison)) ||
                    (isComparison && (inner == 3 || inner == 4)) || (outer == 1 && inner == 2);
  if (wrap)
    text += '(';
  appendText(operand, text);
  if (wrap)
    text += ')';
}

void appendText(const Expr &expr, std::string &text) {
  if (expr.kind() == ExprKind::Constant) {
    text += std::to_string(expr.value());
    return;
  }
  if (expr.kind() == ExprKind::Variable) {
    text += expr.name();
    return;
  }
  const Spelling spelling = spellingOf(expr.kind());
  if (!spelling.isCall) {
    appendOperand(expr.lhs(), expr.kind(), false, text);
    text += spelling.text;
    appendOperand(expr.rhs(), expr.kind(), true, text);
    return;
  }
  text += spelling.text;
  text += '(';
  appendText(expr.lhs(), text);
  text += ", ";
  appendText(expr.rhs(), text);
  text += ')';
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
    return checkedDivision(kind, a, b);
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
  case ExprKind::Constant:
  case ExprKind::Variable:
    break;
  }
  return std::nullopt;
}

Expr Expr::constant(int64_t value) {
  Expr expr;
  expr.node = std::make_shared<const Node>(Node{ExprKind::Constant, value, {}, {}, {}, 1});
  return expr;
}

Expr Expr::variable(llvm::StringRef name) {
  assert(!name.empty() && "a variable has a name");
  Expr expr;
  expr.node = std::make_shared<const Node>(Node{ExprKind::Variable, 0, name.str(), {}, {}, 1});
  return expr;
}

Expr Expr::binary(ExprKind kind, Expr lhs, Expr rhs) {
  assert(lhs && rhs && kind != ExprKind::Constant && kind != ExprKind::Variable && "a binary node has two operands");
  if (Expr folded = fold(kind, lhs, rhs))
    return folded;
  const unsigned depth = 1 + std::max(lhs.depth(), rhs.depth());
  Expr expr;
  expr.node = std::make_shared<const Node>(Node{kind, 0, {}, std::move(lhs), std::move(rhs), depth});
  return expr;
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
  return binary(kind(), lhs().substitute(variableName, replacement), rhs().substitute(variableName, replacement));
}

bool Expr::uses(llvm::StringRef variableName) const {
  if (!node || kind() == ExprKind::Constant)
    return false;
  if (kind() == ExprKind::Variable)
    return name() == variableName;
  return lhs().uses(variableName) || rhs().uses(variableName);
}

void Expr::forEachVariable(llvm::function_ref<void(llvm::StringRef)> visit) const {
  if (!node || kind() == ExprKind::Constant)
    return;
  if (kind() == ExprKind::Variable)
    return visit(name());
  lhs().forEachVariable(visit);
  rhs().forEachVariable(visit);
}

bool Expr::operator==(const Expr &other) const {
  if (node == other.node)
    return true;
  if (!node || !other.node || kind() != other.kind())
    return false;
  if (kind() == ExprKind::Constant)
    return value() == other.value();
  if (kind() == ExprKind::Variable)
    return name() == other.name();
  return lhs() == other.lhs() && rhs() == other.rhs();
}
