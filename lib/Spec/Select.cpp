// fagen: select and claim: which schedule a run-time problem takes, and which problems the kernel was made for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelAnalysis.h"

#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

// Problem keys are constants where every point has the same value; else they are asked for at run time, if the table
// has them. `get` reads the key from a point.
void KernelAnalysis::addKeyToScope(ConditionScope &scope, OptionKey key, const std::string &name,
                                   std::optional<int64_t> variable, function_ref<int64_t(const Problem &)> get) const {
  const OptionInfo &option = optionInfo(key);
  ConditionName &entry = scope.names[name];
  bool isNumber = option.type == OptionType::HeadDim;
  entry.kind = isNumber ? ConditionName::Number : ConditionName::Enumeration;
  entry.option = isNumber ? nullptr : &option;
  bool isKnown =
      !points.empty() && none_of(points, [&](const ProblemPoint &point) { return (point.unknown & keyBit(key)) != 0; });
  bool isSame = isKnown && all_of(points, [&](const ProblemPoint &point) {
                  return get(point.problem) == get(points.front().problem);
                });
  if (isSame)
    entry.constant = get(points.front().problem);
  else if (variable || !isKnown)
    entry.variable = variable.value_or(0); // an unknown value was reported, so that no program will ask for it
  else {
    entry.kind = ConditionName::Refused;
    entry.refusal = fmt::format("{} has several values here, and dispatch does not know it", name);
  }
}

ConditionScope KernelAnalysis::selectScope() const {
  ConditionScope scope;
  scope.forms = &forms;
  static constexpr std::pair<const char *, SelectVariable> kRunTime[] = {
      {"batch", SelectVariable::Batch}, {"heads", SelectVariable::Heads},  {"kv_heads", SelectVariable::KvHeads},
      {"seq_q", SelectVariable::SeqQ},  {"seq_kv", SelectVariable::SeqKv}, {"sms", SelectVariable::Sms},
  };
  for (const auto &[name, variable] : kRunTime)
    scope.names[name].variable = int64_t(variable);
  addKeyToScope(scope, OptionKey::Pass, "pass", std::nullopt, [](const Problem &p) { return int64_t(p.pass); });
  addKeyToScope(scope, OptionKey::DType, "dtype", int64_t(SelectVariable::DType),
                [](const Problem &p) { return int64_t(p.dtype); });
  addKeyToScope(scope, OptionKey::KvDType, "kv_dtype", std::nullopt,
                [](const Problem &p) { return int64_t(p.kvDType); });
  addKeyToScope(scope, OptionKey::Accum, "accum", std::nullopt, [](const Problem &p) { return int64_t(p.accum); });
  addKeyToScope(scope, OptionKey::HeadDim, "head_dim", int64_t(SelectVariable::HeadDimQK),
                [](const Problem &p) { return int64_t(p.headDimQK); });
  addKeyToScope(scope, OptionKey::HeadDim, "head_dim_qk", int64_t(SelectVariable::HeadDimQK),
                [](const Problem &p) { return int64_t(p.headDimQK); });
  addKeyToScope(scope, OptionKey::HeadDim, "head_dim_v", int64_t(SelectVariable::HeadDimV),
                [](const Problem &p) { return int64_t(p.headDimV); });
  for (const char *name : {"mask", "form"})
    addKeyToScope(scope, OptionKey::Mask, name, int64_t(SelectVariable::Mask),
                  [](const Problem &p) { return int64_t(maskNumber(p)); });
  addKeyToScope(scope, OptionKey::Lse, "lse", std::nullopt, [](const Problem &p) { return int64_t(p.lse); });
  addKeyToScope(scope, OptionKey::Invariant, "invariant", std::nullopt,
                [](const Problem &p) { return int64_t(p.invariant); });
  auto refuse = [&](StringRef name, const std::string &why) {
    scope.names[name.str()].kind = ConditionName::Refused;
    scope.names[name.str()].refusal = why;
  };
  if (hasHeadDimPair())
    refuse("head_dim", "head_dim is a pair here; say head_dim_qk or head_dim_v");
  if (any_of(points, [](const ProblemPoint &point) { return point.problem.invariant; }))
    for (StringRef name : {"batch", "heads", "kv_heads", "sms"})
      refuse(name,
             fmt::format("with invariant = on the schedule may not depend on {}; select can ask for seq_q, seq_kv "
                         "and the problem's keys",
                         name.str()));
  refuse("target", "select works on every target alike; a schedule's when can ask for the target");
  return scope;
}

std::optional<unsigned> KernelAnalysis::findSchedule(const ast::Name &name) {
  for (auto [index, schedule] : enumerate(schedules))
    if (!schedule.name.empty() && schedule.name == name.text)
      return index;
  std::vector<StringRef> names;
  for (const CheckedSchedule &schedule : schedules)
    if (!schedule.name.empty())
      names.push_back(schedule.name);
  const bool areDistinct = std::set<StringRef>(names.begin(), names.end()).size() == names.size();
  if (names.empty() || kernel.hasLostBlocks || !areDistinct)
    return std::nullopt; // reported: they have no names, one was not understood, or two have one name
  std::string message = fmt::format("unknown schedule '{}'", name.text);
  if (StringRef near = nearestWord(name.text, names); !near.empty())
    message += fmt::format("; did you mean '{}'?", near.str());
  else
    message += "; there is " + alternatives(names);
  diags.error(name.range, message);
  return std::nullopt;
}

void KernelAnalysis::checkSelectLine(const ast::SelectLine &line, const ConditionScope &scope) {
  SelectLine checked;
  checked.location = diags.locate(line.range.Start);
  checked.text = line.condition ? textOf(line.condition->range) : "otherwise";
  std::optional<unsigned> index = findSchedule(line.schedule);
  std::optional<Program> condition;
  if (line.condition)
    condition = compileCondition(*line.condition, scope, diags);
  if (index && !line.condition)
    fallbackSchedule = *index;
  if (!index || (line.condition && !condition))
    return;
  if (condition && condition->size() == 1 && condition->front().kind == SelectOp::Constant)
    diags.warning(line.range, condition->front().value != 0
                                  ? "this condition is always true; lines after it are never read"
                                  : "this condition is never true; the line chooses nothing");
  checked.scheduleIndex = *index;
  if (condition)
    checked.condition = std::move(*condition);
  spec.select.push_back(std::move(checked));
}

void KernelAnalysis::warnUnselected() {
  for (const CheckedSchedule &schedule : schedules) {
    if (none_of(spec.select,
                [&](const SelectLine &line) { return schedules[line.scheduleIndex].name == schedule.name; }))
      diags.warning(schedule.range,
                    "no line of select chooses schedule " + schedule.name + "; add a line, or take the schedule out");
  }
}

void KernelAnalysis::checkLeast(const ast::Name &what) {
  static constexpr StringLiteral kMeasures[] = {"time", "joules"};
  if (is_contained(kMeasures, what.text)) {
    spec.least = what.text;
    return;
  }
  const StringRef near = nearestWord(what.text, {"time", "joules"});
  diags.error(what.range,
              fmt::format("select cannot take the least '{}'{}", what.text,
                          near.empty() ? "; it is time or joules" : fmt::format("; did you mean '{}'?", near.str())));
}

void KernelAnalysis::checkSelect() {
  if (kernel.selects.empty()) {
    if (kernel.hasLostBlocks)
      return;
    if (schedules.size() > 1) {
      diags.error(schedules[1].range, "two schedules need a select that says when each is taken");
      return;
    }
    SelectLine line;
    line.text = "otherwise";
    line.location = spec.location;
    spec.select.push_back(std::move(line));
    return;
  }
  const ast::Select &select = kernel.selects.front();
  if (select.least)
    checkLeast(*select.least);
  ConditionScope scope = selectScope();
  bool isOver = false;
  unsigned before = diags.errorCount();
  for (const CheckedSchedule &schedule : schedules)
    if (schedule.name.empty())
      diags.error(schedule.range, "this schedule needs a name: there is a select, which chooses by name");
  for (const ast::SelectLine &line : select.lines) {
    if (isOver)
      diags.error(line.range, "otherwise is the last line of a select");
    isOver |= !line.condition;
    checkSelectLine(line, scope);
  }
  if (!isOver && !select.isDamaged)
    diags.error(select.range,
                fmt::format("select needs a last line 'otherwise : {};'",
                            schedules.empty() || schedules[0].name.empty() ? "schedule" : schedules[0].name));
  if (diags.errorCount() == before && !select.isDamaged)
    warnUnselected();
}

void KernelAnalysis::checkClaim() {
  if (kernel.claims.empty())
    return;
  const ast::Claim &claim = kernel.claims.front();
  std::optional<Program> condition = compileCondition(*claim.condition, selectScope(), diags);
  if (!condition)
    return;
  if (condition->size() == 1 && condition->front().kind == SelectOp::Constant)
    diags.warning(claim.range, condition->front().value != 0 ? "every problem is claimed" : "no problem is claimed");
  spec.claim = {std::move(*condition), textOf(claim.condition->range)};
}

} // namespace fagen
