// fagen: a kernel set as a header in C and a CUDA source.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Emit/Single.h"

#include "DeviceText.h"
#include "SingleTexts.h"
#include "single/SingleForms.h"
#include "single/SingleTables.h"

#include "fagen/Emit/Table.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ErrorHandling.h"

#include <fmt/format.h>

using namespace fagen;
using llvm::StringRef;

namespace {

std::string replaceAll(std::string text, StringRef from, StringRef to) {
  for (size_t at = text.find(from.str()); at != std::string::npos; at = text.find(from.str(), at + to.size()))
    text.replace(at, from.size(), to.str());
  return text;
}

StringRef templateOf(StringRef name) {
  for (unsigned i = 0; i < kSingleTextCount; ++i)
    if (name == kSingleTexts[i].name)
      return kSingleTexts[i].text;
  llvm_unreachable("a text of lib/Emit/single");
}

/// "sm_80, sm_90a".
std::string listTargets(const KernelPlan &plan) {
  std::vector<StringRef> names;
  for (const VariantPlan &one : plan.variants)
    if (!llvm::is_contained(names, one.variant->target->name))
      names.push_back(one.variant->target->name);
  return llvm::join(names, ", ");
}

/// Whether the code that nvcc is compiling runs a variant's text. For sm_90a nvcc makes PTX of compute_90 beside it.
std::string runsHere(const Variant &variant) {
  const TargetInfo &target = *variant.target;
  if (target.exact)
    return fmt::format("defined(__CUDA_ARCH_FEAT_SM{}_ALL)", target.sm);
  const std::string from = fmt::format("__CUDA_ARCH__ >= {}", 10 * firstSmOf(variant));
  return target.lastSm ? fmt::format("({} && __CUDA_ARCH__ < {})", from, 10 * (target.lastSm + 1)) : from;
}

/// Whether it is for GPUs that may run it.
std::string isNear(const Variant &variant) {
  return variant.target->exact ? fmt::format("__CUDA_ARCH__ == {}", 10 * variant.target->sm) : runsHere(variant);
}

class SingleEmitter {
public:
  SingleEmitter(const KernelPlan &plan, llvm::ArrayRef<StringRef> sources, StringRef name)
      : plan(plan), sources(sources), name(name.str()), upper(name.upper() + "_"), space(this->name + "_detail"),
        order(tableOrder(plan)), forms(singleForms(plan)) {}

  SingleFiles run() { return {header(), source()}; }

private:
  std::string header() const;
  std::string source() const;
  std::string kernelText(unsigned index) const;
  std::string guardEntries(std::string text, const Variant &variant) const;
  std::string archCheck() const;
  std::set<unsigned> productColumns() const;
  std::string named(StringRef text) const;

  const KernelPlan &plan;
  llvm::ArrayRef<StringRef> sources;
  const std::string name, upper, space; ///< "attn", "ATTN_", "attn_detail"
  const std::vector<unsigned> order;
  const SingleForms forms;
};

/// A text of lib/Emit/single, by the name that was asked for.
std::string SingleEmitter::named(StringRef text) const {
  return replaceAll(replaceAll(text.str(), "ATTN_", upper), "attn_", name + "_");
}

std::string SingleEmitter::header() const {
  std::vector<std::string> schedules;
  for (const SelectLine &line : plan.kernel->select)
    schedules.push_back(std::to_string(line.scheduleIndex));
  const std::string build = fmt::format("`nvcc -O3 -arch={} -c {}.cu` is the build.",
                                        plan.variants.front().variant->target->name.str(), name);
  const std::pair<StringRef, std::string> places[] = {
      {"@spec@", plan.specName},
      {"@count@", fmt::format("{} kernel{} for {}", order.size(), order.size() == 1 ? "" : "s", listTargets(plan))},
      {"@build@", build},
      {"@kernels@", singleKernels(plan, order, upper)},
      {"@kernel_count@", std::to_string(order.size())},
      {"@line_count@", std::to_string(plan.kernel->select.size())},
      {"@conditions@", named(replaceAll(singleConditions(plan), SingleForms().mask, forms.mask))},
      {"@schedules@", llvm::join(schedules, ", ")},
      {"@workspace@", named(singleWorkspace(plan, order))},
      {"@forms@\n", named(forms.numbers.empty() ? "\n" : "\n" + forms.numbers)},
      {"@form_field@", named(forms.field)},
      {"@form_args@", named(forms.args)},
      {"@form_column@", named(forms.column)},
      {"@form_matches@", named(forms.matches)},
      {"@form_check@", named(forms.check)}};
  std::string text = named(templateOf("select.h.in"));
  for (const auto &[place, value] : places)
    text = replaceAll(text, place, value);
  return text;
}

/// The columns of all accumulators, and of a warp's share.
std::set<unsigned> SingleEmitter::productColumns() const {
  std::set<unsigned> columns;
  for (const VariantPlan &one : plan.variants)
    for (const BufferPlan &buffer : one.buffers)
      if (buffer.space == ir::Space::Fragment)
        columns.insert({buffer.columns, buffer.columns / std::max(1u, one.variant->schedule.keyWarps)});
  return columns;
}

/// Behind the head of each __global__ function a body for GPUs that run the text, and one that stops others.
std::string SingleEmitter::guardEntries(std::string text, const Variant &variant) const {
  for (size_t at = text.find("__global__"); at != std::string::npos; at = text.find("__global__", at + 1)) {
    const size_t body = text.find("{\n", at) + 2, end = text.find("\n}\n", body) + 1;
    text.insert(end, "#else\n  __trap(); // not compiled for a GPU that runs it\n#endif\n");
    text.insert(body, fmt::format("#if !defined(__CUDA_ARCH__) || {}\n", runsHere(variant)));
  }
  return text;
}

/// A variant's text in a namespace of its own, without what it includes.
std::string SingleEmitter::kernelText(unsigned index) const {
  const Variant &variant = *plan.variants[index].variant;
  llvm::SmallVector<StringRef> lines;
  sources[index].split(lines, '\n');
  std::string text;
  for (StringRef line : llvm::drop_begin(lines, 3)) // whose file it was
    if (!line.starts_with("#include <fagen/"))
      text += (line + "\n").str();
  text = guardEntries(markConstexpr(text), variant);
  text = replaceAll(text, "namespace fagen::generated", "namespace " + space + "::" + variant.symbol);
  text = replaceAll(text, "extern \"C\" __global__", "__global__");
  return replaceAll(text, "fagen::device", space + "::device");
}

/// A compilation for a GPU that runs none of the kernels ends here.
std::string SingleEmitter::archCheck() const {
  std::vector<std::string> conditions;
  for (const VariantPlan &one : plan.variants)
    if (std::string condition = isNear(*one.variant); !llvm::is_contained(conditions, condition))
      conditions.push_back(condition);
  return fmt::format("#if defined(__CUDA_ARCH__) && !({0})\n#error \"{1}.cu is for {2}: nvcc -arch={3} -c {1}.cu\"\n"
                     "#endif\n",
                     llvm::join(conditions, " || "), name, listTargets(plan),
                     plan.variants.front().variant->target->name.str());
}

std::string SingleEmitter::source() const {
  std::vector<std::string> kernels;
  std::vector<StringRef> includes{"fagen/device/params.h"};
  for (const unsigned index : order) {
    kernels.push_back(kernelText(index));
    llvm::append_range(includes, deviceIncludesOf(sources[index]));
  }
  std::string host = templateOf("run.cu.in").str();
  const SingleClassifier classifier = singleClassifier(plan);
  for (const auto &[place, value] :
       {std::pair("@form_filling@", forms.filling), std::pair("@argument@", forms.argument),
        std::pair("@form_fill@", forms.fill), std::pair("@classifier_field@", classifier.field),
        std::pair("@classifier_launch@", classifier.launch), std::pair("@classifier_clear@", classifier.clear)})
    host = replaceAll(host, place, value);
  host = named(host);
  std::vector<std::string> users = kernels;
  users.push_back(host);
  const std::string device =
      replaceAll(pickDeviceText(users, includes, productColumns()), "fagen::device", space + "::device");
  std::string text =
      fmt::format("// Generated by fagen from {0}. Do not edit: change the spec and run fagen again.\n"
                  "// This file is unencumbered: no licence of fagen applies to generated text.\n"
                  "//\n"
                  "// The kernels of {1}.h: first what they share, then each kernel, then their launch.\n"
                  "#include \"{1}.h\"\n\n"
                  "#include <cfloat>\n#include <cuda_runtime.h>\n\n{2}\n",
                  plan.specName, name, archCheck());
  text += device + "// Code for a GPU that does not run a kernel has no use for its functions.\n"
                   "#pragma nv_diag_suppress 177\n\n";
  for (const std::string &kernel : kernels)
    text += kernel + "\n";
  text += "#pragma nv_diag_default 177\n\n";
  return text + replaceAll(replaceAll(host, "@launches@", singleLaunches(plan, order, space)), "fagen::device",
                           space + "::device");
}

} // namespace

SingleFiles fagen::emitSingle(const KernelPlan &plan, llvm::ArrayRef<StringRef> sources, StringRef name) {
  return SingleEmitter(plan, sources, name).run();
}
