// fagen: measured times into schedules and select.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of each schedule and problem point, the studies whose problem select gives to it are its classes. Their candidates
// make a table of regrets, and the best decision list over it says which values to take: the last part's values replace
// those of the variant, each part before it becomes a schedule of its own with a line of select before the schedule's.

#include "fagen/Spec/Tuned.h"

#include "Checks.h"
#include "DecisionList.h"
#include "fagen/Spec/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

using namespace llvm;

namespace fagen {

static constexpr size_t kMostParts = 3;
static constexpr double kWorthAKernel = 0.01; ///< of worst regret
static constexpr double kNoise = 0.005;       ///< below this the spec's own values stay

std::string tunedSpecHash(StringRef text, StringRef target) {
  uint64_t value = 0xcbf29ce484222325; // FNV-1a
  for (StringRef part : {text, target})
    for (unsigned char letter : part)
      value = (value ^ letter) * 0x100000001b3;
  return fmt::format("{:016x}", value);
}

//===-- Settings
//---------------------------------------------------------------------------------------------------===//

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

namespace {

/// One set of values that the compiler takes.
struct Choice {
  Schedule schedule;
  bool isWritten = false;           ///< what the spec has
  std::vector<double> microseconds; ///< by class; 0: not measured
};

class Tuning {
public:
  Tuning(KernelSpec &kernel, ArrayRef<TunedStudy> studies, Diagnostics &diags)
      : kernel(kernel), studies(studies), diags(diags), written(kernel) {}

  void run() {
    for (size_t i = 0; i != written.variants.size(); ++i)
      if (const Variant &variant = written.variants[i]; variant.dispatched && !variant.schedule.implicit)
        tune(variant, i);
    placeSchedules();
  }

private:
  using Class = const TunedStudy *;

  // Tuned.cpp's story, in this order.
  std::vector<Class> classesOf(const Variant &variant) const;
  std::optional<unsigned> selected(const TunedStudy &study) const;
  std::vector<Choice> choicesOf(const Variant &variant, ArrayRef<Class> classes);
  std::optional<Schedule> makeSchedule(const Variant &variant, const std::map<std::string, std::string> &settings);
  void tune(const Variant &variant, size_t index);
  void addPart(const Variant &variant, const DecisionList &list, size_t part, ArrayRef<Choice> choices,
               ArrayRef<Class> classes);
  void placeSchedules();

  bool isAbout(const TunedStudy &study, const Variant &variant) const;
  std::string pointText(const Variant &variant, std::vector<SelectOp> &program) const;
  std::string scheduleName(const Variant &variant, size_t part) const;

  KernelSpec &kernel;
  ArrayRef<TunedStudy> studies;
  Diagnostics &diags;
  const KernelSpec written; ///< as the spec has it
  unsigned leftOut = 0;     ///< settings of the variant at hand that are not taken
  std::string whyLeftOut;   ///< the first of them
  struct NewSchedule {
    std::string name;
    std::vector<Variant> variants;
  };
  std::vector<NewSchedule> added;
  struct NewLine {
    SelectLine line;     ///< without the condition of the line that it stands before
    unsigned base, made; ///< schedule that it stands before, index in `added`
  };
  std::vector<NewLine> lines;
};

} // namespace

//===-- Classes
//----------------------------------------------------------------------------------------------------===//

bool Tuning::isAbout(const TunedStudy &study, const Variant &variant) const {
  const Problem &problem = variant.problem;
  return study.kernel == written.name && study.target == variant.target->name &&
         study.dtype == toString(problem.dtype) && study.accum == toString(problem.accum) &&
         study.mask == toString(problem.mask) && study.lse == problem.lse && study.headDimQK == problem.headDimQK &&
         study.headDimV == problem.headDimV;
}

/// The schedule that select gives to the study's problem.
std::optional<unsigned> Tuning::selected(const TunedStudy &study) const {
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
      return optionInfo(OptionKey::Mask).findValue(study.mask)->number;
    }
    return 0;
  };
  for (const SelectLine &line : written.select)
    if (line.condition.empty() || evaluate(line.condition, variable).value_or(0) != 0)
      return line.scheduleIndex;
  return std::nullopt;
}

/// Of two studies of one problem on one GPU the later one counts.
std::vector<Tuning::Class> Tuning::classesOf(const Variant &variant) const {
  std::vector<Class> classes;
  for (const TunedStudy &study : studies) {
    if (!isAbout(study, variant) || study.times.empty() || selected(study) != variant.scheduleIndex)
      continue;
    erase_if(classes, [&](Class earlier) {
      return earlier->gpu == study.gpu && earlier->batch == study.batch && earlier->heads == study.heads &&
             earlier->kvHeads == study.kvHeads && earlier->seqQ == study.seqQ && earlier->seqKv == study.seqKv;
    });
    classes.push_back(&study);
  }
  return classes;
}

//===-- Choices
//----------------------------------------------------------------------------------------------------===//

std::optional<Schedule> Tuning::makeSchedule(const Variant &variant,
                                             const std::map<std::string, std::string> &settings) {
  Schedule schedule = variant.schedule;
  std::string problem;
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
  if (problem.empty())
    return schedule;
  if (leftOut++ == 0)
    whyLeftOut = problem;
  return std::nullopt;
}

static std::string textOf(const Schedule &schedule) {
  std::string text;
  for (const OptionInfo &option : allOptions())
    if (option.block == OptionBlock::Schedule)
      text += option.name.str() + " = " + toText(option, getKey(schedule, option.key)) + "; ";
  return text;
}

/// What two schedules have in other values: "tile = 64 x 64, warps = 8".
static std::string differenceOf(const Schedule &schedule, const Schedule &from) {
  std::vector<std::string> parts;
  for (const OptionInfo &option : allOptions())
    if (option.block == OptionBlock::Schedule && !(getKey(schedule, option.key) == getKey(from, option.key)))
      parts.push_back(fmt::format("{} = {}", option.name.str(), toText(option, getKey(schedule, option.key))));
  return parts.empty() ? "the spec's values" : fmt::format("{}", fmt::join(parts, ", "));
}

/// The spec's own values first.
std::vector<Choice> Tuning::choicesOf(const Variant &variant, ArrayRef<Class> classes) {
  std::map<std::map<std::string, std::string>, std::vector<double>> bySettings;
  for (auto [index, study] : enumerate(classes))
    for (const TunedTime &time : study->times) {
      std::vector<double> &times = bySettings[time.settings];
      times.resize(classes.size());
      times[index] = time.microseconds;
    }
  leftOut = 0;
  std::vector<Choice> choices = {{variant.schedule, true, std::vector<double>(classes.size())}};
  for (const auto &[settings, times] : bySettings) {
    std::optional<Schedule> schedule = makeSchedule(variant, settings);
    if (!schedule)
      continue;
    if (textOf(*schedule) == textOf(variant.schedule))
      choices.front().microseconds = times;
    else
      choices.push_back({*schedule, false, times});
  }
  if (leftOut)
    diags.warning(variant.location, fmt::format("{} tuned settings of {} are left out, the first because {}", leftOut,
                                                variant.name, whyLeftOut));
  return choices;
}

//===-- Parts
//------------------------------------------------------------------------------------------------------===//

namespace {

/// What thresholds can be on.
struct Figure {
  const char *text;
  std::vector<SelectOp> program;
  int64_t (*of)(const TunedStudy &study);
};

} // namespace

static const std::vector<Figure> &figures() {
  auto variable = [](SelectVariable which) { return SelectOp{SelectOp::Variable, int64_t(which)}; };
  static const std::vector<Figure> all = {
      {"seq_q", {variable(SelectVariable::SeqQ)}, [](const TunedStudy &study) { return study.seqQ; }},
      {"seq_kv", {variable(SelectVariable::SeqKv)}, [](const TunedStudy &study) { return study.seqKv; }},
      {"batch * heads * seq_q",
       {variable(SelectVariable::Batch),
        variable(SelectVariable::Heads),
        {SelectOp::Mul},
        variable(SelectVariable::SeqQ),
        {SelectOp::Mul}},
       [](const TunedStudy &study) { return study.batch * study.heads * study.seqQ; }}};
  return all;
}

/// `noise`: what the spec's own values are forgiven.
static RegretTable regretsOf(ArrayRef<Choice> choices, ArrayRef<const TunedStudy *> classes, double noise) {
  RegretTable table;
  for (const Choice &choice : choices) {
    std::vector<double> &row = table.regret.emplace_back();
    for (size_t i = 0; i != classes.size(); ++i) {
      double best = std::numeric_limits<double>::infinity();
      for (const Choice &other : choices)
        if (other.microseconds[i] > 0)
          best = std::min(best, other.microseconds[i]);
      double regret =
          choice.microseconds[i] > 0 ? choice.microseconds[i] / best : std::numeric_limits<double>::infinity();
      row.push_back(choice.isWritten ? std::max(1.0, regret - noise) : regret);
    }
  }
  for (const Figure &figure : figures()) {
    std::vector<int64_t> &row = table.figures.emplace_back();
    for (const TunedStudy *study : classes)
      row.push_back(figure.of(*study));
  }
  return table;
}

static std::string problemText(const TunedStudy &study) {
  return fmt::format("{},{},{},{},{},{}{}", study.batch, study.heads, study.kvHeads, study.seqQ, study.seqKv,
                     study.headDimQK, study.headDimV == study.headDimQK ? "" : fmt::format(",{}", study.headDimV));
}

static std::string microsecondsText(double time) { return time > 0 ? fmt::format("{:.2f} us", time) : "not measured"; }

static std::string machinesText(ArrayRef<const TunedStudy *> classes) {
  std::vector<std::string> machines;
  for (const TunedStudy *study : classes)
    if (std::string machine = fmt::format("{} (driver {})", study->gpu, study->driver);
        !is_contained(machines, machine))
      machines.push_back(machine);
  return fmt::format("{}", fmt::join(machines, ", "));
}

static double worstOf(const RegretTable &table, size_t choice) {
  return *std::max_element(table.regret[choice].begin(), table.regret[choice].end());
}

void Tuning::tune(const Variant &variant, size_t index) {
  std::vector<Class> classes = classesOf(variant);
  if (classes.empty())
    return;
  std::vector<Choice> choices = choicesOf(variant, classes);
  DecisionList list = decide(regretsOf(choices, classes, kNoise), std::min(kMostParts, classes.size()), kWorthAKernel);
  if (list.parts.empty())
    return; // nothing was measured on all classes that a part would have
  RegretTable table = regretsOf(choices, classes, 0);
  list.worst = 0;
  for (const DecisionPart &part : list.parts)
    for (size_t problem : part.problems)
      list.worst = std::max(list.worst, table.regret[part.choice][problem]);
  const Choice &last = choices[list.parts.back().choice];
  Variant &tuned = kernel.variants[index];
  tuned.schedule = last.schedule;
  double asWritten = worstOf(table, 0);
  tuned.evidence = {fmt::format("tuned: {}; worst regret {:.3f} over {} problems on {}",
                                differenceOf(last.schedule, variant.schedule), list.worst, classes.size(),
                                machinesText(classes)),
                    std::isinf(asWritten) ? "the spec's values were not measured on all of them"
                                          : fmt::format("the spec's values alone: worst regret {:.3f}", asWritten)};
  for (size_t problem : list.parts.back().problems)
    tuned.evidence.push_back(fmt::format("{}: {}, the spec's values {}", problemText(*classes[problem]),
                                         microsecondsText(last.microseconds[problem]),
                                         microsecondsText(choices.front().microseconds[problem])));
  for (size_t part = 0; part + 1 < list.parts.size(); ++part)
    addPart(variant, list, part, choices, classes);
}

std::string Tuning::scheduleName(const Variant &variant, size_t part) const {
  std::string name = variant.schedule.name + (variant.schedule.name.empty() ? "tuned" : "_tuned");
  name += std::to_string(part + 1);
  while (is_contained(written.scheduleNames, name))
    name += "_";
  return name;
}

/// " && head_dim == 64 && mask == none", and its program behind what it is given: only keys of which the kernel has
/// several values.
std::string Tuning::pointText(const Variant &variant, std::vector<SelectOp> &program) const {
  std::string text;
  auto add = [&](const std::string &name, SelectVariable which, const std::string &value,
                 function_ref<int64_t(const Problem &)> of) {
    if (all_of(written.variants, [&](const Variant &other) { return of(other.problem) == of(variant.problem); }))
      return;
    text += fmt::format(" && {} == {}", name, value);
    program.push_back({SelectOp::Variable, int64_t(which)});
    program.push_back({SelectOp::Constant, of(variant.problem)});
    program.push_back({SelectOp::Eq});
    program.push_back({SelectOp::And});
  };
  const Problem &problem = variant.problem;
  bool pairs =
      any_of(written.variants, [](const Variant &other) { return other.problem.headDimQK != other.problem.headDimV; });
  add(pairs ? "head_dim_qk" : "head_dim", SelectVariable::HeadDimQK, std::to_string(problem.headDimQK),
      [](const Problem &p) { return int64_t(p.headDimQK); });
  if (pairs)
    add("head_dim_v", SelectVariable::HeadDimV, std::to_string(problem.headDimV),
        [](const Problem &p) { return int64_t(p.headDimV); });
  add("dtype", SelectVariable::DType, toString(problem.dtype).str(), [](const Problem &p) { return int64_t(p.dtype); });
  add("mask", SelectVariable::Mask, toString(problem.mask).str(), [](const Problem &p) { return int64_t(p.mask); });
  return text;
}

void Tuning::addPart(const Variant &variant, const DecisionList &list, size_t part, ArrayRef<Choice> choices,
                     ArrayRef<Class> classes) {
  const DecisionPart &here = list.parts[part], &next = list.parts[part + 1];
  const Figure &figure = figures()[list.figure];
  const Choice &choice = choices[here.choice], &other = choices[next.choice];
  std::string name = scheduleName(variant, part);
  auto place = find_if(added, [&](const NewSchedule &schedule) { return schedule.name == name; });
  if (place == added.end())
    place = added.insert(added.end(), {name, {}});

  NewLine line{{}, variant.scheduleIndex, unsigned(place - added.begin())};
  line.line.location = variant.location;
  line.line.condition = figure.program;
  line.line.condition.push_back({SelectOp::Constant, here.limit});
  line.line.condition.push_back({SelectOp::Le});
  line.line.text = fmt::format("{} <= {}{}", figure.text, here.limit, pointText(variant, line.line.condition));
  auto tell = [&](const char *side, const DecisionPart &of, bool last) {
    auto byFigure = [&](size_t a, size_t b) { return figure.of(*classes[a]) < figure.of(*classes[b]); };
    size_t problem = last ? *std::max_element(of.problems.begin(), of.problems.end(), byFigure)
                          : *std::min_element(of.problems.begin(), of.problems.end(), byFigure);
    line.line.evidence.push_back(
        fmt::format("{} {}: {} here, {} beyond the threshold", side, problemText(*classes[problem]),
                    microsecondsText(choice.microseconds[problem]), microsecondsText(other.microseconds[problem])));
  };
  line.line.evidence.push_back(fmt::format("tuned: {}; worst regret {:.3f} over {} problems on {}",
                                           differenceOf(choice.schedule, variant.schedule), list.worst, classes.size(),
                                           machinesText(classes)));
  tell("below:", here, true);
  tell("above:", next, false);
  lines.push_back(line);

  Variant made = variant;
  made.schedule = choice.schedule;
  made.schedule.name = name;
  made.tuneChoices.clear();
  made.evidence = line.line.evidence;
  std::string prefix = written.name + (variant.schedule.name.empty() ? "" : "_" + variant.schedule.name);
  made.name = written.name + "_" + name + variant.name.substr(prefix.size());
  made.symbol = fmt::format("fagen_{}_{}", made.name, variant.target->name.str());
  place->variants.push_back(made);
}

/// New schedules stand before the implicit one, their rows before its rows, their lines before those of the schedule
/// that they take problems from.
void Tuning::placeSchedules() {
  unsigned implicit = written.scheduleNames.size() - 1;
  for (Variant &variant : kernel.variants)
    if (variant.schedule.implicit)
      variant.scheduleIndex += added.size();
  auto row = find_if(kernel.variants, [](const Variant &variant) { return variant.schedule.implicit; });
  size_t position = row - kernel.variants.begin();
  for (size_t i = 0; i != added.size(); ++i) {
    kernel.scheduleNames.insert(kernel.scheduleNames.end() - 1, added[i].name);
    for (Variant &variant : added[i].variants) {
      variant.scheduleIndex = implicit + i;
      kernel.variants.insert(kernel.variants.begin() + position++, variant);
    }
  }
  kernel.select.clear();
  for (const SelectLine &old : written.select) {
    for (const NewLine &fresh : lines) {
      if (fresh.base != old.scheduleIndex)
        continue;
      SelectLine line = fresh.line;
      line.scheduleIndex = implicit + fresh.made;
      if (!old.condition.empty()) {
        line.condition.insert(line.condition.end(), old.condition.begin(), old.condition.end());
        line.condition.push_back({SelectOp::And});
        line.text += fmt::format(" && ({})", old.text);
      }
      kernel.select.push_back(line);
    }
    kernel.select.push_back(old);
  }
}

bool applyTuned(KernelSpec &kernel, ArrayRef<TunedStudy> studies, Diagnostics &diags) {
  if (none_of(studies, [&](const TunedStudy &study) { return study.kernel == kernel.name; }))
    return false;
  Tuning(kernel, studies, diags).run();
  return true;
}

} // namespace fagen
