// fagen: expressions of when and select, checked and compiled to postfix programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "OptionValues.h"
#include "fagen/Spec/Program.h"

#include <map>

namespace fagen {

/// What a name stands for in a condition. Enumerations can be compared with their values by == and != only.
struct ConditionName {
  enum Kind : uint8_t { Number, Enumeration, Target, Refused };
  Kind kind = Number;
  int64_t variable = 0;               ///< what the program pushes
  const OptionInfo *option = nullptr; ///< of an enumeration, or of a switch
  std::optional<int64_t> constant;    ///< known already: folded
  std::string refusal;                ///< of Refused: why it cannot stand here
};

struct ConditionScope {
  const FormAxis *forms = nullptr;            ///< what mask and form may be compared with besides
  std::map<std::string, ConditionName> names; ///< ordered: suggestions and messages must not depend on addresses
};

/// The program of a condition, constants folded; nothing after a reported mistake.
std::optional<Program> compileCondition(const ast::Expr &expr, const ConditionScope &scope, Diagnostics &diags);

/// The names that an expression reads.
void collectNames(const ast::Expr &expr, llvm::function_ref<void(llvm::StringRef)> visit);

} // namespace fagen
