// fagen: values of keys, checked one by one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OptionValues.h"

#include "Hints.h"
#include "KernelAnalysis.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

namespace {

/// Checks the plain values of one key.
class ValueChecker {
public:
  ValueChecker(const OptionInfo &option, FormAxis &forms, Diagnostics &diags)
      : option(option), forms(forms), diags(diags) {}

  OptionValue check(const ast::Plain &plain);

private:
  OptionValue fail(SMRange range, const std::string &message) {
    diags.error(range, message);
    OptionValue value;
    value.known = false;
    value.range = range;
    return value;
  }
  OptionValue expected(const ast::Plain &plain, const std::string &what) {
    const std::string written = textOf(plain.range);
    const StringRef hint = hintForValue(option.key, written);
    return fail(plain.range, fmt::format("{} takes {}, not '{}'{}{}", option.name.str(), what, written,
                                         hint.empty() ? "" : "; ", hint.str()));
  }
  bool inRange(int64_t number) const { return number >= option.min && number <= option.max; }

  OptionValue checkEnum(const ast::Plain &plain);
  OptionValue checkForm(const ast::Plain &plain);
  OptionValue checkArguments(const ast::Plain &plain, const OptionValueInfo &info, OptionValue value);
  OptionValue checkNames(const ast::Plain &plain, const OptionValueInfo &info, OptionValue value);
  OptionValue checkSwitch(const ast::Plain &plain);
  OptionValue checkInteger(const ast::Plain &plain);
  OptionValue checkBytes(const ast::Plain &plain);
  OptionValue checkHeadDim(const ast::Plain &plain);
  OptionValue checkTile(const ast::Plain &plain);

  const OptionInfo &option;
  FormAxis &forms;
  Diagnostics &diags;
};

} // namespace

OptionValue ValueChecker::check(const ast::Plain &plain) {
  OptionValue value;
  switch (option.type) {
  case OptionType::Enum:
    value = checkEnum(plain);
    break;
  case OptionType::Switch:
    value = checkSwitch(plain);
    break;
  case OptionType::Integer:
    value = checkInteger(plain);
    break;
  case OptionType::Bytes:
    value = checkBytes(plain);
    break;
  case OptionType::HeadDim:
    value = checkHeadDim(plain);
    break;
  case OptionType::Tile:
    value = checkTile(plain);
    break;
  }
  value.range = plain.range;
  return value;
}

OptionValue ValueChecker::checkEnum(const ast::Plain &plain) {
  const bool takesForms = option.key == OptionKey::Mask;
  std::vector<StringRef> known = option.valueTexts(), available = option.availableTexts();
  if (takesForms) {
    append_range(known, forms.names());
    append_range(available, forms.names());
  }
  if (plain.kind != ast::Plain::Word)
    return expected(plain, alternatives(available));
  const OptionValueInfo *info = option.findValue(plain.word);
  if (takesForms && forms.find(plain.word))
    return checkForm(plain);
  if (!info) {
    std::string message = fmt::format("unknown {} '{}'", option.name.str(), plain.word);
    const StringRef near = nearestWord(plain.word, known), hint = hintForValue(option.key, plain.word);
    if (!near.empty() && (hint.empty() || takesForms))
      return fail(plain.range, fmt::format("{}; did you mean '{}'?", message, near.str()));
    const bool tellsForms = takesForms && !forms.names().empty() && hint.starts_with("it is ");
    if (!hint.empty())
      return fail(plain.range, fmt::format("{}; {}{}", message, hint.str(),
                                           tellsForms ? "; here that is " + alternatives(forms.names()) : ""));
    return fail(plain.range, fmt::format("{}; it is {}{}", message, alternatives(available),
                                         takesForms ? ", or a form that the file declares" : ""));
  }
  OptionValue value;
  value.number = info->number;
  return checkArguments(plain, *info, std::move(value));
}

OptionValue ValueChecker::checkForm(const ast::Plain &plain) {
  OptionValue value;
  value.form = forms.use(plain, diags);
  value.known = value.form != nullptr;
  if (value.form)
    value.number = forms.numberOf(*value.form);
  return value;
}

OptionValue ValueChecker::checkArguments(const ast::Plain &plain, const OptionValueInfo &info, OptionValue value) {
  if (!plain.values.empty())
    return fail(plain.range, fmt::format("{} has no params to bind", plain.word));
  if (info.argument == ArgumentKind::None)
    return plain.hasArguments ? fail(plain.range, fmt::format("{} takes nothing in parentheses", plain.word)) : value;
  if (info.argument == ArgumentKind::Names)
    return checkNames(plain, info, std::move(value));
  bool isNumber = plain.arguments.size() == 1 && !StringRef(plain.arguments[0].text).getAsInteger(10, value.second);
  if (!isNumber || value.second < info.argumentMin || value.second > info.argumentMax)
    return fail(plain.range, fmt::format("{0} takes one integer from {1} to {2}: {0}({1})", plain.word,
                                         info.argumentMin, info.argumentMax));
  return value;
}

OptionValue ValueChecker::checkNames(const ast::Plain &plain, const OptionValueInfo &info, OptionValue value) {
  if (plain.arguments.empty())
    return fail(plain.range, fmt::format("{0} takes places: {0}({1})", plain.word, info.argumentNames[0].str()));
  for (const ast::Name &argument : plain.arguments) {
    if (!is_contained(info.argumentNames, argument.text)) {
      StringRef near = nearestWord(argument.text, info.argumentNames);
      std::string hint = near.empty() ? "; it is " + alternatives(info.argumentNames)
                                      : fmt::format("; did you mean '{}'?", near.str());
      return fail(argument.range, fmt::format("unknown place '{}'{}", argument.text, hint));
    }
    if (is_contained(value.names, argument.text))
      return fail(argument.range, fmt::format("place {} is listed twice; take one out", argument.text));
    value.names.push_back(argument.text);
  }
  return value;
}

OptionValue ValueChecker::checkSwitch(const ast::Plain &plain) {
  OptionValue value;
  value.number = plain.word == "on";
  bool isSwitch = plain.kind == ast::Plain::Word && !plain.hasArguments && (plain.word == "on" || plain.word == "off");
  return isSwitch ? value : expected(plain, "on or off");
}

OptionValue ValueChecker::checkInteger(const ast::Plain &plain) {
  if (option.takesAuto && plain.kind == ast::Plain::Word && plain.word == "auto" && !plain.hasArguments)
    return {};
  bool isInteger = plain.kind == ast::Plain::Dims && plain.numbers.size() == 1;
  if (!isInteger || !inRange(plain.numbers[0]))
    return expected(plain, describeValues(option));
  OptionValue value;
  value.number = plain.numbers[0];
  return value;
}

OptionValue ValueChecker::checkBytes(const ast::Plain &plain) {
  OptionValue value;
  if (plain.kind == ast::Plain::Bytes && is_contained(option.allowed, plain.numbers[0])) {
    value.number = plain.numbers[0];
    return value;
  }
  return expected(plain, describeValues(option));
}

/// Why a head dim is refused, and the nearest that every instruction takes.
static std::string refusedHeadDim(const OptionInfo &option, int64_t number) {
  constexpr int64_t kOfEveryMma = 32;
  if (number < option.min || number > option.max)
    return fmt::format("head_dim {} is too {}; it is a multiple of {} from {} to {}", number,
                       number < option.min ? "small" : "large", option.multipleOf, option.min, option.max);
  const int64_t below = number / kOfEveryMma * kOfEveryMma;
  const std::string nearest =
      below == 0 ? fmt::format("the nearest that every mma takes is {}", kOfEveryMma)
                 : fmt::format("the nearest that every mma takes are {} and {}", below, below + kOfEveryMma);
  return fmt::format("head_dim {} is not a multiple of {}; {}", number, option.multipleOf, nearest);
}

OptionValue ValueChecker::checkHeadDim(const ast::Plain &plain) {
  bool isPair = plain.kind == ast::Plain::Pair;
  if (!isPair && !(plain.kind == ast::Plain::Dims && plain.numbers.size() == 1))
    return expected(plain, "one integer, or QK : V");
  for (int64_t number : plain.numbers) {
    if (inRange(number) && number % option.multipleOf == 0)
      continue;
    return fail(plain.range, refusedHeadDim(option, number));
  }
  OptionValue value;
  value.number = plain.numbers.front();
  value.second = plain.numbers.back();
  return value;
}

OptionValue ValueChecker::checkTile(const ast::Plain &plain) {
  bool isTile = plain.kind == ast::Plain::Dims && plain.numbers.size() == 2;
  if (!isTile || !inRange(plain.numbers[0]) || !inRange(plain.numbers[1]))
    return expected(plain, describeValues(option));
  OptionValue value;
  value.number = plain.numbers[0];
  value.second = plain.numbers[1];
  return value;
}

Assignment checkSetting(const ast::Setting &setting, const OptionInfo &option, FormAxis &forms, Diagnostics &diags) {
  Assignment assignment;
  assignment.option = &option;
  assignment.isAxis = setting.value.isAxis;
  assignment.keyRange = setting.key.range;
  assignment.range = setting.value.range;
  ValueChecker checker(option, forms, diags);
  for (const ast::Item &item : setting.value.items) {
    std::vector<OptionValue> &choices = assignment.items.emplace_back();
    for (const ast::Plain &plain : item.choices)
      choices.push_back(checker.check(plain));
    bool isKnown = choices.front().known;
    auto sameFirst = [&](const std::vector<OptionValue> &other) {
      return other.front().known && other.front() == choices.front();
    };
    if (isKnown && any_of(drop_end(assignment.items), sameFirst))
      diags.error(item.range, toText(option, choices.front()) + " is listed twice; take one out");
    if (item.isTune && option.block == OptionBlock::Problem)
      diags.error(item.range, "tune stands in schedules; " + option.name + " says what is computed");
  }
  return assignment;
}

OptionValue defaultValue(const OptionInfo &option) {
  OptionValue value;
  StringRef text = option.defaultText;
  if (option.type == OptionType::Enum)
    value.number = option.findValue(text)->number;
  else if (option.type == OptionType::Switch)
    value.number = text == "on";
  else
    text.take_while(isDigit).getAsInteger(10, value.number);
  return value;
}

static std::string enumText(const OptionInfo &option, const OptionValue &value, StringRef open, StringRef separator,
                            StringRef close) {
  if (value.form)
    return open == "_" ? toNamePart(*value.form) : toText(*value.form);
  const OptionValueInfo *info = option.findValue(value.number);
  std::string text = info->text.str();
  if (info->argument == ArgumentKind::Number)
    text += open.str() + std::to_string(value.second) + close.str();
  else if (info->argument == ArgumentKind::Names)
    text += open.str() + join(value.names, separator) + close.str();
  return text;
}

std::string toText(const OptionInfo &option, const OptionValue &value) {
  switch (option.type) {
  case OptionType::Enum:
    return enumText(option, value, "(", ", ", ")");
  case OptionType::Switch:
    return value.number ? "on" : "off";
  case OptionType::Integer:
    return option.takesAuto && value.number == 0 ? "auto" : std::to_string(value.number);
  case OptionType::Bytes:
    return fmt::format("{} B", value.number);
  case OptionType::HeadDim:
    return value.number == value.second ? std::to_string(value.number)
                                        : fmt::format("{} : {}", value.number, value.second);
  case OptionType::Tile:
    return fmt::format("{} x {}", value.number, value.second);
  }
  return {};
}

std::string toNamePart(const OptionInfo &option, const OptionValue &value) {
  switch (option.type) {
  case OptionType::Enum:
    return option.inName.str() + enumText(option, value, "_", "_", "");
  case OptionType::HeadDim:
    return value.number == value.second ? fmt::format("d{}", value.number)
                                        : fmt::format("d{}x{}", value.number, value.second);
  case OptionType::Tile:
    return fmt::format("{}x{}", value.number, value.second);
  case OptionType::Bytes:
    return fmt::format("{}{}", option.inName.str(), value.number);
  default:
    return option.inName.str() + toText(option, value);
  }
}

} // namespace fagen
