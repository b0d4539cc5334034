// fagen: evaluates expressions that say where a tile lies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlaceCode.h"

#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/xxhash.h"

using namespace fagen;
using namespace fagen::ir;

/// The let of that name that stands for its value; null where there is none, or it is kept.
static const Let *replacedLet(const Kernel &kernel, llvm::StringRef name, const llvm::StringSet<> &kept) {
  const auto let = llvm::find_if(kernel.lets, [&](const Let &let) { return let.name == name; });
  const bool isValue = let != kernel.lets.end() && !let->source && !let->judged; // else it stands for itself
  return isValue && !kept.contains(name) ? &*let : nullptr;
}

Expr fagen::withoutLets(const Kernel &kernel, const Expr &expr, const llvm::StringSet<> &kept) {
  bool hasLets = false;
  expr.forEachVariable([&](llvm::StringRef name) { hasLets |= replacedLet(kernel, name, kept) != nullptr; });
  if (!hasLets)
    return expr;
  return expr.rewritten([&](const Expr &node) {
    const Let *let = node.kind() == ExprKind::Variable ? replacedLet(kernel, node.name(), kept) : nullptr;
    return let ? withoutLets(kernel, let->value, kept) : Expr();
  });
}

/// From 2^20 on, so that none is a count of tiles or the begin of one.
static int64_t standInFor(llvm::StringRef name) {
  constexpr int64_t kNames = int64_t(1) << 20;
  return kNames + int64_t(llvm::xxh3_64bits(name) % kNames);
}

void PlaceCode::add(const Expr &expr, ExprValues &values) {
  for (const Expr &operand : expr.operands())
    add(operand, values);
  switch (expr.kind()) {
  case ExprKind::Constant:
    return steps.push_back({expr.kind(), 0, expr.value()});
  case ExprKind::Real:
    return steps.push_back({ExprKind::Constant, 0, llvm::bit_cast<int32_t>(expr.realValue())});
  case ExprKind::Variable:
    return steps.push_back({expr.kind(), values.numberOf(expr.name()), standInFor(expr.name())});
  default:
    return steps.push_back({expr.kind(), unsigned(expr.operands().size()), 0});
  }
}

/// A number that says all of kind and operands.
static int64_t numberFor(ExprKind kind, llvm::ArrayRef<int64_t> operands) {
  uint64_t hash = uint64_t(kind) + 1;
  for (const int64_t operand : operands) {
    hash = (hash ^ uint64_t(operand)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return int64_t(hash >> 24);
}

static int64_t combine(ExprKind kind, llvm::ArrayRef<int64_t> operands) {
  if (kind == ExprKind::Select && operands.size() == 3)
    return operands[0] != 0 ? operands[1] : operands[2];
  const bool isBinary = operands.size() == 2 && kind != ExprKind::Read && kind != ExprKind::Ascending;
  const std::optional<int64_t> value = isBinary ? applyBinary(kind, operands[0], operands[1]) : std::nullopt;
  return value ? *value : numberFor(kind, operands);
}

int64_t PlaceCode::evaluate(const ExprValues &values) const {
  llvm::SmallVector<int64_t, 16> stack;
  for (const Step &step : steps)
    if (step.kind == ExprKind::Constant) {
      stack.push_back(step.value);
    } else if (step.kind == ExprKind::Variable) {
      stack.push_back(values[step.operands].value_or(step.value));
    } else {
      const int64_t value = combine(step.kind, llvm::ArrayRef(stack).take_back(step.operands));
      stack.truncate(stack.size() - step.operands);
      stack.push_back(value);
    }
  return stack.back();
}
