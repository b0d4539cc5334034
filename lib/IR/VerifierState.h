// fagen: what the parts of the IR verifier share: the names in scope and the report.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/ExprTypes.h"
#include "fagen/IR/Verifier.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

namespace fagen::ir {

class VerifierState {
public:
  VerifierState(const Kernel &kernel, DefectHandler report) : kernel(kernel), report(report) {}

  void defect(const Location &location, const llvm::Twine &message) {
    defective = true;
    report(location, message);
  }

  /// Constants, lets and the variables of the loops around; false if the name is taken.
  bool declare(llvm::StringRef name) { return !reals.count(name.str()) && names.insert(name.str()).second; }
  /// A real param, which no expression of integers may name.
  bool declareReal(llvm::StringRef name) { return !names.count(name.str()) && reals.insert(name.str()).second; }
  void forget(llvm::StringRef name) { names.erase(name.str()); }

  /// Reports what `expr` names and nobody has declared. A mask may name q and k.
  void checkNames(const Expr &expr, const Location &location, const llvm::Twine &what, bool isMask = false) {
    if (expr.kind() == ExprKind::Variable)
      return checkName(expr.name(), location, what, isMask);
    const bool isRead = expr.kind() == ExprKind::Read && kernel.hasOwnParams();
    if (isRead)
      checkRead(expr, location, what);
    for (const Expr &operand : isRead ? expr.indices() : expr.operands())
      checkNames(operand, location, what, isMask);
  }

  /// Whether the kernel has it, an integer.
  bool isOfRun(const RunValueInfo &info) const { return isIntegerOfRun(info) && hasRunValue(kernel, info); }
  /// Whether it is an integer among attention's parameters, of a kernel that has these.
  bool isOfLaunch(llvm::StringRef name) const {
    const RunValueInfo *const info = findRunValue(name);
    return info && info->scope == RunScope::Launch && isOfRun(*info);
  }
  /// Whether an `if` around says it.
  bool holds(const Expr &condition) const {
    return llvm::any_of(conditions, [&, wanted = expand(kernel, condition)](const Expr &each) {
      return expand(kernel, each) == wanted;
    });
  }

  const Kernel &kernel;
  bool defective = false;
  llvm::SmallVector<Expr, 2> conditions; ///< of each `if` around what is looked at

private:
  void checkName(llvm::StringRef name, const Location &location, const llvm::Twine &what, bool isMask) {
    const RunValueInfo *const info = findRunValue(name);
    if (info && info->value == RunValue::KeyBegin && kernel.grid.unit != CtaGrid::KeyTiles)
      defect(location, what + " names '" + name + "', which only a kernel with grid key_tiles has");
    const bool isPlace = isMask && info && info->scope == RunScope::Element;
    if (names.count(name.str()) == 0 && !(info && isOfRun(*info)) && !isPlace)
      defect(location, what + " names '" + name + "', which is not known here");
  }

  /// An element that says where others lie.
  void checkRead(const Expr &read, const Location &location, const llvm::Twine &what) {
    const llvm::StringRef name = read.operands().front().name();
    const Buffer *const tensor = kernel.buffer(name.drop_front());
    const bool isOfIndices = tensor && !tensor->map && !tensor->shape.empty() &&
                             (tensor->type == ElementType::U32 || tensor->type == ElementType::I32);
    if (!isOfIndices)
      return defect(location, what + " reads '" + name + "', which is not a u32 or i32 tensor");
    if (read.indices().size() != tensor->shape.size())
      defect(location, what + " reads '" + read.str() + "' by " + llvm::Twine(read.indices().size()) + " indices; " +
                           name + " has " + llvm::Twine(tensor->shape.size()) + " dimensions");
  }

  DefectHandler report;
  std::set<std::string> names, reals;
};

/// Checks every op of a role.
void verifyOps(const Role &role, VerifierState &state);

/// Checks parameters of a kernel's own: what lets may name, and after lets the views.
void verifyParams(VerifierState &state);
void verifyViews(VerifierState &state);
/// Checks the registers that roles ask for.
void verifyRegisters(VerifierState &state);
/// Checks that no division is by what may be less than 1.
void verifyDivisions(VerifierState &state);
/// Checks that no value of a thread's own columns leaves a role as that of a row.
void verifyRowValues(VerifierState &state);
/// Checks names that the text of a kernel with parameters of its own uses, and those who call it.
void verifyNames(VerifierState &state);
/// Checks that all kernels of a program, which take one argument, mean the same by each member of it.
bool verifyMembers(const Program &program, DefectHandler report);
/// Checks, after lets, how tiles go to CTAs.
void verifyGrid(VerifierState &state);
/// Checks where a let is read.
void verifySource(const Let &let, VerifierState &state);
/// Checks that a kernel that awaits the launches before it touches no global memory before that.
void verifyLaunches(VerifierState &state);
/// Checks what an op says of the matrix in global memory that it names, if it names one.
void verifyMatrix(const Op &op, VerifierState &state);
/// Checks that a box of the matrix, as large as the tile, is what the copy engine can move.
void verifyBox(const Op &op, const Buffer &tile, VerifierState &state);

/// The tensors of a launch that finds tiles.
void verifyPlan(const Op &op, VerifierState &state);

} // namespace fagen::ir
