// fagen: a kernel set as a header in C and a CUDA source.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Emit/Single.h"

#include "single/SingleForms.h"
#include "single/SingleSource.h"
#include "single/SingleTables.h"

#include "fagen/Emit/Table.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

using namespace fagen;
using llvm::StringRef;

namespace {

class SingleEmitter {
public:
  SingleEmitter(const KernelPlan &plan, llvm::ArrayRef<StringRef> sources, StringRef name)
      : plan(plan), sources(sources), name(name.str()), upper(name.upper() + "_"), order(tableOrder(plan)),
        forms(singleForms(plan)) {}

  SingleFiles run() { return {header(), source()}; }

private:
  std::string header() const;
  std::string source() const;
  std::set<unsigned> productColumns() const;
  std::string named(StringRef text) const;

  const KernelPlan &plan;
  llvm::ArrayRef<StringRef> sources;
  const std::string name, upper; ///< "attn", "ATTN_"
  const std::vector<unsigned> order;
  const SingleForms forms;
};

/// A text by the name that was asked for.
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
  std::string text = singleText("select.h.in", name);
  for (const auto &[place, value] : places)
    text = replaceAll(text, place, value);
  return text;
}

std::string SingleEmitter::source() const {
  std::string host = singleText("run.cu.in", name);
  const SingleClassifier classifier = singleClassifier(plan);
  for (const auto &[place, value] :
       {std::pair("@maps@", singleText("maps.cu.in", name)), std::pair("@form_filling@", named(forms.filling)),
        std::pair("@argument@", named(forms.argument)), std::pair("@form_fill@", named(forms.fill)),
        std::pair("@classifier_field@", named(classifier.field)),
        std::pair("@classifier_launch@", named(classifier.launch)),
        std::pair("@classifier_clear@", named(classifier.clear))})
    host = replaceAll(host, place, value);
  return singleSource(plan, sources, order, name, host, singleLaunches(plan, order, name + "_detail"),
                      productColumns());
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

} // namespace

SingleFiles fagen::emitSingle(const KernelPlan &plan, llvm::ArrayRef<StringRef> sources, StringRef name) {
  return SingleEmitter(plan, sources, name).run();
}
