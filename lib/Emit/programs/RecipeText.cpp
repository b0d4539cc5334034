// fagen: the recipe of a program's row as C++ text, for <fagen/table.h>.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RecipeText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>
#include <map>

using namespace fagen;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

namespace {

class RecipeWriter {
public:
  RecipeWriter(const Object &plan, unsigned index) : plan(plan), index(index) {
    for (const Value &number : listOf("numbers"))
      numbers.push_back(textOf(number, "name"));
  }

  std::string run() {
    const std::string tensors = list("fagen_recipe_tensor", "Tensors", listOf("buffers"), &RecipeWriter::tensor);
    const std::string known = list("fagen_recipe_number", "Numbers", listOf("numbers"), &RecipeWriter::number);
    const std::string fields = list("fagen_recipe_field", "Fields", listOf("params"), &RecipeWriter::field);
    const std::string ctas = list("fagen_expression", "Ctas", listOf("launches"), &RecipeWriter::ctas);
    std::string moved;
    if (!maps.empty())
      moved = fmt::format("const fagen_recipe_map {}[] = {{\n{}}};\n\n", named("Maps"), llvm::join(maps, ""));
    return programs + tensors + known + moved + fields + ctas +
           fmt::format("const fagen_recipe {} = {{\n"
                       "    .struct_size = sizeof(fagen_recipe),\n    .argument_bytes = {},\n"
                       "    .tensors = {},\n    .numbers = {},\n    .fields = {},\n    .maps = {},\n"
                       "    .ctas = {},\n"
                       "    .tensor_count = {},\n    .tensor_size = sizeof(fagen_recipe_tensor),\n"
                       "    .number_count = {},\n    .number_size = sizeof(fagen_recipe_number),\n"
                       "    .field_count = {},\n    .field_size = sizeof(fagen_recipe_field),\n"
                       "    .map_count = {},\n    .map_size = sizeof(fagen_recipe_map),\n}};\n\n",
                       named(""), *plan.getInteger("argument_bytes"), named("Tensors"),
                       numbers.empty() ? "nullptr" : named("Numbers"), named("Fields"),
                       maps.empty() ? "nullptr" : named("Maps"), named("Ctas"), listOf("buffers").size(),
                       numbers.size(), listOf("params").size(), maps.size());
  }

private:
  const Array &listOf(llvm::StringRef key) const { return *plan.getArray(key); }
  static std::string textOf(const Value &object, llvm::StringRef key) {
    return object.getAsObject()->getString(key)->str();
  }
  std::string named(llvm::StringRef what) const { return fmt::format("kRecipe{}{}", index, what.str()); }

  /// An array of what `entry` says of each value; nothing for none.
  std::string list(llvm::StringRef type, llvm::StringRef name, const Array &values,
                   std::string (RecipeWriter::*entry)(const Value &)) {
    std::string text;
    for (const Value &value : values)
      text += "    " + (this->*entry)(value) + ",\n";
    return values.empty() ? "" : fmt::format("const {} {}[] = {{\n{}}};\n\n", type.str(), named(name), text);
  }

  std::string term(const Value &value) const {
    if (std::optional<int64_t> constant = value.getAsInteger())
      return fmt::format("{{FAGEN_OP_CONSTANT, 0, {}}}", *constant);
    const std::string word = value.getAsString()->str();
    if (const auto found = llvm::find(numbers, word); found != numbers.end())
      return fmt::format("{{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_NUMBER_0 + {}}}", found - numbers.begin());
    if (word == "sms")
      return "{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SMS}";
    return fmt::format("{{FAGEN_OP_{}, 0, 0}}", llvm::StringRef(word).upper());
  }

  /// A fagen_expression; equal ones share their operations.
  std::string expression(const Array &terms) {
    std::string text;
    for (const Value &value : terms)
      text += (text.empty() ? "" : ", ") + term(value);
    const auto [place, isNew] = known.insert({text, known.size()});
    const std::string name = fmt::format("{}Ops{}", named(""), place->second);
    if (isNew)
      programs += fmt::format("const fagen_op {}[] = {{{}}};\n", name, text);
    return fmt::format("{{{}, {}, 0}}", name, terms.size());
  }

  std::string tensor(const Value &value) {
    const Object &buffer = *value.getAsObject();
    static constexpr std::pair<const char *, const char *> kFlags[] = {
        {"written", "FAGEN_TENSOR_WRITTEN"},     {"strided", "FAGEN_TENSOR_STRIDED"},
        {"workspace", "FAGEN_TENSOR_WORKSPACE"}, {"restored", "FAGEN_TENSOR_WORKSPACE"},
        {"zeroed", "FAGEN_TENSOR_ZEROED"},       {"ascending", "FAGEN_TENSOR_ASCENDING"},
        {"distinct", "FAGEN_TENSOR_DISTINCT"}};
    std::string flags, extents;
    for (auto [key, flag] : kFlags)
      if (buffer.getBoolean(key).value_or(false))
        flags += (flags.empty() ? "" : " | ") + std::string(flag);
    const Array *const range = buffer.getArray("in");
    if (range)
      flags += (flags.empty() ? "" : " | ") + std::string("FAGEN_TENSOR_IN_RANGE");
    const Array &shape = *buffer.getArray("shape");
    for (const Value &extent : shape)
      extents += (extents.empty() ? "" : ", ") + expression(*extent.getAsArray());
    return fmt::format("{{\"{}\", \"{}\", FAGEN_ELEMENT_{}, {}, {}, {}, {{{}}}, {}, {}}}", textOf(value, "name"),
                       textOf(value, "declared"), llvm::StringRef(textOf(value, "type")).upper(), shape.size(),
                       flags.empty() ? "0" : flags, buffer.getInteger("alignment").value_or(1), extents,
                       range ? *range->front().getAsInteger() : 0, range ? *range->back().getAsInteger() : 0);
  }

  std::string number(const Value &value) {
    const Object &object = *value.getAsObject();
    auto bound = [&](const char *key, const char *absent) {
      const std::optional<int64_t> number = object.getInteger(key);
      return number ? std::to_string(*number) : absent;
    };
    return fmt::format("{{\"{}\", FAGEN_ARG_{}, 0, {}, {}}}", textOf(value, "name"),
                       llvm::StringRef(textOf(value, "kind")).upper(),
                       bound("low", "-std::numeric_limits<double>::infinity()"),
                       bound("high", "std::numeric_limits<double>::infinity()"));
  }

  unsigned tensorOf(const Value &field) const {
    const auto found = llvm::find_if(
        listOf("buffers"), [&](const Value &buffer) { return textOf(buffer, "name") == textOf(field, "buffer"); });
    return found - listOf("buffers").begin();
  }

  std::string field(const Value &value) {
    const Object &object = *value.getAsObject();
    const std::string kind = textOf(value, "kind");
    int64_t place = 0, dimension = 0;
    std::string expr = "{nullptr, 0, 0}";
    if (kind == "map") {
      place = int64_t(maps.size());
      maps.push_back(map(value));
    } else if (kind == "f32") {
      place = llvm::find(numbers, textOf(value, "value")) - numbers.begin();
    } else if (kind == "i32" || kind == "i64") {
      expr = expression(*object.getArray("value"));
    } else {
      place = tensorOf(value);
      dimension = object.getInteger("dimension").value_or(0);
    }
    return fmt::format("{{FAGEN_FIELD_{}, {}, {}, {}, {}}}", llvm::StringRef(kind).upper(),
                       *object.getInteger("offset"), place, dimension, expr);
  }

  std::string map(const Value &value) {
    const Object &object = *value.getAsObject();
    std::string dimensions;
    for (const Value &each : *object.getArray("dimensions")) {
      const Object &dimension = *each.getAsObject();
      const std::optional<int64_t> along = dimension.getInteger("along");
      dimensions += fmt::format("        {{{}, {}, {}, {}}},\n", expression(*dimension.getArray("size")),
                                expression(*dimension.getArray("stride")), *dimension.getInteger("box"),
                                along ? std::to_string(*along) : "FAGEN_OWN_STRIDE");
    }
    return fmt::format("    {{{}, {}, {}, 0, {{\n{}    }}}},\n", tensorOf(value), object.getArray("dimensions")->size(),
                       *object.getInteger("swizzle"), dimensions);
  }

  std::string ctas(const Value &launch) { return expression(*launch.getAsObject()->getArray("ctas")); }

  const Object &plan;
  const unsigned index;
  std::vector<std::string> numbers, maps;
  std::map<std::string, size_t> known;
  std::string programs;
};

} // namespace

std::string fagen::recipeText(const Object &plan, unsigned index) { return RecipeWriter(plan, index).run(); }
