// fagen: picks a mistake; mistakes in what several keys must satisfy together.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Mistakes.h"

#include "Draw.h"
#include "Rules.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>

using namespace llvm;

namespace fagen::random {

//===-- Rules
//------------------------------------------------------------------------------------------------------===//

/// Any value that the key alone may have: of every target, generated or not.
static Plain anyPlain(const OptionInfo &option, Random &random) {
  switch (option.type) {
  case OptionType::Enum: {
    const OptionValueInfo &value = random.pick(option.values);
    Plain plain(value.number);
    if (value.argument == ArgumentKind::Number)
      plain.second = random.between(value.argumentMin, value.argumentMax);
    if (value.argument == ArgumentKind::Names)
      plain.names = {random.pick(value.argumentNames).str()};
    return plain;
  }
  case OptionType::Switch:
    return random.below(2);
  case OptionType::Integer:
    return random.between(option.takesAuto ? 0 : option.min, option.max);
  case OptionType::Bytes:
    return random.pick(option.allowed);
  case OptionType::HeadDim: {
    const unsigned most = option.max / option.multipleOf;
    const unsigned qk = option.multipleOf * random.between(1, most);
    return Plain(qk, random.percent(50) ? qk : option.multipleOf * random.between(1, most));
  }
  case OptionType::Tile: {
    static constexpr unsigned kMultiples[] = {1, 8, 16, 32};
    const unsigned rowMultiple = random.pick(kMultiples), keyMultiple = random.pick(kMultiples);
    const unsigned rows = rowMultiple * random.between(1, 8);
    return Plain(rows, keyMultiple * random.between(1, random.percent(50) ? 8 : 32));
  }
  }
  return {};
}

/// Calls `visit` with each schedule, each point and the values of each variant there.
static void forEachVariantOf(Kernel &kernel,
                             function_ref<void(Schedule &, const Point &, const Resolved &, const Values &)> visit) {
  for (Schedule &schedule : kernel.schedules)
    for (size_t point = 0; point != kernel.points.size(); ++point) {
      const Resolved resolved = resolve(schedule, point);
      forEachVariant(resolved, [&](const Values &values) { visit(schedule, kernel.points[point], resolved, values); });
    }
}

/// Marks what the kernel's breaches are blamed on; false where none of them is of the rule, or, alone, another is.
static bool markBreaches(StringRef rule, bool isAlone, Kernel &kernel) {
  bool mayBe = false;
  forEachVariantOf(kernel, [&](Schedule &, const Point &point, const Resolved &, const Values &values) {
    mayBe = mayBe || mayBreak(rule, point, values);
  });
  if (!mayBe)
    return false;
  bool isBroken = false, areOthersBroken = false;
  forEachVariantOf(kernel, [&](Schedule &schedule, const Point &point, const Resolved &resolved, const Values &values) {
    for (const Breach &breach : findBreaches(point, values)) {
      (breach.rule == rule ? isBroken : areOthersBroken) = true;
      auto setting = resolved.find(breach.key);
      auto inProblem = find_if(kernel.problem, [&](Setting &other) { return other.option->key == breach.key; });
      if (setting != resolved.end())
        setting->second->isWrong = true;
      else if (inProblem != kernel.problem.end())
        inProblem->isWrong = true;
      else
        schedule.isWrong = true;
    }
  });
  return isBroken && !(isAlone && areOthersBroken);
}

static void unmark(Kernel &kernel) {
  for (Setting &setting : kernel.problem)
    setting.isWrong = false;
  for (Schedule &schedule : kernel.schedules) {
    schedule.isWrong = false;
    for (size_t point = 0; point != kernel.points.size(); ++point)
      for (const auto &[key, setting] : resolve(schedule, point))
        setting->isWrong = false;
  }
}

/// Every setting of the kernel that some point takes, problem's first.
static std::vector<Setting *> settingsOf(Kernel &kernel) {
  std::vector<Setting *> settings;
  for (Setting &setting : kernel.problem)
    settings.push_back(&setting);
  for (Schedule &schedule : kernel.schedules)
    for (size_t point = 0; point != kernel.points.size(); ++point)
      for (const auto &[key, setting] : resolve(schedule, point))
        if (!is_contained(settings, setting))
          settings.push_back(setting);
  return settings;
}

// A value is changed where it stands, as long as the whens hold where they did: keys of the problem that a condition
// may read are left alone where there is one.
static bool hasWhen(const Kernel &kernel) {
  return any_of(kernel.schedules, [](const Schedule &schedule) {
    return any_of(schedule.body, [](const Statement &statement) { return statement.when != nullptr; });
  });
}

/// Conditions of select name keys of the problem as numbers and values; those of whens decide what holds.
static bool canChange(const Kernel &kernel, const Setting &setting) {
  return setting.option->block == OptionBlock::Schedule || (!hasWhen(kernel) && kernel.select.empty());
}

bool breakRule(StringRef rule, bool isAlone, Spec &spec, Random &random) {
  for (unsigned tries = 0; tries != 150; ++tries) {
    Kernel &kernel = random.pick(spec.kernels);
    const std::vector<Setting *> settings = settingsOf(kernel);
    Setting &setting = *random.pick(settings);
    if (!canChange(kernel, setting))
      continue;
    std::vector<Plain> &choices = random.pick(setting.items);
    const std::vector<Plain> old = choices;
    const Plain wrong = anyPlain(*setting.option, random);
    const bool isListed = any_of(setting.items, [&](const std::vector<Plain> &item) { return item.front() == wrong; });
    choices = {wrong};
    kernel.points = expandPoints(kernel, spec.targets);
    if (!isListed && markBreaches(rule, isAlone, kernel))
      return true;
    unmark(kernel);
    choices = old;
    kernel.points = expandPoints(kernel, spec.targets);
  }
  return false;
}

//===-- Choice
//-----------------------------------------------------------------------------------------------------===//

static std::vector<Mistake> textMistakes() {
  std::vector<Mistake> mistakes;
  for (const std::vector<Mistake> &more : {blockMistakes(), valueMistakes(), expressionMistakes()})
    append_range(mistakes, more);
  return mistakes;
}

std::vector<std::string> allMistakes() {
  std::vector<std::string> names;
  for (const Mistake &mistake : textMistakes())
    names.push_back(mistake.name.str());
  for (StringRef rule : allRules())
    names.push_back("rule-" + rule.str());
  return names;
}

/// So many specs are looked through for a place where the wanted mistake can be made, and as many again where a rule
/// need not be broken alone.
static constexpr unsigned kMostSpecs = 100;

/// A spec with that mistake, or none. A rule may be broken alone only.
static std::optional<WrongSpec> makeMistake(size_t kind, bool isAlone, const TargetInfo *target, Random &random) {
  const std::vector<Mistake> inText = textMistakes();
  Spec spec = drawSpec(random, target);
  std::vector<Node> nodes = toNodes(spec, random);
  if (kind < inText.size())
    return inText[kind].inText(nodes, random) ? std::optional(WrongSpec{inText[kind].name.str(), std::move(nodes)})
                                              : std::nullopt;
  const StringRef rule = allRules()[kind - inText.size()];
  if (!breakRule(rule, isAlone, spec, random))
    return std::nullopt;
  return WrongSpec{"rule-" + rule.str(), toNodes(spec, random)};
}

WrongSpec drawWrongSpec(Random &random, const TargetInfo *target, uint64_t first) {
  const size_t kinds = allMistakes().size();
  for (uint64_t kind = first % kinds;; kind = (kind + 1) % kinds)
    for (unsigned count = 0; count != 2 * kMostSpecs; ++count)
      if (auto wrong = makeMistake(kind, count < kMostSpecs && random.percent(80), target, random))
        return *wrong;
}

} // namespace fagen::random
