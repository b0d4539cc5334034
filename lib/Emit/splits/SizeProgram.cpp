// fagen: integers of the run as postfix programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SizeProgram.h"

#include "fagen/IR/Queries.h"
#include "fagen/IR/RunValues.h"

#include "llvm/ADT/STLExtras.h"

#include <fagen/table.h>

using namespace fagen;
using namespace fagen::ir;

std::optional<SelectOp::Kind> fagen::operationOf(ExprKind kind) {
  static constexpr std::pair<ExprKind, SelectOp::Kind> kOperations[] = {
      {ExprKind::Add, SelectOp::Add},           {ExprKind::Sub, SelectOp::Sub}, {ExprKind::Mul, SelectOp::Mul},
      {ExprKind::FloorDiv, SelectOp::FloorDiv}, {ExprKind::Mod, SelectOp::Mod}, {ExprKind::CeilDiv, SelectOp::CeilDiv},
      {ExprKind::Min, SelectOp::Min},           {ExprKind::Max, SelectOp::Max}};
  for (const auto &[of, operation] : kOperations)
    if (of == kind)
      return operation;
  return std::nullopt;
}

namespace {

class ProgramWriter {
public:
  explicit ProgramWriter(const Kernel &kernel) : kernel(kernel) {}

  /// False where there is no program.
  bool add(const Expr &expr) {
    if (const std::optional<int64_t> number = constantOf(kernel, expr))
      return push({SelectOp::Constant, *number});
    if (expr.kind() == ExprKind::Variable)
      return addVariable(expr.name());
    const std::optional<SelectOp::Kind> operation = operationOf(expr.kind());
    return operation && add(expr.lhs()) && add(expr.rhs()) && apply(*operation);
  }

  std::vector<SelectOp> program;

private:
  bool push(SelectOp op) {
    program.push_back(op);
    return ++depth <= FAGEN_PROGRAM_DEPTH;
  }
  bool push(SelectVariable variable) { return push({SelectOp::Variable, int64_t(variable)}); }
  bool apply(SelectOp::Kind kind) {
    program.push_back({kind});
    --depth;
    return true;
  }

  bool addVariable(llvm::StringRef name) {
    static constexpr std::pair<RunValue, SelectVariable> kValues[] = {
        {RunValue::Batch, SelectVariable::Batch},     {RunValue::Heads, SelectVariable::Heads},
        {RunValue::KvHeads, SelectVariable::KvHeads}, {RunValue::SeqQ, SelectVariable::SeqQ},
        {RunValue::SeqKv, SelectVariable::SeqKv},     {RunValue::RowBegin, SelectVariable::Row}};
    for (const auto &[value, variable] : kValues)
      if (isRunValue(name, value))
        return push(variable);
    if (isRunValue(name, RunValue::HeadsPerKv))
      return addHeadsPerKv();
    const auto scalar = llvm::find_if(kernel.scalars, [&](const Scalar &each) { return each.name == name; });
    return scalar != kernel.scalars.end() &&
           push({SelectOp::Variable, kFirstScalar + (scalar - kernel.scalars.begin())});
  }

  /// Over 1 where there are no heads.
  bool addHeadsPerKv() {
    if (!push(SelectVariable::Heads) || !push(SelectVariable::KvHeads) || !push(SelectVariable::KvHeads))
      return false;
    program.push_back({SelectOp::Not});
    return apply(SelectOp::Add) && apply(SelectOp::Div);
  }

  const Kernel &kernel;
  unsigned depth = 0;
};

} // namespace

std::optional<std::vector<SelectOp>> fagen::sizeProgram(const Kernel &kernel, const Expr &expr) {
  ProgramWriter writer(kernel);
  return writer.add(expr) ? std::optional(std::move(writer.program)) : std::nullopt;
}
