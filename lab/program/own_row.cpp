// fagen: a table's row of a plan that stands alone, so that its calls are checked and packed as those of tables are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "own_row.h"

#include "lab/support/json_file.h"
#include "lab/support/user_error.h"
#include "runtime/src/json.h"
#include "runtime/src/programs/read.h"
#include "runtime/src/words.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace fagen::lab {

using PlanJson = nlohmann::json;

namespace {

std::string termsOf(const PlanJson &expression) {
  std::string text;
  for (const PlanJson &term : expression)
    text += (text.empty() ? "" : " ") + (term.is_string() ? term.get<std::string>() : term.dump());
  return text;
}

/// What plans written by hand may lack.
class PlanCompleter {
public:
  explicit PlanCompleter(PlanJson &plan) : plan(plan) {}

  void run(std::vector<std::pair<std::string, double>> &constants) {
    for (PlanJson &buffer : plan["buffers"]) {
      buffer.erase("restored");
      buffer.erase("workspace");
      if (!buffer.contains("declared"))
        buffer["declared"] = declared(buffer);
    }
    nameConstants(constants);
    if (!plan.contains("numbers"))
      addNumbers();
    for (const auto &[name, value] : constants)
      plan["numbers"].push_back({{"name", name}, {"kind", "f32"}});
    layOut();
  }

private:
  static std::string declared(const PlanJson &buffer) {
    std::string text = buffer["type"].get<std::string>() + "[";
    for (const PlanJson &size : buffer["shape"])
      text += (text.back() == '[' ? "" : ", ") + termsOf(size);
    return text + "]";
  }

  void nameConstants(std::vector<std::pair<std::string, double>> &constants) {
    for (PlanJson &param : plan["params"])
      if (param["kind"] == "f32" && param["value"].is_number()) {
        constants.emplace_back(fmt::format("constant {}", constants.size()), param["value"].get<double>());
        param["value"] = constants.back().first;
      }
  }

  /// Names in expressions, and those of real params.
  void addNumbers() {
    std::set<std::string> integers, reals;
    for (const PlanJson &param : plan["params"])
      if (param["kind"] == "f32")
        reals.insert(param["value"].get<std::string>());
    addNames(plan["buffers"], integers);
    addNames(plan["params"], integers);
    addNames(plan["launches"], integers);
    plan["numbers"] = PlanJson::array();
    for (const std::string &name : integers)
      plan["numbers"].push_back({{"name", name}, {"kind", "i32"}, {"low", 0}, {"high", 1000000000}});
    for (const std::string &name : reals)
      if (name.find(' ') == std::string::npos)
        plan["numbers"].push_back({{"name", name}, {"kind", "f32"}});
  }

  /// Of lists that are expressions: they begin with a number or a name.
  static void addNames(const PlanJson &value, std::set<std::string> &names) {
    static const std::set<std::string> kOperations = {"sms",      "add", "sub", "mul", "floor_div",
                                                      "ceil_div", "mod", "min", "max"};
    for (const PlanJson &each : value)
      if (each.is_structured())
        addNames(each, names);
      else if (value.is_array() && each.is_string() && !kOperations.count(each))
        names.insert(each);
  }

  void layOut() {
    uint32_t end = 0, most = 1;
    for (PlanJson &param : plan["params"]) {
      const FieldSize size = sizeOf(param["kind"]);
      end = (end + size.alignment - 1) / size.alignment * size.alignment;
      param["offset"] = end;
      end += size.bytes;
      most = std::max(most, size.alignment);
    }
    plan["argument_bytes"] = (end + most - 1) / most * most;
  }

  static FieldSize sizeOf(const std::string &kind) {
    return sizeOfField(kind == "map"                    ? FAGEN_FIELD_MAP
                       : kind == "i32" || kind == "f32" ? FAGEN_FIELD_I32
                                                        : FAGEN_FIELD_POINTER);
  }

  PlanJson &plan;
};

} // namespace

OwnRow::OwnRow(const std::string &json, const std::string &name) {
  auto plan = parseText<PlanJson>(json);
  std::vector<std::pair<std::string, double>> found;
  PlanCompleter(plan).run(found);
  const std::string remedy;
  try {
    const fagen::Json read = parseJson(plan.dump());
    recipe = readRecipe(Field(name, read, remedy), static_cast<uint32_t>(plan["launches"].size()));
  } catch (const std::exception &error) {
    throw UserError(fmt::format("{} is not a plan of a program: {}", name, error.what()));
  }
  names.push_back(plan["program"]);
  for (const auto &[constant, value] : found)
    names.push_back(constant);
  for (size_t i = 0; i < found.size(); ++i)
    constants.push_back({names[i + 1].c_str(), FAGEN_ARG_F32, 0, 0, found[i].second});
  row.variant = names.front().c_str();
  row.recipe = &recipe->recipe;
}

OwnRow::~OwnRow() = default;

} // namespace fagen::lab
