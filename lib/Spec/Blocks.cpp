// fagen: problem and schedule blocks of a kernel: keys, values, conditions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Hints.h"
#include "KernelAnalysis.h"

#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

/// Reports every block after the first.
template <typename Block> static void checkOnce(const std::vector<Block> &blocks, StringRef what, Diagnostics &diags) {
  for (const Block &block : drop_begin(blocks, std::min<size_t>(blocks.size(), 1))) {
    diags.error(block.range, "a kernel has one " + what + "; take this one out, or put both together");
    diags.note(blocks.front().range, "the first is here");
  }
}

void KernelAnalysis::checkBlockCounts() {
  checkOnce(kernel.problems, "problem", diags);
  checkOnce(kernel.selects, "select", diags);
  checkOnce(kernel.claims, "claim", diags);
  checkOnce(kernel.requires_, "require", diags);
  if (kernel.problems.empty() && !kernel.isDamaged)
    diags.error(kernel.name.range,
                fmt::format("kernel '{}' has no problem; it needs one: problem {{ dtype = f16; head_dim = 64; }}",
                            kernel.name.text));
  if (kernel.schedules.empty() && !kernel.isDamaged)
    diags.error(
        kernel.name.range,
        fmt::format(
            "kernel '{}' has no schedule; it needs one: schedule {{ tile = 64 x 64; warps = 4; mma = mma_sync; }}",
            kernel.name.text));
}

static KeySet requiredKeys(OptionBlock block) {
  KeySet keys = 0;
  for (const OptionInfo &option : allOptions())
    if (option.block == block && option.required)
      keys |= keyBit(option.key);
  return keys;
}

/// The key of that name in the block; otherwise says what it may have been, and counts that as lost.
const OptionInfo *KernelAnalysis::findKey(const ast::Name &key, OptionBlock block, LostKeys &lost) {
  if (const OptionInfo *option = findOption(block, key.text))
    return option;
  bool isProblem = block == OptionBlock::Problem;
  OptionBlock other = isProblem ? OptionBlock::Schedule : OptionBlock::Problem;
  std::string message = fmt::format("unknown key '{}'", key.text);
  StringRef near = nearestWord(key.text, optionNames(block));
  const bool isOther = findOption(other, key.text) != nullptr;
  if (isOther)
    message = fmt::format("{0} is a key of {1}, not of {2}: set it in {1}", key.text,
                          isProblem ? "schedule" : "problem", isProblem ? "problem" : "schedule");
  else if (StringRef hint = hintForKey(key.text); !hint.empty())
    message += fmt::format("; {}", hint.str());
  else if (!near.empty())
    message += fmt::format("; did you mean '{}'?", near.str());
  else
    message +=
        isProblem ? "; problem has " + alternatives(optionNames(block)) : "; docs/Options.md lists the schedule's";
  if (isOther || near.empty())
    lost.possible |= requiredKeys(block); // like none of the others, but those cannot be left out
  else
    lost.keys |= keyBit(findOption(block, near)->key);
  diags.error(key.range, message);
  return nullptr;
}

/// What the parser skipped, by the block's keys.
static LostKeys findLost(const ast::Lost &lost, OptionBlock block) {
  LostKeys found;
  found.possible = lost.mayBeAny ? kAllKeys : 0;
  for (const std::string &key : lost.keys) {
    if (const OptionInfo *option = findOption(block, key))
      found.keys |= keyBit(option->key);
    else
      found.possible = kAllKeys;
  }
  return found;
}

//===-- Problem
//----------------------------------------------------------------------------------------------------===//

const Assignment *KernelAnalysis::problemSetting(OptionKey key) const {
  auto found = problemSettings.find(key);
  return found == problemSettings.end() ? nullptr : &found->second;
}

void KernelAnalysis::checkProblem() {
  if (kernel.problems.empty()) {
    problemLost.possible = kAllKeys; // reported
    return;
  }
  const ast::Problem &problem = kernel.problems.front();
  problemLost = findLost(problem.lost, OptionBlock::Problem);
  for (const ast::Setting &setting : problem.settings) {
    const OptionInfo *option = findKey(setting.key, OptionBlock::Problem, problemLost);
    if (!option)
      continue;
    Assignment assignment = checkSetting(setting, *option, forms, diags);
    auto [earlier, inserted] = problemSettings.insert({option->key, assignment});
    if (inserted)
      continue;
    diags.error(setting.key.range, option->name + " is set twice; take one out");
    diags.note(earlier->second.keyRange, "first here");
  }
  const KeySet lost = problemLost.keys | problemLost.possible;
  for (const OptionInfo &option : allOptions())
    if (option.block == OptionBlock::Problem && option.required && !problemSetting(option.key) &&
        !(lost & keyBit(option.key)))
      diags.error(problem.range,
                  "problem sets no " + option.name + ", which has no default; it takes " + describeValues(option));
}

bool KernelAnalysis::hasHeadDimPair() const {
  const Assignment *setting = problemSetting(OptionKey::HeadDim);
  return setting && any_of(setting->items, [](const std::vector<OptionValue> &item) {
           return item.front().number != item.front().second;
         });
}

//===-- Schedules
//--------------------------------------------------------------------------------------------------===//

void KernelAnalysis::checkScheduleName(const ast::Schedule &schedule) {
  std::string name = schedule.name ? schedule.name->text : "";
  SMRange range = schedule.name ? schedule.name->range : schedule.range;
  if (name == kImplicitSchedule)
    diags.error(range, "'" + kImplicitSchedule + "' is the name of the schedule that fagen adds itself");
  for (const CheckedSchedule &earlier : schedules) {
    if (earlier.name != name)
      continue;
    diags.error(range, name.empty() ? "a second schedule needs a name"
                                    : fmt::format("schedule '{}' is defined twice; give one another name", name));
    diags.note(earlier.range, "first here");
    return;
  }
}

/// A setting that stands for one which was reported.
static Assignment makeUnknown(const OptionInfo &option, SMRange place) {
  Assignment unknown;
  unknown.option = &option;
  unknown.items.emplace_back(1);
  unknown.items[0][0].known = false;
  unknown.keyRange = unknown.range = unknown.items[0][0].range = place;
  return unknown;
}

void KernelAnalysis::checkSchedules() {
  for (const OptionInfo &option : allOptions())
    if (option.block == OptionBlock::Schedule)
      unknownSettings[option.key] = makeUnknown(option, kernel.name.range);
  for (const ast::Schedule &schedule : kernel.schedules) {
    checkScheduleName(schedule);
    CheckedSchedule checked;
    checked.name = schedule.name ? schedule.name->text : "";
    checked.range = schedule.name ? schedule.name->range : schedule.range;
    checked.body = checkBody(schedule.body, schedule.lost);
    spec.scheduleNames.push_back(checked.name);
    schedules.push_back(std::move(checked));
  }
}

void KernelAnalysis::checkScheduleSetting(const ast::Setting &setting, CheckedBody &body) {
  const OptionInfo *option = findKey(setting.key, OptionBlock::Schedule, body.lost);
  if (!option)
    return;
  Assignment assignment = checkSetting(setting, *option, forms, diags);
  auto earlier = find_if(body.statements, [&](const CheckedStatement &other) {
    return other.assignment && other.assignment->option == option;
  });
  if (earlier != body.statements.end()) {
    diags.error(assignment.keyRange, option->name + " is set twice; take one out");
    diags.note(earlier->assignment->keyRange, "first here");
    return;
  }
  body.statements.push_back({std::move(assignment), nullptr});
}

CheckedBody KernelAnalysis::checkBody(const std::vector<ast::Statement> &body, const ast::Lost &lost) {
  CheckedBody checked;
  checked.lost = findLost(lost, OptionBlock::Schedule);
  for (const ast::Statement &statement : body) {
    if (statement.when)
      checked.statements.push_back({std::nullopt, checkWhen(*statement.when)});
    else
      checkScheduleSetting(*statement.setting, checked);
  }
  return checked;
}

//===-- when
//-------------------------------------------------------------------------------------------------------===//

ConditionScope KernelAnalysis::whenScope() const {
  ConditionScope scope;
  scope.forms = &forms;
  auto add = [&](const std::string &name, ConditionName::Kind kind, WhenVariable variable, const OptionInfo *option) {
    ConditionName &entry = scope.names[name];
    entry.kind = kind;
    entry.variable = int64_t(variable);
    entry.option = option;
  };
  add("pass", ConditionName::Enumeration, WhenVariable::Pass, &optionInfo(OptionKey::Pass));
  add("dtype", ConditionName::Enumeration, WhenVariable::DType, &optionInfo(OptionKey::DType));
  add("kv_dtype", ConditionName::Enumeration, WhenVariable::KvDType, &optionInfo(OptionKey::KvDType));
  add("accum", ConditionName::Enumeration, WhenVariable::Accum, &optionInfo(OptionKey::Accum));
  add("head_dim", ConditionName::Number, WhenVariable::HeadDim, nullptr);
  add("head_dim_qk", ConditionName::Number, WhenVariable::HeadDimQK, nullptr);
  add("head_dim_v", ConditionName::Number, WhenVariable::HeadDimV, nullptr);
  add("mask", ConditionName::Enumeration, WhenVariable::Mask, &optionInfo(OptionKey::Mask));
  add("form", ConditionName::Enumeration, WhenVariable::Mask, &optionInfo(OptionKey::Mask));
  add("lse", ConditionName::Enumeration, WhenVariable::Lse, &optionInfo(OptionKey::Lse));
  add("invariant", ConditionName::Enumeration, WhenVariable::Invariant, &optionInfo(OptionKey::Invariant));
  add("target", ConditionName::Target, WhenVariable::Target, nullptr);
  auto refuse = [&](StringRef name, const std::string &why) {
    scope.names[name.str()].kind = ConditionName::Refused;
    scope.names[name.str()].refusal = why;
  };
  if (hasHeadDimPair())
    refuse("head_dim", "head_dim is a pair here; say head_dim_qk or head_dim_v");
  for (StringRef key : optionNames(OptionBlock::Schedule))
    refuse(key, fmt::format("{} is a key of the schedule; a when sees problem keys and target", key.str()));
  for (StringRef name : {"batch", "heads", "kv_heads", "seq_q", "seq_kv", "sms"})
    refuse(name, fmt::format("{} is known at run time only; select can ask for it", name.str()));
  return scope;
}

std::unique_ptr<CheckedWhen> KernelAnalysis::checkWhen(const ast::When &when) {
  auto checked = std::make_unique<CheckedWhen>();
  checked->range = when.condition->range;
  checked->condition = compileCondition(*when.condition, whenScope(), diags);
  collectNames(*when.condition, [&](StringRef name) {
    checked->readsTarget |= name == "target";
    StringRef key = name.starts_with("head_dim") ? "head_dim" : name;
    if (const OptionInfo *option = findOption(OptionBlock::Problem, key))
      checked->reads |= keyBit(option->key);
  });
  checked->body = checkBody(when.body, when.lost);
  return checked;
}

} // namespace fagen
