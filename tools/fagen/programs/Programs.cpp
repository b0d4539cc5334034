// fagen: programs of textual IR on the command line: rows of a kernel set that are called by their names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Programs.h"

#include "fagen/Emit/BuildPlan.h"
#include "fagen/Emit/Emittable.h"
#include "fagen/Emit/Manifest.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <fagen/table.h>

namespace fagen {

void Programs::read(llvm::ArrayRef<std::string> paths, Diagnostics &diags) {
  for (const std::string &path : paths)
    if (TextualProgram text = readProgram(path, diags); text.program)
      files.push_back({path, std::move(text)});
}

std::optional<CompiledKernel> Programs::ownSet(llvm::StringRef name, Diagnostics &diags) {
  own = std::make_unique<KernelSpec>();
  own->name = name.empty() ? files.front().text.program->name : name.str();
  if (llvm::isDigit(own->name[0]) || !llvm::all_of(own->name, [](char c) { return llvm::isAlnum(c) || c == '_'; })) {
    diags.error(Location(),
                "--set=" + own->name + ": a kernel set's name is an identifier of C++: letters, digits and _");
    return std::nullopt;
  }
  CompiledKernel set;
  set.spec = set.plan.kernel = own.get();
  set.specName = set.plan.specName = llvm::sys::path::filename(files.front().path).str();
  return set;
}

void Programs::compile(CompiledKernel &set, const PipelineOptions &options, Diagnostics &diags) {
  for (File &file : files)
    add(set, file, options, diags);
}

static std::string knownTargets() {
  std::vector<llvm::StringRef> names;
  for (const TargetInfo &target : allTargets())
    names.push_back(target.name);
  return alternatives(names);
}

/// What would keep the program from being a row of the set.
static bool checkRow(const CompiledKernel &set, const ir::Program &program, const std::string &path,
                     Diagnostics &diags) {
  const ir::Kernel &kernel = *program.kernels.front();
  const unsigned errors = diags.errorCount();
  if (!lookupTarget(kernel.target))
    diags.error(kernel.location, "there is no target '" + kernel.target + "'; it is " + knownTargets());
  if (program.kernels.size() > FAGEN_MAX_LAUNCHES)
    diags.error(kernel.location, "program @" + program.name + " has " + llvm::Twine(program.kernels.size()) +
                                     " kernels; a row has at most " + llvm::Twine(FAGEN_MAX_LAUNCHES) + " launches");
  for (const CompiledVariant &other : set.variants)
    if (other.variant->name == program.name && other.variant->target->name == kernel.target)
      diags.error(kernel.location, path + ": kernel set " + set.spec->name + " has a " + program.name + " for " +
                                       kernel.target + " already; rename program @" + program.name);
  return diags.errorCount() == errors;
}

/// What callers give a program, by its recipe: "a: f16[M, K], c: f32[M] written; M: i32 in [0, 1000]". Counters are the
/// runtime's.
static std::string signatureOf(const llvm::json::Object &recipe) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const llvm::json::Value &value : *recipe.getArray("buffers"))
    if (const llvm::json::Object &buffer = *value.getAsObject(); !buffer.getBoolean("restored").value_or(false))
      os << (text.empty() ? "" : ", ") << *buffer.getString("name") << ": " << *buffer.getString("declared")
         << (buffer.getBoolean("strided").value_or(false) ? " strided" : "")
         << (buffer.getBoolean("written").value_or(false) ? " written" : "");
  for (const llvm::json::Value &value : *recipe.getArray("numbers")) {
    const llvm::json::Object &number = *value.getAsObject();
    os << "; " << *number.getString("name") << ": " << *number.getString("kind");
    if (number.get("low"))
      os << " in [" << *number.getInteger("low") << ", " << *number.getInteger("high") << "]";
  }
  return text;
}

/// A call does not say for which target: rows of one name are called alike.
static void checkSignature(const CompiledKernel &set, const VariantPlan &plan, const std::string &path,
                           Diagnostics &diags) {
  const std::string own = signatureOf(*plan.recipe);
  for (const VariantPlan &other : set.plan.variants)
    if (&other != &plan && other.recipe && other.variant->name == plan.variant->name)
      if (const std::string known = signatureOf(*other.recipe); known != own)
        return diags.error(plan.variant->location, path + ": program @" + plan.variant->name + " takes " + own +
                                                       " for " + plan.variant->target->name + ", and " + known +
                                                       " for " + other.variant->target->name +
                                                       "; programs of one name are called alike on all targets");
}

void Programs::add(CompiledKernel &set, File &file, const PipelineOptions &options, Diagnostics &diags) {
  ir::Program &program = *file.text.program;
  if (!checkRow(set, program, file.path, diags))
    return;
  PipelineOptions left = options;
  left.runPasses = passesLeft(file.text);
  PipelineRunner runner(left, llvm::outs());
  PassContext context{.diags = diags, .listing = &llvm::outs(), .runsAll = true};
  const PipelineResult reached = runner.run(program, context, file.text.after);
  if (reached == PipelineResult::Failed || (reached == PipelineResult::Finished && !checkEmittable(program, diags)))
    return;
  Variant &variant = *set.programs.emplace_back(std::make_unique<Variant>());
  variant.name = program.name;
  variant.symbol = program.kernels.front()->symbol;
  variant.target = lookupTarget(program.kernels.front()->target);
  variant.dispatched = false;
  variant.location = program.kernels.front()->location;
  CompiledVariant &compiled = set.variants.emplace_back();
  compiled.variant = &variant;
  if (reached == PipelineResult::Finished) {
    KernelText text = emitProgram(program);
    compiled.source = std::move(text.source);
    VariantPlan &plan = set.plan.variants.emplace_back(buildPlan(program, std::move(text)));
    plan.variant = &variant;
    if (!plan.recipe) {
      diags.error(variant.location,
                  file.path + ": program @" + program.name +
                      " takes attention's parameters; a program declares its sizes (docs/Programs.md)");
    } else {
      checkSignature(set, plan, file.path, diags);
      plan.row = emitRow(plan, set.plan.variants.size() - 1);
    }
  }
  compiled.program = std::move(file.text.program);
  compiled.lastPass = runner.reached().str();
}

} // namespace fagen
