// fagen: writes what a tuner found into schedules and select.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of each schedule and problem point, the studies whose problem select gives to it are its classes. Their candidates
// make a table of regrets, and the best decision list over it says which values to take: the last part's values replace
// those of the variant, each part before it becomes a schedule of its own with a line of select before the schedule's.

#include "fagen/Spec/Tuned.h"

#include "TunedThresholds.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace llvm;

namespace fagen {

std::string tunedSpecHash(StringRef text, StringRef target) {
  uint64_t value = 0xcbf29ce484222325; // FNV-1a
  for (StringRef part : {text, target})
    for (unsigned char letter : part)
      value = (value ^ letter) * 0x100000001b3;
  return fmt::format("{:016x}", value);
}

namespace {

class Tuning {
public:
  Tuning(KernelSpec &kernel, ArrayRef<TunedStudy> studies, SharedMeter &meter, Diagnostics &diags, TunedVeto veto)
      : kernel(kernel), studies(studies), meter(meter), diags(diags), veto(veto), written(kernel) {}

  void run() {
    for (size_t i = 0; i != written.variants.size(); ++i)
      if (const Variant &variant = written.variants[i]; variant.dispatched && !variant.schedule.implicit)
        tune(variant, i);
    placeSchedules();
  }

private:
  void tune(const Variant &variant, size_t index);
  std::optional<size_t> refusedChoice(const Variant &variant, const DecisionList &list,
                                      MutableArrayRef<TunedChoice> choices) const;
  void addPart(const Variant &variant, const DecisionList &list, size_t part, ArrayRef<TunedChoice> choices,
               ArrayRef<TunedClass> classes);
  void placeSchedules();

  std::string pointText(const Variant &variant, std::vector<SelectOp> &program) const;
  std::string scheduleName(const Variant &variant, size_t part) const;
  std::string costText(double cost) const;

  KernelSpec &kernel;
  ArrayRef<TunedStudy> studies;
  SharedMeter &meter;
  Diagnostics &diags;
  TunedVeto veto;
  const KernelSpec written; ///< as the spec has it
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

static std::string problemText(const TunedStudy &study) {
  return fmt::format("{},{},{},{},{},{}{}", study.batch, study.heads, study.kvHeads, study.seqQ, study.seqKv,
                     study.headDimQK, study.headDimV == study.headDimQK ? "" : fmt::format(",{}", study.headDimV));
}

std::string Tuning::costText(double cost) const {
  return cost > 0 ? fmt::format("{:.2f} {}", cost, written.least == "joules" ? "mJ" : "us") : "not measured";
}

static std::string machinesText(ArrayRef<const TunedStudy *> classes) {
  std::vector<std::string> machines;
  for (const TunedStudy *study : classes)
    if (std::string machine = fmt::format("{} (driver {})", study->gpu, study->driver);
        !is_contained(machines, machine))
      machines.push_back(machine);
  return fmt::format("{}", fmt::join(machines, ", "));
}

/// Of the choices that the list takes the first one that must not be taken. The spec's own values are the spec's
/// matter.
std::optional<size_t> Tuning::refusedChoice(const Variant &variant, const DecisionList &list,
                                            MutableArrayRef<TunedChoice> choices) const {
  for (const DecisionPart &part : list.parts) {
    TunedChoice &choice = choices[part.choice];
    if (!veto || choice.isWritten || choice.mayBeTaken)
      continue;
    Variant made = variant;
    made.schedule = choice.schedule;
    std::string why = veto(written, made);
    if (!why.empty()) {
      diags.warning(variant.location, fmt::format("tuned settings of {} are left out ({}): {}", variant.name,
                                                  differenceOf(choice.schedule, variant.schedule), why));
      return part.choice;
    }
    choice.mayBeTaken = true;
  }
  return std::nullopt;
}

void Tuning::tune(const Variant &variant, size_t index) {
  std::vector<TunedClass> classes = tunedClasses(written, variant, studies);
  if (classes.empty())
    return;
  std::vector<TunedChoice> choices = tunedChoices(variant, classes, meter, diags);
  TunedDecision decision = decideTuned(choices, classes);
  while (std::optional<size_t> refused = refusedChoice(variant, decision.list, choices)) {
    choices.erase(choices.begin() + *refused);
    decision = decideTuned(choices, classes);
  }
  const auto &[list, asWritten] = decision;
  if (list.parts.empty())
    return; // nothing was measured on all classes that a part would have
  const TunedChoice &last = choices[list.parts.back().choice];
  Variant &tuned = kernel.variants[index];
  tuned.schedule = last.schedule;
  tuned.evidence = {fmt::format("tuned: {}; worst regret {:.3f} over {} problems on {}",
                                differenceOf(last.schedule, variant.schedule), list.worst, classes.size(),
                                machinesText(classes)),
                    std::isinf(asWritten) ? "the spec's values were not measured on all of them"
                                          : fmt::format("the spec's values alone: worst regret {:.3f}", asWritten)};
  for (size_t problem : list.parts.back().problems)
    tuned.evidence.push_back(fmt::format("{}: {}, the spec's values {}", problemText(*classes[problem]),
                                         costText(last.costs[problem]), costText(choices.front().costs[problem])));
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

/// " && head_dim == 64 && mask == none", and its program after what it is given: only keys of which the kernel has
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
  add("mask", SelectVariable::Mask, maskText(problem), [](const Problem &p) { return int64_t(maskNumber(p)); });
  return text;
}

void Tuning::addPart(const Variant &variant, const DecisionList &list, size_t part, ArrayRef<TunedChoice> choices,
                     ArrayRef<TunedClass> classes) {
  const DecisionPart &here = list.parts[part];
  const ThresholdFigure &figure = thresholdFigures()[here.figure];
  const TunedChoice &choice = choices[here.choice];
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
  // The problems nearest to the threshold, and what takes the one beyond it.
  auto of = [&](size_t problem) { return figure.of(*classes[problem]); };
  size_t below = *llvm::max_element(here.problems, [&](size_t a, size_t b) { return of(a) < of(b); });
  size_t above = list.parts[part + 1].problems.front(), beyond = part + 1;
  for (size_t later = part + 1; later < list.parts.size(); ++later)
    for (size_t problem : list.parts[later].problems)
      if (of(problem) < of(above)) {
        above = problem;
        beyond = later;
      }
  const TunedChoice &other = choices[list.parts[beyond].choice];
  auto tell = [&](const char *side, size_t problem) {
    line.line.evidence.push_back(fmt::format("{} {}: {} here, {} beyond the threshold", side,
                                             problemText(*classes[problem]), costText(choice.costs[problem]),
                                             costText(other.costs[problem])));
  };
  line.line.evidence.push_back(fmt::format("tuned: {}; worst regret {:.3f} over {} problems on {}",
                                           differenceOf(choice.schedule, variant.schedule), list.worst, classes.size(),
                                           machinesText(classes)));
  tell("below:", below);
  tell("above:", above);
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

bool applyTuned(KernelSpec &kernel, ArrayRef<TunedStudy> studies, SharedMeter &meter, Diagnostics &diags,
                TunedVeto veto) {
  if (none_of(studies, [&](const TunedStudy &study) { return study.kernel == kernel.name; }))
    return false;
  if (none_of(studies,
              [&](const TunedStudy &study) { return study.kernel == kernel.name && study.measure == kernel.least; }))
    diags.warning(
        kernel.location,
        fmt::format("select wants the least {} of {}, which the results do not have; fagen-run tune --least {} "
                    "measures it",
                    kernel.least, kernel.name, kernel.least));
  Tuning(kernel, studies, meter, diags, veto).run();
  return true;
}

} // namespace fagen
