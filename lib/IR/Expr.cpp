// fagen: expression trees: made, evaluated, substituted, compared.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExprFold.h"

#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"

#include <cassert>
#include <cmath>

using namespace fagen::ir;

bool fagen::ir::isOfIntegers(const Expr &expr) {
  if (expr.kind() == ExprKind::Variable)
    return !expr.name().starts_with("%");
  if (expr.kind() == ExprKind::Constant)
    return true;
  return expr.isBinary() && expr.kind() != ExprKind::Div && llvm::all_of(expr.operands(), isOfIntegers);
}

bool fagen::ir::isOfPlacesInMemory(const Expr &expr) {
  if (expr.kind() == ExprKind::Read)
    return llvm::all_of(expr.indices(), isOfPlacesInMemory);
  const bool isWhole = expr.kind() == ExprKind::Select || (expr.isBinary() && expr.kind() != ExprKind::Div);
  return isOfIntegers(expr) || (isWhole && llvm::all_of(expr.operands(), isOfPlacesInMemory));
}

bool fagen::ir::isOfPlaces(const Expr &expr) {
  if (expr.kind() == ExprKind::Variable)
    return !expr.name().starts_with("%");
  return llvm::all_of(expr.kind() == ExprKind::Read ? expr.indices() : expr.operands(), isOfPlaces);
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

Expr Expr::unary(ExprKind kind, Expr operand) {
  if (kind == ExprKind::Not && operand.kind() == ExprKind::Constant)
    return constant(operand.value() == 0);
  return make(kind, operand);
}

Expr Expr::binary(ExprKind kind, Expr lhs, Expr rhs) {
  assert(lhs && rhs && "a binary node has two operands");
  if (Expr folded = fold(kind, lhs, rhs))
    return folded;
  return make(kind, {std::move(lhs), std::move(rhs)});
}

Expr Expr::select(Expr condition, Expr whenTrue, Expr whenFalse) {
  if (condition.kind() == ExprKind::Constant)
    return condition.value() != 0 ? whenTrue : whenFalse;
  if (whenTrue == whenFalse)
    return whenTrue;
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
  if (operands.size() == 1)
    return unary(kind(), operands[0]);
  if (operands.size() == 2)
    return binary(kind(), operands[0], operands[1]);
  return kind() == ExprKind::Select ? select(operands[0], operands[1], operands[2]) : make(kind(), operands);
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
