// fagen: what a drawn spec means, and its values as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Model.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace llvm;

namespace fagen::random {

std::optional<Plain> defaultValue(const OptionInfo &option) {
  if (option.defaultText.empty())
    return std::nullopt;
  Plain value;
  if (option.type == OptionType::Enum)
    value.number = option.findValue(option.defaultText)->number;
  else if (option.type == OptionType::Switch)
    value.number = option.defaultText == "on";
  else
    option.defaultText.take_while(isDigit).getAsInteger(10, value.number);
  return value;
}

std::vector<Point> expandPoints(const Kernel &kernel, const std::vector<const TargetInfo *> &targets) {
  std::vector<Point> points(1);
  for (const OptionInfo &option : allOptions()) {
    if (option.block != OptionBlock::Problem)
      continue;
    auto setting = std::find_if(kernel.problem.begin(), kernel.problem.end(),
                                [&](const Setting &other) { return other.option == &option; });
    std::vector<Plain> values;
    if (setting == kernel.problem.end())
      values.push_back(*defaultValue(option));
    else
      for (const std::vector<Plain> &item : setting->items)
        values.push_back(item.front());
    std::vector<Point> product;
    for (const Point &point : points)
      for (const Plain &value : values)
        product.emplace_back(point).problem[option.key] = value;
    points = std::move(product);
  }
  std::vector<Point> onTargets;
  for (const Point &point : points)
    for (const TargetInfo *target : targets)
      onTargets.emplace_back(point).target = target;
  return onTargets;
}

static void resolveBody(std::vector<Statement> &body, size_t point, Resolved &resolved) {
  for (Statement &statement : body) {
    if (statement.setting)
      resolved[statement.setting->option->key] = statement.setting.get();
    else if (statement.when->holds[point])
      resolveBody(statement.when->body, point, resolved);
  }
}

Resolved resolve(Schedule &schedule, size_t point) {
  Resolved resolved;
  resolveBody(schedule.body, point, resolved);
  return resolved;
}

void forEachVariant(const Resolved &resolved, function_ref<void(const Values &)> visit) {
  std::vector<Values> variants(1);
  for (const auto &[key, setting] : resolved) {
    std::vector<Values> product;
    for (const Values &variant : variants)
      for (const std::vector<Plain> &item : setting->items)
        product.emplace_back(variant)[key] = item.front();
    variants = std::move(product);
  }
  for (const Values &variant : variants)
    visit(variant);
}

static std::string textOfEnum(const OptionInfo &option, const Plain &plain) {
  const OptionValueInfo &value = *option.findValue(plain.number);
  std::string text = value.text.str();
  if (value.argument == ArgumentKind::Number)
    text += "(" + std::to_string(plain.second) + ")";
  else if (value.argument == ArgumentKind::Names)
    text += "(" + join(plain.names, ", ") + ")";
  return text;
}

std::string textOf(const OptionInfo &option, const Plain &plain, Random &random) {
  const std::string first = std::to_string(plain.number), second = std::to_string(plain.second);
  switch (option.type) {
  case OptionType::Enum:
    return textOfEnum(option, plain);
  case OptionType::Switch:
    return plain.number ? "on" : "off";
  case OptionType::Integer:
    return option.takesAuto && plain.number == 0 ? "auto" : first;
  case OptionType::Bytes:
    return first + (random.percent(70) ? " B" : "B");
  case OptionType::HeadDim:
    if (plain.number == plain.second)
      return first;
    return first + (random.percent(70) ? " : " : ":") + second;
  case OptionType::Tile:
    return first + (random.percent(70) ? " x " : "x") + second;
  }
  return {};
}

/// "16 x tune(64, 128)" where only the keys differ, "tune(16, 32) x 64" where only the rows do.
static std::optional<std::string> textOfTileTune(const std::vector<Plain> &choices) {
  auto listOf = [&](unsigned Plain::*dim) {
    std::vector<std::string> texts;
    for (const Plain &choice : choices)
      texts.push_back(std::to_string(choice.*dim));
    return "tune(" + join(texts, ", ") + ")";
  };
  auto isSame = [&](unsigned Plain::*dim) {
    return std::all_of(choices.begin(), choices.end(),
                       [&](const Plain &choice) { return choice.*dim == choices.front().*dim; });
  };
  if (isSame(&Plain::number))
    return std::to_string(choices.front().number) + " x " + listOf(&Plain::second);
  if (isSame(&Plain::second))
    return listOf(&Plain::number) + " x " + std::to_string(choices.front().second);
  return std::nullopt;
}

std::string textOf(const Setting &setting, Random &random) {
  std::vector<std::string> items;
  for (const std::vector<Plain> &choices : setting.items) {
    std::vector<std::string> texts;
    for (const Plain &choice : choices)
      texts.push_back(textOf(*setting.option, choice, random));
    std::optional<std::string> dims;
    if (setting.option->type == OptionType::Tile && choices.size() > 1 && random.percent(70))
      dims = textOfTileTune(choices);
    items.push_back(dims ? *dims : texts.size() == 1 ? texts.front() : "tune(" + join(texts, ", ") + ")");
  }
  return setting.isAxis ? "[" + join(items, ", ") + "]" : items.front();
}

} // namespace fagen::random
