// fagen: finds and names numbers that are divided by.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Divisors.h"

#include "fagen/IR/LaunchDivisors.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/RunValues.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

static bool isDivision(const Expr &expr) {
  return expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::FloorMod;
}

static bool isOfCaller(const Kernel &kernel, const Expr &expr) {
  if (expr.kind() == ExprKind::Variable)
    return llvm::any_of(kernel.scalars, [&](const Scalar &scalar) { return scalar.name == expr.name(); });
  return expr.kind() != ExprKind::Read &&
         llvm::all_of(expr.operands(), [&](const Expr &operand) { return isOfCaller(kernel, operand); });
}

/// What the kernel's text has no other name for: by_size, or by for what names no one number.
static std::string nameFor(const Kernel &kernel, const Expr &value, llvm::ArrayRef<TileDivisor> others) {
  std::string only;
  unsigned names = 0;
  value.forEachVariable([&](llvm::StringRef name) {
    names += only != name;
    only = name.str();
  });
  std::string wanted = names == 1 ? "by_" + only : "by";
  while (llvm::any_of(others, [&](const TileDivisor &other) { return other.name == wanted; }))
    wanted += '_';
  return kernel.freshName(wanted);
}

/// What a division divides by, if the caller says it; else null.
static Expr divisorOfCaller(const Kernel &kernel, const Expr &division) {
  const bool isSaid = isDivision(division) && division.rhs().kind() != ExprKind::Constant;
  return isSaid && isOfCaller(kernel, division.rhs()) ? division.rhs() : Expr();
}

static void collect(const Kernel &kernel, const Expr &expr, std::vector<TileDivisor> &divisors) {
  for (const Expr &operand : expr.operands())
    collect(kernel, operand, divisors);
  if (!divisorOfCaller(kernel, expr) || !usesScope(expr.lhs(), RunScope::Element))
    return;
  if (llvm::none_of(divisors, [&](const TileDivisor &known) { return known.value == expr.rhs(); }))
    divisors.push_back({nameFor(kernel, expr.rhs(), divisors), expr.rhs()});
}

TileDivisors::TileDivisors(const Kernel &kernel) : kernel(kernel) {
  if (kernel.scalars.empty())
    return;
  for (const Role &role : kernel.roles) {
    forEach<MapOp>(role.body, [&](MapOp<const Op> map) { collect(kernel, map.value(), all); });
    forEach<ClassifyTilesOp>(role.body, [&](ClassifyTilesOp<const Op> op) { collect(kernel, op.test(), all); });
  }
}

const TileDivisor *TileDivisors::of(const Expr &division) const {
  const Expr value = areOfLaunch ? launchDivisor(kernel, division) : divisorOfCaller(kernel, division);
  return value ? by(value) : nullptr;
}

const TileDivisor *TileDivisors::by(const Expr &value) const {
  const auto found = llvm::find_if(all, [&](const TileDivisor &divisor) { return divisor.value == value; });
  return found == all.end() ? nullptr : &*found;
}
