// fagen: finds what a mask reads for each key, and names it as elements of runs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KeyRuns.h"

#include "../RowKeys.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/RunValues.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

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
  RunReader(const Kernel &kernel, ConditionByRuns &made, const Expr &all) : kernel(kernel), made(made), all(all) {}

  /// A conjunct: words where these tell of all keys of a run together.
  void add(const Expr &condition) {
    if (condition.kind() == ExprKind::And) {
      add(condition.lhs());
      add(condition.rhs());
    } else if (const std::optional<KeysOfRow> keys = keysOfRow(kernel, condition);
               keys && keys->follow.empty() && keys->areOver.empty() && !readsMemory(condition)) {
      addBounds(keys->begin, isBound(keys->end) ? keys->end : Expr());
    } else if (const Expr tested = testedElement(condition)) {
      made.words.push_back({.run = runOf(tested), .isOpposite = condition.kind() == ExprKind::Eq});
    } else {
      const Expr byRuns = read(condition);
      made.condition = made.condition ? Expr::binary(ExprKind::And, made.condition, byRuns) : byRuns;
    }
  }

private:
  /// Nothing where every key is let through.
  void addBounds(const Expr &begin, const Expr &end) {
    if (begin || end)
      made.words.push_back({.begin = begin, .end = end});
  }

  /// Else it is the largest integer.
  static bool isBound(const Expr &end) { return end.kind() != ExprKind::Constant || end.value() != INT64_MAX; }

  /// Of element, element != 0 or element == 0, a byte's or a bit's, the read; else nothing.
  Expr testedElement(const Expr &condition) const {
    const bool compares = condition.kind() == ExprKind::Ne || condition.kind() == ExprKind::Eq;
    if (compares && !(condition.rhs() == constant(0)))
      return {};
    const Expr read = compares ? condition.lhs() : condition;
    if (!isOfRun(kernel, read))
      return {};
    const ElementType type = kernel.buffer(read.operands().front().name().drop_front())->type;
    return type == ElementType::U8 || type == ElementType::Bit ? read : Expr();
  }

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

  std::string runOf(const Expr &read) {
    for (const KeyRunRead &known : made.runs)
      if (known.read == read)
        return known.name;
    std::string name = (read.operands().front().name().drop_front() + "_run").str();
    while (llvm::any_of(made.runs, [&](const KeyRunRead &known) { return known.name == name; }) || all.uses(name))
      name += '_';
    made.runs.push_back({name, read});
    return name;
  }

  const Kernel &kernel;
  ConditionByRuns &made;
  const Expr &all;
};

} // namespace

ConditionByRuns::ConditionByRuns(const Kernel &kernel, const Expr &condition) {
  auto unused = [&](std::string name) {
    while (condition.uses(name))
      name += '_';
    return name;
  };
  first = unused("first");
  read = unused("read");
  place = unused("i");
  RunReader(kernel, *this, condition).add(condition);
}

/// first_keys(end - first) & ~first_keys(begin - first), or x_run.not_zero().
static std::string spellWord(const ConditionByRuns::Word &word, const std::string &first,
                             llvm::function_ref<std::string(const Expr &)> spell) {
  auto keysBefore = [&](const Expr &end) { return "first_keys(" + spell(end - variable(first)) + ")"; };
  if (!word.run.empty())
    return (word.isOpposite ? "~" : "") + word.run + ".not_zero()";
  const std::string end = word.end ? keysBefore(word.end) : "", begin = word.begin ? "~" + keysBefore(word.begin) : "";
  return end + (end.empty() || begin.empty() ? "" : " & ") + begin;
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
  std::string seen;
  auto add = [&](const std::string &word) { seen += (seen.empty() ? "" : " & ") + word; };
  for (const ConditionByRuns::Word &word : condition.words)
    add(spellWord(word, condition.first, spell));
  if (const Expr &each = condition.condition)
    add(fmt::format("seen_of_run({}, [&](int{}, int{}) {{ return {}; }})", condition.first,
                    each.uses(nameOf(RunValue::ElementKey)) ? " k" : "",
                    condition.runs.empty() ? "" : " " + condition.place, spell(each)));
  out << "return " << (seen.empty() ? "kWholeRun" : seen) << ";\n";
}
