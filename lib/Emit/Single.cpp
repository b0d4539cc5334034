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

/// The columns of all accumulators, and of a warp's share.
static std::set<unsigned> productColumns(const KernelPlan &plan) {
  std::set<unsigned> columns;
  for (const VariantPlan &one : plan.variants)
    for (const BufferPlan &buffer : one.buffers)
      if (buffer.space == ir::Space::Fragment)
        columns.insert({buffer.columns, buffer.columns / std::max(1u, one.variant->schedule.keyWarps)});
  return columns;
}

SingleFiles fagen::emitSingle(const KernelPlan &plan, llvm::ArrayRef<StringRef> sources, StringRef name) {
  const std::vector<unsigned> order = tableOrder(plan);
  const SingleForms forms = singleForms(plan);
  const SingleClassifier classifier = singleClassifier(plan);
  auto named = [&](StringRef text) { return withName(text, name); };
  std::vector<std::string> schedules;
  for (const SelectLine &line : plan.kernel->select)
    schedules.push_back(std::to_string(line.scheduleIndex));
  std::string header = filledText(
      "select.h.in", name,
      {{"@spec@", plan.specName},
       {"@count@", fmt::format("{} kernel{} for {}", order.size(), order.size() == 1 ? "" : "s", listTargets(plan))},
       {"@build@", fmt::format("`nvcc -O3 -arch={} -c {}.cu` is the build.",
                               plan.variants.front().variant->target->name.str(), name.str())},
       {"@kernels@", singleKernels(plan, order, name.upper() + "_")},
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
       {"@form_check@", named(forms.check)}});
  const std::string host = filledText("run.cu.in", name,
                                      {{"@maps@", filledText("maps.cu.in", name)},
                                       {"@form_filling@", named(forms.filling)},
                                       {"@argument@", named(forms.argument)},
                                       {"@form_fill@", named(forms.fill)},
                                       {"@classifier_field@", named(classifier.field)},
                                       {"@classifier_launch@", named(classifier.launch)},
                                       {"@classifier_clear@", named(classifier.clear)}});
  return {std::move(header), singleSource(plan, sources, order, name, host,
                                          singleLaunches(plan, order, (name + "_detail").str()), productColumns(plan))};
}
