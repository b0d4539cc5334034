// fagen: what a program divides by and its launch knows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/LaunchDivisors.h"

#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/ValueRange.h"
#include "fagen/IR/Views.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

bool ir::isOfLaunch(const Kernel &kernel, const Expr &expr) {
  switch (expr.kind()) {
  case ExprKind::Constant:
    return true;
  case ExprKind::Variable:
    return llvm::is_contained(kernel.sizes, expr.name()) || llvm::any_of(kernel.scalars, [&](const Scalar &scalar) {
             return !scalar.isReal && scalar.name == expr.name();
           });
  case ExprKind::Add:
  case ExprKind::Sub:
  case ExprKind::Mul:
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
  case ExprKind::Min:
  case ExprKind::Max:
    return llvm::all_of(expr.operands(), [&](const Expr &operand) { return isOfLaunch(kernel, operand); });
  default:
    return false;
  }
}

static Expr knownDivisor(const Kernel &kernel, const Expr &expr) {
  Expr divisor = expand(kernel, expr);
  return divisor.kind() != ExprKind::Constant && isOfLaunch(kernel, divisor) ? divisor : Expr();
}

Expr ir::launchDivisor(const Kernel &kernel, const Expr &division) {
  const ExprKind kind = division.kind();
  const bool roundsDown = kind == ExprKind::FloorDiv || kind == ExprKind::FloorMod;
  if (!roundsDown && kind != ExprKind::CeilDiv && kind != ExprKind::Mod)
    return {};
  if (isOfLaunch(kernel, expand(kernel, division.lhs())))
    return {};
  if (!roundsDown && valueRange(kernel, division.lhs()).low < 0)
    return {};
  return knownDivisor(kernel, division.rhs());
}

namespace {

struct Collector {
  const Kernel &kernel;
  std::vector<Expr> found;

  void add(const Expr &divisor) {
    if (divisor && !llvm::is_contained(found, divisor))
      found.push_back(divisor);
  }
  void visit(const Expr &expr) {
    if (!expr)
      return;
    for (const Expr &operand : expr.operands())
      visit(operand);
    add(launchDivisor(kernel, expr));
  }
};

} // namespace

std::vector<Expr> ir::launchDivisors(const Kernel &kernel) {
  Collector of{kernel, {}};
  auto visit = [&](const Expr &expr) { of.visit(expr); };
  for (const GridIndex &index : llvm::reverse(kernel.grid.indices))
    if (&index != &kernel.grid.indices.front())
      of.add(knownDivisor(kernel, index.extent));
  if (kernel.grid.order != TileOrder::FirstFirst)
    of.add(knownDivisor(kernel, kernel.grid.indices.back().extent));
  for (const Let &let : kernel.lets) {
    visit(let.value);
    if (let.source)
      llvm::for_each(let.source->at, visit);
  }
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      forEachExpr(op, visit);
      for (const Operand *const global : globalOperandsOf(op)) {
        llvm::for_each(global->buffer->shape, visit);
        if (global->buffer->map)
          llvm::for_each(global->buffer->map->at, visit);
      }
    });
  return of.found;
}
