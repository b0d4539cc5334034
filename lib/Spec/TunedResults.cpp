// fagen: what a tuner's results say of a variant.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TunedResults.h"

#include "Checks.h"
#include "fagen/Spec/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

using namespace llvm;

namespace fagen {

static bool isAbout(const TunedStudy &study, const KernelSpec &kernel, const Variant &variant) {
  const Problem &problem = variant.problem;
  return study.kernel == kernel.name && study.target == variant.target->name &&
         study.dtype == toString(problem.dtype) && study.accum == toString(problem.accum) &&
         study.mask == maskText(problem) && study.lse == problem.lse && study.headDimQK == problem.headDimQK &&
         study.headDimV == problem.headDimV;
}

/// The schedule that select gives to the study's problem.
static std::optional<unsigned> selected(const TunedStudy &study, const KernelSpec &kernel) {
  auto variable = [&](int64_t number) -> int64_t {
    switch (SelectVariable(number)) {
    case SelectVariable::Batch:
      return study.batch;
    case SelectVariable::Heads:
      return study.heads;
    case SelectVariable::KvHeads:
      return study.kvHeads;
    case SelectVariable::SeqQ:
      return study.seqQ;
    case SelectVariable::SeqKv:
      return study.seqKv;
    case SelectVariable::Sms:
      return study.sms;
    case SelectVariable::HeadDimQK:
      return study.headDimQK;
    case SelectVariable::HeadDimV:
      return study.headDimV;
    case SelectVariable::DType:
      return optionInfo(OptionKey::DType).findValue(study.dtype)->number;
    case SelectVariable::Mask:
      for (const Variant &variant : kernel.variants)
        if (maskText(variant.problem) == study.mask)
          return maskNumber(variant.problem);
      return 0;
    case SelectVariable::Splits: // of workspaces only
    case SelectVariable::Row:    // of tiles that splits share
      break;
    }
    return 0;
  };
  for (const SelectLine &line : kernel.select)
    if (line.condition.empty() || evaluate(line.condition, variable).value_or(0) != 0)
      return line.scheduleIndex;
  return std::nullopt;
}

std::vector<TunedClass> tunedClasses(const KernelSpec &kernel, const Variant &variant, ArrayRef<TunedStudy> studies) {
  std::vector<TunedClass> classes;
  for (const TunedStudy &study : studies) {
    if (study.measure != kernel.least || !isAbout(study, kernel, variant) || study.times.empty() ||
        selected(study, kernel) != variant.scheduleIndex)
      continue;
    erase_if(classes, [&](TunedClass earlier) {
      return earlier->gpu == study.gpu && earlier->batch == study.batch && earlier->heads == study.heads &&
             earlier->kvHeads == study.kvHeads && earlier->seqQ == study.seqQ && earlier->seqKv == study.seqKv;
    });
    classes.push_back(&study);
  }
  return classes;
}

/// "mixed(4)" and "at(after_load, after_tile)" as name and arguments.
static std::optional<OptionValue> enumValue(const OptionInfo &option, StringRef text) {
  auto [name, arguments] = text.split('(');
  const OptionValueInfo *info = option.findValue(name.trim());
  if (!info)
    return std::nullopt;
  OptionValue value;
  value.number = info->number;
  SmallVector<StringRef, 4> parts;
  arguments.rtrim(")").split(parts, ',', -1, false);
  for (StringRef part : parts)
    if (info->argument == ArgumentKind::Names)
      value.names.push_back(part.trim().str());
    else if (part.trim().getAsInteger(10, value.second))
      return std::nullopt;
  return value;
}

static std::optional<OptionValue> valueOf(const OptionInfo &option, StringRef text) {
  OptionValue value;
  auto [first, second] = text.split(option.type == OptionType::Tile ? 'x' : ' ');
  switch (option.type) {
  case OptionType::Enum:
    return enumValue(option, text);
  case OptionType::Switch:
    value.number = text == "on";
    return value;
  case OptionType::Integer:
  case OptionType::Bytes:
    if (first.trim().getAsInteger(10, value.number))
      return std::nullopt;
    return value;
  case OptionType::HeadDim:
  case OptionType::Tile:
    if (first.trim().getAsInteger(10, value.number) || second.trim().getAsInteger(10, value.second))
      return std::nullopt;
    return value;
  }
  return std::nullopt;
}

/// Nothing, and `problem` set, when the compiler does not take the settings.
static std::optional<Schedule> makeSchedule(const Variant &variant, const std::map<std::string, std::string> &settings,
                                            SharedMeter &meter, std::string &problem) {
  Variant made = variant;
  Schedule &schedule = made.schedule;
  problem.clear();
  for (const auto &[key, text] : settings) {
    const OptionInfo *option = findOption(OptionBlock::Schedule, key);
    std::optional<OptionValue> value = option ? valueOf(*option, text) : std::nullopt;
    if (value)
      setKey(schedule, option->key, *value);
    else
      problem = key + " = " + text + " is not of this language";
  }
  if (problem.empty())
    if (std::vector<Finding> findings =
            checkVariant(*variant.target, variant.problem, schedule, 0, std::numeric_limits<KeySet>::max());
        !findings.empty())
      problem = findings.front().message;
  if (problem.empty()) {
    noteMeasures(meter, &made);
    problem = findSharedProblem(made).value_or("");
  }
  if (problem.empty())
    return schedule;
  return std::nullopt;
}

static std::string textOf(const Schedule &schedule) {
  std::string text;
  for (const OptionInfo &option : allOptions())
    if (option.block == OptionBlock::Schedule)
      text += option.name.str() + " = " + toText(option, getKey(schedule, option.key)) + "; ";
  return text;
}

std::string differenceOf(const Schedule &schedule, const Schedule &from) {
  std::vector<std::string> parts;
  for (const OptionInfo &option : allOptions())
    if (option.block == OptionBlock::Schedule && !(getKey(schedule, option.key) == getKey(from, option.key)))
      parts.push_back(fmt::format("{} = {}", option.name.str(), toText(option, getKey(schedule, option.key))));
  return parts.empty() ? "the spec's values" : fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<TunedChoice> tunedChoices(const Variant &variant, ArrayRef<TunedClass> classes, SharedMeter &meter,
                                      Diagnostics &diags) {
  std::map<std::map<std::string, std::string>, std::vector<double>> bySettings;
  for (auto [index, study] : enumerate(classes))
    for (const TunedTime &time : study->times) {
      std::vector<double> &times = bySettings[time.settings];
      times.resize(classes.size());
      times[index] = time.cost;
    }
  unsigned leftOut = 0;
  std::string problem, firstProblem;
  std::vector<TunedChoice> choices = {{variant.schedule, true, std::vector<double>(classes.size())}};
  for (const auto &[settings, times] : bySettings) {
    std::optional<Schedule> schedule = makeSchedule(variant, settings, meter, problem);
    if (!schedule)
      firstProblem = leftOut++ ? firstProblem : problem;
    else if (textOf(*schedule) == textOf(variant.schedule))
      choices.front().costs = times;
    else
      choices.push_back({*schedule, false, times});
  }
  if (leftOut)
    diags.warning(variant.location, fmt::format("{} tuned settings of {} are left out, the first because {}", leftOut,
                                                variant.name, firstProblem));
  return choices;
}

} // namespace fagen
