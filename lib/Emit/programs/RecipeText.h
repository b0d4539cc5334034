// fagen: the recipe of a program's row as C++ text, for <fagen/table.h>.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/Support/JSON.h"

#include <string>

namespace fagen {

/// kRecipe<index> and what it points at, of a plan as docs/Programs.md describes it.
std::string recipeText(const llvm::json::Object &plan, unsigned index);

} // namespace fagen
