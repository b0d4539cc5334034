// fagen: expansion of a kernel: problem axes, targets, the schedules' whens, schedule axes, tune.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Hints.h"
#include "KernelAnalysis.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

/// Calls `visit` with one index for each size, the last counting fastest: the first call has all zeros.
static void forEachCombination(ArrayRef<unsigned> sizes, function_ref<void(ArrayRef<unsigned>)> visit) {
  std::vector<unsigned> indices(sizes.size(), 0);
  while (true) {
    visit(indices);
    size_t digit = sizes.size();
    while (digit != 0 && ++indices[digit - 1] == sizes[digit - 1])
      indices[--digit] = 0;
    if (digit == 0)
      return;
  }
}

static uint64_t combinationCount(ArrayRef<unsigned> sizes) {
  uint64_t count = 1;
  for (unsigned size : sizes)
    count = std::min<uint64_t>(count * size, kMaxVariants + 1);
  return count;
}

//===-- Problem axes
//-----------------------------------------------------------------------------------------------===//

/// Whether every variant's name has the key's value anyway.
static bool isAlwaysInName(OptionKey key) {
  return key == OptionKey::DType || key == OptionKey::HeadDim || key == OptionKey::Mask;
}

void KernelAnalysis::setProblemKey(ProblemPoint &point, const OptionInfo &option, unsigned item) const {
  const Assignment *setting = problemSetting(option.key);
  const bool isLost = (problemLost.keys & keyBit(option.key)) != 0;
  if (!setting || isLost) {
    if (option.required || isLost || (problemLost.possible & keyBit(option.key)) != 0)
      point.unknown |= keyBit(option.key);
    else
      setKey(point.problem, option.key, defaultValue(option));
    return;
  }
  const OptionValue &value = setting->items[item].front();
  point.ranges[option.key] = value.range;
  if (!value.known) {
    point.unknown |= keyBit(option.key);
    return;
  }
  setKey(point.problem, option.key, value);
  if (setting->isAxis && !isAlwaysInName(option.key))
    point.axisParts += "_" + toNamePart(option, value);
}

std::vector<ProblemPoint> KernelAnalysis::expandProblem() {
  std::vector<const OptionInfo *> options;
  std::vector<unsigned> sizes;
  for (const OptionInfo &option : allOptions()) {
    if (option.block != OptionBlock::Problem)
      continue;
    const Assignment *setting = problemSetting(option.key);
    options.push_back(&option);
    sizes.push_back(setting ? setting->items.size() : 1);
  }
  std::vector<ProblemPoint> result;
  if (combinationCount(sizes) > kMaxVariants) {
    diags.error(kernel.name.range, fmt::format("the problem has more than {} points", kMaxVariants));
    return result;
  }
  forEachCombination(sizes, [&](ArrayRef<unsigned> items) {
    ProblemPoint &point = result.emplace_back();
    for (auto [option, item] : zip(options, items))
      setProblemKey(point, *option, item);
    for (const auto &[key, range] : point.ranges)
      point.problem.locations.push_back({optionInfo(key).name.str(), diags.locate(range.Start)});
  });
  return result;
}

//===-- when
//-------------------------------------------------------------------------------------------------------===//

static int64_t whenValue(WhenVariable variable, const Problem &problem, const TargetInfo &target) {
  switch (variable) {
  case WhenVariable::Pass:
    return int64_t(problem.pass);
  case WhenVariable::DType:
    return int64_t(problem.dtype);
  case WhenVariable::KvDType:
    return int64_t(problem.kvDType);
  case WhenVariable::Accum:
    return int64_t(problem.accum);
  case WhenVariable::HeadDim:
  case WhenVariable::HeadDimQK:
    return problem.headDimQK;
  case WhenVariable::HeadDimV:
    return problem.headDimV;
  case WhenVariable::Mask:
    return maskNumber(problem);
  case WhenVariable::Lse:
    return problem.lse;
  case WhenVariable::Invariant:
    return problem.invariant;
  case WhenVariable::Target:
    return lookupTarget(target.name) ? &target - allTargets().data() : -1;
  }
  return 0;
}

/// Nothing where the condition, or what it reads, was reported.
std::optional<bool> KernelAnalysis::holds(const CheckedWhen &when, const ProblemPoint &point,
                                          const TargetInfo &target) {
  bool &isEverTaken = everTaken[&when];
  if (!when.condition || (when.reads & point.unknown) != 0) {
    isEverTaken = true; // as far as anyone can say
    return std::nullopt;
  }
  std::optional<int64_t> value = evaluate(
      *when.condition, [&](int64_t variable) { return whenValue(WhenVariable(variable), point.problem, target); });
  isEverTaken |= !value || *value != 0;
  if (value)
    return *value != 0;
  if (reported.insert({when.range.Start.getPointer(), "division"}).second)
    diags.error(when.range, "division by zero at " + variantName("", "", point).substr(1));
  return std::nullopt;
}

/// Says which conditions hold for no variant. Those on the target are for other files, or for another --target.
void KernelAnalysis::warnNeverTaken() {
  for (const auto &[when, isTaken] : everTaken)
    if (!isTaken && !when->readsTarget)
      diags.warning(when->range, "this condition is never true: no problem of the kernel has it");
}

/// The keys that a body sets, or may set, on any condition.
static KeySet keysOf(const CheckedBody &body) {
  KeySet keys = body.lost.keys | body.lost.possible;
  for (const CheckedStatement &statement : body.statements)
    keys |= statement.when ? keysOf(statement.when->body) : keyBit(statement.assignment->option->key);
  return keys;
}

void KernelAnalysis::resolveBody(const CheckedBody &body, const ProblemPoint &point, const TargetInfo &target,
                                 Resolved &resolved) {
  auto forget = [&](KeySet keys) {
    for (auto &[key, unknown] : unknownSettings)
      if (keys & keyBit(key))
        resolved[key] = &unknown;
  };
  forget(body.lost.possible);
  for (const CheckedStatement &statement : body.statements) {
    if (statement.assignment) {
      resolved[statement.assignment->option->key] = &*statement.assignment;
      continue;
    }
    std::optional<bool> isTaken = holds(*statement.when, point, target);
    if (!isTaken)
      forget(keysOf(statement.when->body));
    else if (*isTaken)
      resolveBody(statement.when->body, point, target, resolved);
  }
  forget(body.lost.keys);
}

Resolved KernelAnalysis::resolve(const CheckedSchedule &schedule, const ProblemPoint &point, const TargetInfo &target) {
  Resolved resolved;
  resolveBody(schedule.body, point, target, resolved);
  return resolved;
}

//===-- Variants
//---------------------------------------------------------------------------------------------------===//

void KernelAnalysis::requireKeys(const CheckedSchedule &schedule, const Resolved &resolved, const TargetInfo &target) {
  for (const OptionInfo &option : allOptions()) {
    if (option.block != OptionBlock::Schedule || !option.required || resolved.count(option.key))
      continue;
    if (reported.insert({schedule.range.Start.getPointer(), option.name.str()}).second)
      diags.error(schedule.range, "schedule sets no " + option.name + ", which has no default; it takes " +
                                      describeValues(option, &target));
  }
}

void KernelAnalysis::expandSchedule(unsigned index, const ProblemPoint &point, const TargetInfo &target) {
  Resolved resolved = resolve(schedules[index], point, target);
  requireKeys(schedules[index], resolved, target);
  std::vector<OptionKey> axes;
  std::vector<unsigned> sizes;
  for (const auto &[key, assignment] : resolved) {
    axes.push_back(key);
    sizes.push_back(assignment->items.size());
  }
  if (spec.variants.size() + combinationCount(sizes) > kMaxVariants) {
    if (reported.insert({kernel.name.range.Start.getPointer(), "variants"}).second)
      diags.error(kernel.name.range, fmt::format("the kernel has more than {} variants", kMaxVariants));
    return;
  }
  forEachCombination(sizes, [&](ArrayRef<unsigned> items) {
    Choice choice;
    for (auto [key, item] : zip(axes, items))
      choice[key] = item;
    addVariant(index, point, target, resolved, choice);
  });
}

/// The schedule that a choice of axis items and tune choices gives, its keys' places, and what is unknown of it.
ScheduleChoice KernelAnalysis::makeSchedule(const CheckedSchedule &checked, const TargetInfo &target,
                                            const Resolved &resolved, const Choice &items, const Choice &tunes) {
  ScheduleChoice made;
  made.schedule.name = checked.name;
  made.schedule.location = diags.locate(checked.range.Start);
  for (const OptionInfo &option : allOptions()) {
    if (option.block != OptionBlock::Schedule)
      continue;
    auto found = resolved.find(option.key);
    if (found == resolved.end()) {
      if (option.required)
        made.unknown |= keyBit(option.key);
      else if (!option.defaultText.empty())
        setKey(made.schedule, option.key, defaultValue(option));
      continue;
    }
    auto tune = tunes.find(option.key);
    const OptionValue &value = found->second->items[items.at(option.key)][tune == tunes.end() ? 0 : tune->second];
    made.given |= keyBit(option.key);
    made.ranges[option.key] = value.range;
    made.schedule.locations.push_back({option.name.str(), diags.locate(value.range.Start)});
    if (value.known)
      setKey(made.schedule, option.key, value);
    else
      made.unknown |= keyBit(option.key);
  }
  chooseDefaults(target, made.schedule, made.given);
  return made;
}

std::string KernelAnalysis::variantName(StringRef schedule, StringRef axisParts, const ProblemPoint &point) const {
  std::string name = schedule.empty() ? "" : "_" + schedule.str();
  for (OptionKey key : {OptionKey::DType, OptionKey::HeadDim, OptionKey::Mask})
    if ((point.unknown & keyBit(key)) == 0)
      name += "_" + toNamePart(optionInfo(key), getKey(point.problem, key));
  return name + point.axisParts + axisParts.str();
}

void KernelAnalysis::addVariant(unsigned index, const ProblemPoint &point, const TargetInfo &target,
                                const Resolved &resolved, const Choice &items) {
  const CheckedSchedule &checked = schedules[index];
  ScheduleChoice made = makeSchedule(checked, target, resolved, items, {});
  std::vector<Finding> findings =
      checkVariant(target, point.problem, made.schedule, made.unknown | point.unknown, made.given | givenKeys(point));
  report(findings, point, made, checked.range);
  made.isSound = findings.empty() && (made.unknown | point.unknown) == 0;

  Variant variant;
  std::string axisParts;
  for (const auto &[key, item] : items) {
    const Assignment &assignment = *resolved.at(key);
    variant.dispatched &= item == 0;
    if (assignment.isAxis && assignment.items[item].front().known)
      axisParts += "_" + toNamePart(*assignment.option, assignment.items[item].front());
  }
  variant.name = kernel.name.text + variantName(checked.name, axisParts, point);
  variant.symbol = fmt::format("fagen_{}_{}", variant.name, target.name.str());
  variant.target = &target;
  variant.problem = point.problem;
  variant.schedule = std::move(made.schedule);
  variant.scheduleIndex = index;
  variant.location = spec.location;
  addTuneChoices(variant, point, resolved, items);
  spec.variants.push_back(std::move(variant));
  pointOfVariant.push_back(&point);
  madeOfVariant.push_back(std::move(made));
}

KeySet KernelAnalysis::givenKeys(const ProblemPoint &point) {
  KeySet keys = 0;
  for (const auto &entry : point.ranges)
    keys |= keyBit(entry.first);
  return keys;
}

//===-- tune
//-------------------------------------------------------------------------------------------------------===//

// The first combination is the variant itself, which was checked and must be right.
void KernelAnalysis::addTuneChoices(const Variant &variant, const ProblemPoint &point, const Resolved &resolved,
                                    const Choice &items) {
  std::vector<OptionKey> keys;
  std::vector<unsigned> sizes;
  for (const auto &[key, assignment] : resolved) {
    keys.push_back(key);
    sizes.push_back(assignment->items[items.at(key)].size());
  }
  const CheckedSchedule &checked = schedules[variant.scheduleIndex];
  if (combinationCount(sizes) > kMaxVariants) {
    if (reported.insert({checked.range.Start.getPointer(), "tune"}).second)
      diags.error(checked.range, fmt::format("the schedule has more than {} tune combinations", kMaxVariants));
    return;
  }
  bool isFirst = true;
  forEachCombination(sizes, [&](ArrayRef<unsigned> chosen) {
    Choice tunes;
    for (auto [key, choice] : zip(keys, chosen))
      tunes[key] = choice;
    if (!std::exchange(isFirst, false))
      addTuneChoice(variant, point, resolved, items, tunes);
  });
}

void KernelAnalysis::addTuneChoice(const Variant &variant, const ProblemPoint &point, const Resolved &resolved,
                                   const Choice &items, const Choice &tunes) {
  const CheckedSchedule &checked = schedules[variant.scheduleIndex];
  ScheduleChoice made = makeSchedule(checked, *variant.target, resolved, items, tunes);
  KeySet unknown = made.unknown | point.unknown;
  std::vector<Finding> findings = checkVariant(*variant.target, point.problem, made.schedule, unknown, made.given);
  if (findings.empty() && unknown != 0)
    return;
  TuneCandidate &candidate = tuneCandidates.emplace_back();
  candidate.index = spec.variants.size();
  candidate.variant = variant;
  candidate.variant.schedule = std::move(made.schedule);
  candidate.dropped = findings.empty() ? "" : findings.front().message;
  candidate.place = checked.range;
  for (const auto &[key, choice] : tunes) {
    const Assignment &assignment = *resolved.at(key);
    const std::vector<OptionValue> &choices = assignment.items[items.at(key)];
    if (choices.size() == 1)
      continue;
    candidate.combination += fmt::format("{}{} = {}", candidate.combination.empty() ? "" : ", ",
                                         assignment.option->name.str(), toText(*assignment.option, choices[choice]));
    candidate.place = assignment.range;
  }
}

/// What breaks a rule, or does not fit, is dropped with a remark.
void KernelAnalysis::takeTuneChoices() {
  for (TuneCandidate &candidate : tuneCandidates) {
    Variant &variant = spec.variants[candidate.index];
    if (candidate.dropped.empty())
      candidate.dropped = findSharedProblem(candidate.variant).value_or("");
    if (candidate.dropped.empty()) {
      variant.tuneChoices.push_back(std::move(candidate.variant.schedule));
      continue;
    }
    std::string remark = fmt::format("{} on {}: {} is dropped: {}", variant.name, variant.target->name.str(),
                                     candidate.combination, candidate.dropped);
    diags.remark(candidate.place, remark);
    spec.remarks.push_back(remark);
  }
}

//===-- Findings
//---------------------------------------------------------------------------------------------------===//

void KernelAnalysis::report(ArrayRef<Finding> findings, const ProblemPoint &point, const ScheduleChoice &made,
                            SMRange fallback) {
  auto rangeOf = [&](OptionKey key) {
    if (auto found = made.ranges.find(key); found != made.ranges.end())
      return found->second;
    auto found = point.ranges.find(key);
    return found == point.ranges.end() ? fallback : found->second;
  };
  for (const Finding &finding : findings) {
    SMRange range = rangeOf(finding.key);
    if (!reported.insert({range.Start.getPointer(), finding.check.str()}).second)
      continue;
    diags.error(range, finding.message);
    for (const auto &[key, text] : finding.notes)
      diags.note(rangeOf(key), text);
  }
}

//===-- The implicit schedule
//--------------------------------------------------------------------------------------===//

/// Without bulk copies nobody loads for others: what the fallback schedule was chosen for does not count then.
static void leaveBulkCopies(Schedule &schedule) {
  if (const GoesWith *const copies = mmaFamily(schedule.mma).taken(OptionKey::Copy);
      copies && !is_contained(copies->numbers, unsigned(schedule.copy)))
    schedule.mma = fallbackFamily().family;
  schedule.swizzle = Swizzle::Xor;
  schedule.roles = Roles::Unified;
  schedule.overlap = Overlap::None;
  schedule.grid = Grid::Tiles;
  schedule.exp = Exp::Mufu;
  schedule.expMixed = 0;
  schedule.rescale = RescalePolicy::Always;
  auto isLost = [&](const OptionInfo &option) {
    return any_of(option.goesWith,
                  [&](const GoesWith &rule) { return !is_contained(rule.numbers, getKey(schedule, rule.key).number); });
  };
  erase_if(schedule.locations, [&](const auto &entry) {
    const OptionInfo *option = findOption(OptionBlock::Schedule, entry.first);
    return is_contained({"mma", "swizzle", "roles", "overlap", "grid", "exp", "rescale"}, StringRef(entry.first)) ||
           (option && isLost(*option));
  });
  for (const OptionInfo &option : allOptions())
    if (isLost(option))
      schedule.numbers.erase(option.key);
}

// A row for strides and alignments that wider accesses cannot take: the fallback schedule with copies of one element.
void KernelAnalysis::addUnaligned() {
  const unsigned index = schedules.size();
  spec.scheduleNames.push_back(kImplicitSchedule.str());
  const size_t written = spec.variants.size();
  for (size_t i = 0; i != written; ++i) {
    if (spec.variants[i].scheduleIndex != fallbackSchedule || !spec.variants[i].dispatched)
      continue;
    Variant variant = spec.variants[i];
    Schedule &schedule = variant.schedule;
    schedule.name = kImplicitSchedule.str();
    schedule.implicit = true;
    const bool copiedInBulk = schedule.copy == Copy::Tma;
    schedule.copy = Copy::LdSt;
    schedule.vectorBytes = elementBytes(variant.problem.dtype);
    if (copiedInBulk)
      leaveBulkCopies(schedule);
    erase_if(schedule.locations, [](const auto &entry) { return isImplicitKey(entry.first); });
    variant.scheduleIndex = index;
    variant.tuneChoices.clear();
    variant.name = kernel.name.text + variantName(kImplicitSchedule, "", *pointOfVariant[i]);
    variant.symbol = fmt::format("fagen_{}_{}", variant.name, variant.target->name.str());
    spec.variants.push_back(std::move(variant));
  }
}

} // namespace fagen
