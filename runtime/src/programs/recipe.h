// fagen: recipes of tables: what a program's kernels take, and how each of it is made from a call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../program.h"

#include <fagen/table.h>

#include <cstddef>

namespace fagen {

inline bool isProgram(const fagen_row &row) { return row.pass == FAGEN_PASS_PROGRAM; }

/// Entry i of a recipe's list, whose entries may be larger than this library's.
template <typename T> const T &entryAt(const T *list, uint32_t size, uint32_t i) {
  return *reinterpret_cast<const T *>(reinterpret_cast<const char *>(list) + size_t(i) * size);
}
inline const fagen_recipe_tensor &tensorAt(const fagen_recipe &recipe, uint32_t i) {
  return entryAt(recipe.tensors, recipe.tensor_size, i);
}
inline const fagen_recipe_number &numberAt(const fagen_recipe &recipe, uint32_t i) {
  return entryAt(recipe.numbers, recipe.number_size, i);
}
inline const fagen_recipe_field &fieldAt(const fagen_recipe &recipe, uint32_t i) {
  return entryAt(recipe.fields, recipe.field_size, i);
}
inline const fagen_recipe_map &mapAt(const fagen_recipe &recipe, uint32_t i) {
  return entryAt(recipe.maps, recipe.map_size, i);
}

inline bool isInWorkspace(const fagen_recipe_tensor &tensor) { return (tensor.flags & FAGEN_TENSOR_WORKSPACE) != 0; }

/// Bytes and alignment of a field; 0 for an unknown one.
struct FieldSize {
  uint32_t bytes, alignment;
};
constexpr FieldSize sizeOfField(uint32_t kind) {
  switch (kind) {
  case FAGEN_FIELD_POINTER:
  case FAGEN_FIELD_STRIDE:
  case FAGEN_FIELD_I64:
    return {8, 8};
  case FAGEN_FIELD_I32:
  case FAGEN_FIELD_F32:
    return {4, 4};
  case FAGEN_FIELD_MAP:
    return {128, 64};
  }
  return {0, 1};
}

/// An element of FAGEN_ELEMENT_... as callers say it, its word and its bytes; all 0 for one that no tensor has.
struct ElementFacts {
  uint32_t dtype, bytes;
  const char *name;
  device::MapElement ofMaps;
};
ElementFacts factsOf(uint32_t element);
/// "f16" of FAGEN_DTYPE_F16; "?" for an unknown number.
const char *nameOfDtype(uint32_t dtype);

/// What is wrong with the recipe of a table's row, or null.
const char *checkRecipe(const fagen_table &table, const fagen_row &row);

} // namespace fagen
