// fagen: the rules of recipes in tables.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "recipe.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace fagen {

ElementFacts factsOf(uint32_t element) {
  switch (element) {
  case FAGEN_ELEMENT_U8:
    return {FAGEN_DTYPE_U8, 1, "u8", device::MapElement::kByte};
  case FAGEN_ELEMENT_I32:
    return {FAGEN_DTYPE_I32, 4, "i32", device::MapElement::kWord};
  case FAGEN_ELEMENT_F16:
    return {FAGEN_DTYPE_F16, 2, "f16", device::MapElement::kF16};
  case FAGEN_ELEMENT_BF16:
    return {FAGEN_DTYPE_BF16, 2, "bf16", device::MapElement::kBf16};
  case FAGEN_ELEMENT_F32:
    return {FAGEN_DTYPE_F32, 4, "f32", device::MapElement::kWord};
  case FAGEN_ELEMENT_U32:
    return {FAGEN_DTYPE_U32, 4, "u32", device::MapElement::kWord};
  case FAGEN_ELEMENT_E4M3:
    return {FAGEN_DTYPE_E4M3, 1, "e4m3", device::MapElement::kByte};
  }
  return {0, 0, "?", device::MapElement::kByte};
}

const char *nameOfDtype(uint32_t dtype) {
  for (uint32_t element = FAGEN_ELEMENT_U8; element <= FAGEN_ELEMENT_E4M3; ++element)
    if (factsOf(element).dtype == dtype && dtype != 0)
      return factsOf(element).name;
  return "?";
}

namespace {

class RecipeChecker {
public:
  RecipeChecker(const fagen_row &row, const fagen_recipe &recipe) : row(row), recipe(recipe) {}

  const char *check() const {
    if (recipe.struct_size < sizeof(fagen_recipe) || recipe.tensor_size < sizeof(fagen_recipe_tensor) ||
        recipe.number_size < sizeof(fagen_recipe_number) || recipe.field_size < sizeof(fagen_recipe_field) ||
        recipe.map_size < sizeof(fagen_recipe_map))
      return "its recipe, or an entry of that, is smaller than this library's";
    if (recipe.tensor_count > FAGEN_MAX_TENSORS || recipe.number_count > FAGEN_MAX_NUMBERS ||
        recipe.argument_bytes > FAGEN_MAX_ARGUMENT_BYTES)
      return "its recipe has more than 32 tensors or numbers, or an argument of more than 4096 bytes";
    const char *problem = checkList(recipe.number_count, [&](uint32_t i) { return checkNumber(numberAt(recipe, i)); });
    problem = problem ? problem : checkList(recipe.tensor_count, [&](uint32_t i) { return checkTensor(i); });
    problem = problem ? problem : checkList(recipe.map_count, [&](uint32_t i) { return checkMap(mapAt(recipe, i)); });
    problem = problem ? problem : checkList(recipe.field_count, [&](uint32_t i) { return checkField(i); });
    return problem ? problem : checkList(row.launch_count, [&](uint32_t i) { return checkLaunch(i); });
  }

private:
  template <typename Check> static const char *checkList(uint32_t count, Check check) {
    for (uint32_t i = 0; i < count; ++i)
      if (const char *problem = check(i))
        return problem;
    return nullptr;
  }

  const char *checkExpression(const fagen_expression &expression) const {
    for (uint32_t i = 0; i < expression.size; ++i)
      if (const fagen_op &op = expression.ops[i];
          op.kind == FAGEN_OP_VARIABLE && op.value != FAGEN_VAR_SMS && op.value < FAGEN_VAR_NUMBER_0)
        return "its recipe asks for a value of attention's";
    return checkProgram(expression.ops, expression.size, FAGEN_VAR_NUMBER_0 + uint64_t(recipe.number_count));
  }

  static const char *checkNumber(const fagen_recipe_number &number) {
    if (!number.name || (number.kind != FAGEN_ARG_I32 && number.kind != FAGEN_ARG_F32))
      return "a number of its recipe has no name, or is neither i32 nor f32";
    return number.low <= number.high ? nullptr : "a number of its recipe has an empty range";
  }

  const char *checkTensor(uint32_t index) const {
    const fagen_recipe_tensor &tensor = tensorAt(recipe, index);
    if (!tensor.name || !tensor.text || factsOf(tensor.element).bytes == 0)
      return "a tensor of its recipe has no name, text or known element";
    if (tensor.rank == 0 || tensor.rank > FAGEN_MAX_RANK || !std::has_single_bit(tensor.alignment))
      return "a tensor of its recipe has not 1 to 5 dimensions, or its alignment is no power of two";
    return checkList(tensor.rank, [&](uint32_t i) { return checkExpression(tensor.extents[i]); });
  }

  /// What the copy engine asks of every box, as far as it does not depend on the call.
  const char *checkMap(const fagen_recipe_map &map) const {
    if (map.tensor >= recipe.tensor_count || map.rank == 0 || map.rank > FAGEN_MAX_RANK)
      return "a map of its recipe is of no tensor, or has not 1 to 5 dimensions";
    const fagen_recipe_tensor &tensor = tensorAt(recipe, map.tensor);
    const uint32_t swizzles[] = {0, 32, 64, 128}, rowBytes = map.dimensions[0].box * factsOf(tensor.element).bytes;
    if (std::find(std::begin(swizzles), std::end(swizzles), map.swizzle) == std::end(swizzles) || rowBytes % 16 != 0 ||
        (map.swizzle != 0 && rowBytes > map.swizzle) || tensor.alignment < 16)
      return "rows of a map's box are no multiples of 16 bytes or longer than its swizzle, or its tensor is not "
             "aligned";
    for (uint32_t i = 0; i < map.rank; ++i) {
      const auto &dimension = map.dimensions[i];
      if (dimension.box == 0 || dimension.box > 256)
        return "a side of a map's box is not 1 to 256 elements";
      if (dimension.along != FAGEN_OWN_STRIDE && dimension.along >= tensor.rank)
        return "a dimension of a map lies along none of its tensor";
      const char *problem = checkExpression(dimension.size);
      if ((problem = problem ? problem : checkExpression(dimension.stride)))
        return problem;
    }
    return nullptr;
  }

  const char *checkField(uint32_t index) const {
    const fagen_recipe_field &field = fieldAt(recipe, index);
    const FieldSize size = sizeOfField(field.kind);
    if (size.bytes == 0)
      return "a field of its recipe is of no known kind";
    if (field.offset % size.alignment != 0 || field.offset > recipe.argument_bytes ||
        size.bytes > recipe.argument_bytes - field.offset)
      return "a field of its recipe is not aligned, or not within the argument";
    switch (field.kind) {
    case FAGEN_FIELD_I32:
    case FAGEN_FIELD_I64:
      return checkExpression(field.value);
    case FAGEN_FIELD_F32:
      return field.index < recipe.number_count && numberAt(recipe, field.index).kind == FAGEN_ARG_F32
                 ? nullptr
                 : "a field of its recipe is of no real number";
    case FAGEN_FIELD_MAP:
      return field.index < recipe.map_count ? nullptr : "a field of its recipe is of no map";
    }
    const bool isTensor = field.index < recipe.tensor_count;
    const bool isStride =
        !isTensor || field.kind != FAGEN_FIELD_STRIDE || field.dimension < tensorAt(recipe, field.index).rank;
    return isTensor && isStride ? nullptr : "a field of its recipe is of no tensor, or of none of its dimensions";
  }

  const char *checkLaunch(uint32_t index) const {
    if (row.launches[index].grid != FAGEN_GRID_RECIPE)
      return "a launch of its recipe has another grid than FAGEN_GRID_RECIPE";
    return checkExpression(recipe.ctas[index]);
  }

  const fagen_row &row;
  const fagen_recipe &recipe;
};

} // namespace

const char *checkRecipe(const fagen_table &table, const fagen_row &row) {
  if (table.row_size < offsetof(fagen_row, recipe) + sizeof(row.recipe) || !row.recipe)
    return "is a program's, and has no recipe";
  return RecipeChecker(row, *row.recipe).check();
}

} // namespace fagen
