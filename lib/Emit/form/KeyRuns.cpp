// fagen: finds what a mask reads for each key, and names it as elements of runs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KeyRuns.h"

#include "fagen/IR/RunValues.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

using namespace fagen;
using namespace fagen::ir;

bool fagen::isReadOfElement(const Kernel &kernel, const Expr &expr) {
  return expr.kind() == ExprKind::Read &&
         expr.indices().size() == kernel.buffer(expr.operands().front().name().drop_front())->shape.size();
}

Expr fagen::guardedRead(const Kernel &kernel, const Expr &expr) {
  const auto isZero = [](const Expr &value) {
    return value == constant(0) || (value.kind() == ExprKind::Real && value.realValue() == 0);
  };
  if (expr.kind() != ExprKind::Select || !isZero(expr.operands()[1]))
    return {};
  const Expr &other = expr.operands()[2], read = other.kind() == ExprKind::Ascending ? other.operand() : other;
  return isReadOfElement(kernel, read) ? read : Expr();
}

/// Whether the integer goes up by one from key to key, or stays.
static bool followsKeys(const Expr &index) {
  const llvm::StringRef key = nameOf(RunValue::ElementKey);
  switch (index.kind()) {
  case ExprKind::Variable:
    return index.name() == key;
  case ExprKind::Sub:
    return followsKeys(index.lhs()) && !index.rhs().uses(key);
  case ExprKind::Add:
  case ExprKind::Min:
  case ExprKind::Max:
    return (followsKeys(index.lhs()) && !index.rhs().uses(key)) || (followsKeys(index.rhs()) && !index.lhs().uses(key));
  default:
    return false;
  }
}

/// A run lies in its last index alone.
static bool isOfRun(const Kernel &kernel, const Expr &expr) {
  return isReadOfElement(kernel, expr) && followsKeys(expr.indices().back()) &&
         llvm::none_of(expr.indices().drop_back(),
                       [](const Expr &index) { return index.uses(nameOf(RunValue::ElementKey)); });
}

namespace {

class RunReader {
public:
  RunReader(const Kernel &kernel, ConditionByRuns &made) : kernel(kernel), made(made) {}

  /// What may not be read at all stays as it is.
  Expr read(const Expr &expr) {
    if (guardedRead(kernel, expr))
      return expr;
    if (isOfRun(kernel, expr))
      return variable(runOf(expr) + "[" + made.place + "]");
    llvm::SmallVector<Expr, 4> operands;
    for (const Expr &operand : expr.operands())
      operands.push_back(read(operand));
    return operands.empty() ? expr : expr.withOperands(operands);
  }

private:
  std::string runOf(const Expr &read) {
    for (const KeyRunRead &known : made.runs)
      if (known.read == read)
        return known.name;
    std::string name = (read.operands().front().name().drop_front() + "_run").str();
    while (llvm::any_of(made.runs, [&](const KeyRunRead &known) { return known.name == name; }) ||
           made.condition.uses(name))
      name += '_';
    made.runs.push_back({name, read});
    return name;
  }

  const Kernel &kernel;
  ConditionByRuns &made;
};

} // namespace

ConditionByRuns::ConditionByRuns(const Kernel &kernel, const Expr &condition) : condition(condition) {
  auto unused = [&](std::string name) {
    while (condition.uses(name))
      name += '_';
    return name;
  };
  first = unused("first");
  read = unused("read");
  place = unused("i");
  const Expr byRuns = RunReader(kernel, *this).read(condition);
  this->condition = byRuns;
}

void fagen::emitSeenOfRun(IndentedStream &out, const ConditionByRuns &condition, llvm::StringRef holder,
                          llvm::function_ref<std::string(const Expr &)> spell) {
  for (const KeyRunRead &run : condition.runs) {
    std::string others;
    for (const Expr &index : run.read.indices().drop_back())
      others += ", " + spell(index);
    out << fmt::format("const auto {} = {}({}form.{}, {}, [&](int k) {{ return {}; }}{});\n", run.name, condition.read,
                       holder.str(), run.read.operands().front().name().drop_front().str(), condition.first,
                       spell(run.read.indices().back()), others);
  }
  out << fmt::format("return seen_of_run({}, [&](int{}, int{}) {{ return {}; }});\n", condition.first,
                     condition.condition.uses(nameOf(RunValue::ElementKey)) ? " k" : "",
                     condition.runs.empty() ? "" : " " + condition.place, spell(condition.condition));
}
