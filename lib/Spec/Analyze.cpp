// fagen: the front end's door: a .fa file in, a checked SpecFile out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Spec/Analyze.h"

#include "Hints.h"
#include "KernelAnalysis.h"
#include "fagen/Form/Check.h"
#include "fagen/Parse/Parser.h"
#include "fagen/Support/CppKeywords.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

std::string textOf(SMRange range) {
  StringRef source(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
  std::string text;
  bool space = false;
  while (!source.empty()) {
    size_t comment = source.starts_with("//") ? source.find('\n') : source.starts_with("/*") ? source.find("*/", 2) : 0;
    size_t skipped = comment == 0 ? isSpace(source[0]) : comment == StringRef::npos ? source.size() : comment + 2;
    if (source.starts_with("//") && comment != StringRef::npos)
      skipped = comment;
    if (skipped == 0) {
      text += (space && !text.empty() ? " " : "") + source.take_front(1).str();
      skipped = 1;
      space = false;
    } else {
      space = true;
    }
    source = source.drop_front(skipped);
  }
  return text;
}

KernelSpec KernelAnalysis::run() {
  const unsigned before = diags.errorCount();
  spec.name = kernel.name.text;
  spec.location = diags.locate(kernel.name.range.Start);
  checkBlockCounts();
  checkProblem();
  checkSchedules();
  points = expandProblem();
  checkSelect();
  checkClaim();
  for (const ProblemPoint &point : points)
    for (const TargetInfo *target : targets)
      for (unsigned index = 0; index != schedules.size(); ++index)
        expandSchedule(index, point, *target);
  if (diags.errorCount() == before)
    warnNeverTaken();
  addUnaligned();
  checkShared();
  takeTuneChoices();
  checkGates();
  spec.forms = forms.uses;
  return std::move(spec);
}

/// The targets that the kernels are built for.
static std::vector<const TargetInfo *> checkTargets(const ast::File &file, const AnalyzeOptions &options, SMRange begin,
                                                    Diagnostics &diags) {
  std::vector<ast::Name> names = file.targets;
  if (!options.targets.empty()) {
    names.clear();
    for (const std::string &target : options.targets)
      names.push_back({target, SMRange()}); // no place of the file says it
  }
  std::vector<StringRef> known;
  for (const TargetInfo &target : allTargets())
    known.push_back(target.name);
  std::vector<const TargetInfo *> targets;
  for (const ast::Name &name : names) {
    const TargetInfo *target = lookupTarget(name.text);
    if (!target) {
      const StringRef near = nearestWord(name.text, known);
      const std::string hint = hintForTarget(name.text);
      diags.error(name.range,
                  fmt::format("{}unknown target '{}'; {}", options.targets.empty() ? "" : "--target: ", name.text,
                              !hint.empty()  ? hint
                              : near.empty() ? "it is " + alternatives(known)
                                             : fmt::format("did you mean '{}'?", near.str())));
    } else if (is_contained(targets, target)) {
      diags.error(name.range, "target " + name.text + " is listed twice; take one out");
    } else {
      targets.push_back(target);
    }
  }
  if (names.empty() && !file.hasLostTargets)
    diags.error(begin, "the file names no target: begin it with, for example, 'target sm_89;', or give --target");
  return targets;
}

/// Stands for a target that was reported: it admits everything, so that the other checks go on.
static constexpr TargetInfo kUnknownTarget = {.name = "unknown",
                                              .sharedPerBlock = ~0u,
                                              .maxRegistersPerThread = ~0u,
                                              .features = ~FeatureMask(0),
                                              .policy = {.groups = 4}};

static void checkKernelNames(const ast::File &file, Diagnostics &diags) {
  StringMap<SMRange> seen;
  for (const ast::Kernel &kernel : file.kernels) {
    if (isCppKeyword(kernel.name.text))
      diags.error(kernel.name.range, "kernel name '" + kernel.name.text + "' is a keyword of C++; take another");
    auto [earlier, inserted] = seen.insert({StringRef(kernel.name.text).lower(), kernel.name.range});
    if (inserted)
      continue;
    diags.error(kernel.name.range, "kernel name '" + kernel.name.text + "' is taken, ignoring case; take another");
    diags.note(earlier->second, "by this kernel");
  }
}

static std::vector<FileForm> checkForms(const ast::File &file, Diagnostics &diags) {
  std::vector<FileForm> forms;
  StringMap<SMRange> seen;
  for (const ast::Form &form : file.forms) {
    if (optionInfo(OptionKey::Mask).findValue(form.name.text))
      diags.error(form.name.range, "form '" + form.name.text + "' is predefined; take another name");
    auto [earlier, inserted] = seen.insert({form.name.text, form.name.range});
    if (!inserted) {
      diags.error(form.name.range, "form name '" + form.name.text + "' is taken; take another");
      diags.note(earlier->second, "by this form");
    }
    std::optional<form::Form> checked = form::checkForm(form, diags);
    forms.push_back({form.name.text, checked ? std::make_shared<form::Form>(std::move(*checked)) : nullptr});
  }
  return forms;
}

/// Two variants with one symbol could not be linked together: a_b of kernel a, and of kernel a_b.
static void checkSymbols(ArrayRef<KernelSpec> kernels, StringMap<Location> &seen, Diagnostics &diags) {
  for (const KernelSpec &kernel : kernels) {
    for (const Variant &variant : kernel.variants) {
      auto [earlier, inserted] = seen.insert({variant.symbol, kernel.location});
      if (inserted)
        continue;
      diags.error(kernel.location, "two variants have the name " + variant.name + "; give a kernel another name");
      diags.note(earlier->second, "the other one is of this kernel");
      break;
    }
  }
}

std::optional<SpecFile> analyzeSpec(SourceMgr &sources, unsigned bufferId, Diagnostics &diags,
                                    const AnalyzeOptions &options) {
  const MemoryBuffer &buffer = *sources.getMemoryBuffer(bufferId);
  unsigned before = diags.errorCount();
  SpecFile result;
  {
    Diagnostics::Sorted sorted(diags);
    ast::File file = parseSpec(buffer.getBuffer(), diags);
    SMLoc begin = SMLoc::getFromPointer(buffer.getBufferStart());
    result.baseName = sys::path::filename(buffer.getBufferIdentifier()).str();
    result.targets = checkTargets(file, options, SMRange(begin, begin), diags);
    if (result.targets.empty())
      result.targets.push_back(&kUnknownTarget);
    if (file.kernels.empty() && diags.errorCount() == before)
      diags.error(SMRange(begin, begin),
                  "the file has no kernel; it needs one: kernel NAME { problem { ... } schedule { ... } }");
    checkKernelNames(file, diags);
    const std::vector<FileForm> forms = checkForms(file, diags);
    for (const FileForm &each : forms)
      if (each.form)
        result.forms.push_back(each.form);
    for (const ast::Kernel &kernel : file.kernels)
      result.kernels.push_back(KernelAnalysis(kernel, forms, result.targets, options, diags).run());
    if (diags.errorCount() == before) {
      StringMap<Location> seen;
      checkSymbols(result.kernels, seen, diags);
    }
  }
  if (diags.errorCount() != before)
    return std::nullopt;
  return result;
}

bool checkDistinct(ArrayRef<SpecFile> files, Diagnostics &diags) {
  unsigned before = diags.errorCount();
  StringMap<Location> names, symbols;
  for (const SpecFile &file : files) {
    for (const KernelSpec &kernel : file.kernels) {
      auto [earlier, inserted] = names.insert({StringRef(kernel.name).lower(), kernel.location});
      if (inserted)
        continue;
      diags.error(kernel.location, "kernel name '" + kernel.name + "' is taken, ignoring case; take another");
      diags.note(earlier->second, "by this kernel");
    }
    if (diags.errorCount() == before)
      checkSymbols(file.kernels, symbols, diags);
  }
  return diags.errorCount() == before;
}

} // namespace fagen
