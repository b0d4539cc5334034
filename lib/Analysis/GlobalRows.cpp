// fagen: compares the rows of global buffers that ops name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/GlobalRows.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/RunValues.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

Expr fagen::expandButRow(const Kernel &kernel, Expr expr) {
  for (const Let &let : llvm::reverse(kernel.lets))
    if (!isRunValue(let.name, RunValue::RowBegin))
      expr = expr.substitute(let.name, let.value);
  for (const Constant &constant : kernel.constants)
    expr = expr.substitute(constant.name, ir::constant(constant.value));
  return expr;
}

/// In no loop and under no condition.
static bool isOfBody(const Role &role, const Op &op) {
  return llvm::any_of(role.body.ops, [&](const std::unique_ptr<Op> &each) { return each.get() == &op; });
}

/// Whether groups of warps have each a row of its own.
static bool isOfGroup(const Expr &expr) { return usesScope(expr, RunScope::Group); }

bool fagen::nameSameRows(const Kernel &kernel, const Role &role, const Op &a, const Op &b) {
  if (!a.has(Attr::Row) || !b.has(Attr::Row) || !isOfBody(role, a) || !isOfBody(role, b))
    return false;
  const Expr first = expandButRow(kernel, a.expr(Attr::Row)), second = expandButRow(kernel, b.expr(Attr::Row));
  if (isOfGroup(first) || isOfGroup(second))
    return false;
  const std::optional<Interval> apart = difference(first, second);
  return apart && apart->low == 0 && apart->high == 0;
}
