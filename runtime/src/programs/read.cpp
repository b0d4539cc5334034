// fagen: the recipe of a program's row as a manifest has it: its plan (docs/Programs.md).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "read.h"

#include "postfix_text.h"

#include <algorithm>
#include <bit>

namespace fagen {
namespace {

constexpr Word kRecipeElements[] = {
    {"u8", FAGEN_ELEMENT_U8},   {"i32", FAGEN_ELEMENT_I32}, {"f16", FAGEN_ELEMENT_F16},  {"bf16", FAGEN_ELEMENT_BF16},
    {"f32", FAGEN_ELEMENT_F32}, {"u32", FAGEN_ELEMENT_U32}, {"e4m3", FAGEN_ELEMENT_E4M3}};
constexpr Word kRecipeKinds[] = {{"i32", FAGEN_ARG_I32}, {"f32", FAGEN_ARG_F32}};
constexpr Word kRecipeFields[] = {{"pointer", FAGEN_FIELD_POINTER}, {"stride", FAGEN_FIELD_STRIDE},
                                  {"i32", FAGEN_FIELD_I32},         {"i64", FAGEN_FIELD_I64},
                                  {"f32", FAGEN_FIELD_F32},         {"map", FAGEN_FIELD_MAP}};
constexpr std::pair<const char *, uint32_t> kRecipeFlags[] = {
    {"written", FAGEN_TENSOR_WRITTEN},    {"strided", FAGEN_TENSOR_STRIDED}, {"workspace", FAGEN_TENSOR_WORKSPACE},
    {"restored", FAGEN_TENSOR_WORKSPACE}, {"zeroed", FAGEN_TENSOR_ZEROED},   {"ascending", FAGEN_TENSOR_ASCENDING},
    {"distinct", FAGEN_TENSOR_DISTINCT}};

class RecipeReader {
public:
  explicit RecipeReader(const Field &plan) : plan(plan) {}

  std::unique_ptr<LoadedRecipe> read(uint32_t launches) {
    for (const Field &number : plan["numbers"].items())
      addNumber(number);
    for (const Field &buffer : plan["buffers"].items())
      addTensor(buffer);
    for (const Field &param : plan["params"].items())
      addField(param);
    for (const Field &launch : plan["launches"].items())
      loaded->ctas.push_back(expression(launch["ctas"]));
    if (loaded->ctas.size() != launches)
      plan["launches"].fail("has " + std::to_string(loaded->ctas.size()) + " entries, and the row " +
                            std::to_string(launches));
    fagen_recipe &recipe = loaded->recipe;
    recipe = {sizeof(fagen_recipe),        plan["argument_bytes"].number(),
              loaded->tensors.data(),      loaded->numbers.data(),
              loaded->fields.data(),       loaded->maps.data(),
              loaded->ctas.data(),         uint32_t(loaded->tensors.size()),
              sizeof(fagen_recipe_tensor), uint32_t(loaded->numbers.size()),
              sizeof(fagen_recipe_number), uint32_t(loaded->fields.size()),
              sizeof(fagen_recipe_field),  uint32_t(loaded->maps.size()),
              sizeof(fagen_recipe_map)};
    return std::move(loaded);
  }

private:
  const char *keep(const std::string &text) { return loaded->texts.emplace_back(text).c_str(); }

  fagen_expression expression(const Field &field) {
    const auto &program = loaded->programs.emplace_back(readProgram(field, names));
    return {program.data(), uint32_t(program.size()), 0};
  }

  void addNumber(const Field &field) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    names.push_back(field["name"].text());
    loaded->numbers.push_back({keep(names.back()), wordOf(field["kind"], kRecipeKinds), 0,
                               field.has("low") ? field["low"].decimal() : -kInfinity,
                               field.has("high") ? field["high"].decimal() : kInfinity});
  }

  void addTensor(const Field &field) {
    fagen_recipe_tensor tensor = {};
    tensor.name = keep(field["name"].text());
    tensor.text = keep(field["declared"].text());
    tensor.element = wordOf(field["type"], kRecipeElements);
    tensor.alignment = field.has("alignment") ? field["alignment"].number() : 1;
    for (auto [key, flag] : kRecipeFlags)
      if (field.has(key) && field[key].integer() != 0)
        tensor.flags |= flag;
    if (field.has("in")) {
      tensor.flags |= FAGEN_TENSOR_IN_RANGE;
      tensor.low = field["in"].items().at(0).integer();
      tensor.high = field["in"].items().at(1).integer();
    }
    const std::vector<Field> shape = field["shape"].items();
    requireRank(field["shape"], shape.size());
    for (const Field &extent : shape)
      tensor.extents[tensor.rank++] = expression(extent);
    loaded->tensors.push_back(tensor);
  }

  static void requireRank(const Field &field, size_t rank) {
    if (rank == 0 || rank > FAGEN_MAX_RANK)
      field.fail("has " + std::to_string(rank) + " dimensions; 1 to 5 are possible");
  }

  uint32_t tensorOf(const Field &field) const {
    for (uint32_t i = 0; i < loaded->tensors.size(); ++i)
      if (field.text() == loaded->tensors[i].name)
        return i;
    field.fail("is " + inQuotes(field.text()) + ", which is no buffer of the program");
  }

  uint32_t numberOf(const Field &field) const {
    const auto found = std::find(names.begin(), names.end(), field.text());
    if (found == names.end())
      field.fail("is " + inQuotes(field.text()) + ", which is no number of the program");
    return uint32_t(found - names.begin());
  }

  void addField(const Field &field) {
    fagen_recipe_field made = {};
    made.kind = wordOf(field["kind"], kRecipeFields);
    made.offset = field["offset"].number();
    switch (made.kind) {
    case FAGEN_FIELD_STRIDE:
      made.dimension = field["dimension"].number();
      [[fallthrough]];
    case FAGEN_FIELD_POINTER:
      made.index = tensorOf(field["buffer"]);
      break;
    case FAGEN_FIELD_MAP:
      made.index = uint32_t(loaded->maps.size());
      addMap(field);
      break;
    case FAGEN_FIELD_F32:
      made.index = numberOf(field["value"]);
      break;
    default:
      made.value = expression(field["value"]);
    }
    loaded->fields.push_back(made);
  }

  void addMap(const Field &field) {
    fagen_recipe_map map = {};
    map.tensor = tensorOf(field["buffer"]);
    map.swizzle = field["swizzle"].number();
    const std::vector<Field> dimensions = field["dimensions"].items();
    requireRank(field["dimensions"], dimensions.size());
    for (const Field &dimension : dimensions) {
      auto &made = map.dimensions[map.rank++];
      made.size = expression(dimension["size"]);
      made.stride = expression(dimension["stride"]);
      made.box = dimension["box"].number();
      made.along = dimension.has("along") ? dimension["along"].number() : FAGEN_OWN_STRIDE;
    }
    loaded->maps.push_back(map);
  }

  const Field &plan;
  std::unique_ptr<LoadedRecipe> loaded = std::make_unique<LoadedRecipe>();
  std::vector<std::string> names; ///< of numbers
};

} // namespace

std::unique_ptr<LoadedRecipe> readRecipe(const Field &plan, uint32_t launches) {
  return RecipeReader(plan).read(launches);
}

} // namespace fagen
