// fagen: the recipe of a program's row as a manifest has it: its plan (docs/Programs.md).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../fields.h"
#include "recipe.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace fagen {

/// A recipe, and what its pointers point into. Deques: their elements never move.
struct LoadedRecipe {
  fagen_recipe recipe = {};
  std::deque<std::string> texts;
  std::deque<std::vector<fagen_op>> programs;
  std::vector<fagen_recipe_tensor> tensors;
  std::vector<fagen_recipe_number> numbers;
  std::vector<fagen_recipe_field> fields;
  std::vector<fagen_recipe_map> maps;
  std::vector<fagen_expression> ctas;
};

/// FieldError for what is no plan, or one of another number of launches.
std::unique_ptr<LoadedRecipe> readRecipe(const Field &plan, uint32_t launches);

} // namespace fagen
