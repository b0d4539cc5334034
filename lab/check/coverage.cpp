// fagen: which ops of the emitted kernels ran under the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coverage.h"

#include <algorithm>
#include <fmt/format.h>

namespace fagen::lab {

EmulatorHooks OpCoverage::hooks() {
  return {[](const Launch &, uint32_t, emulator::Options &options) { options.coverage = true; },
          [this](const Launch &launch, uint32_t index, const emulator::Report &report) {
            auto kernel = std::find_if(kernels.begin(), kernels.end(), [&](const Kernel &known) {
              return known.row == launch.row && known.launch == index;
            });
            if (kernel == kernels.end())
              kernel = kernels.insert(kernels.end(), {launch.set, launch.row, index, {}});
            kernel->lines.insert(report.lines.begin(), report.lines.end());
          }};
}

OpCoverage::Result OpCoverage::resultOf(const Kernel &kernel) {
  Result result;
  for (const OpLine &op : kernel.set->ops(*kernel.row, kernel.launch)) {
    const bool ran = kernel.lines.count(op.line) != 0;
    if (!ran && op.isSilent)
      continue;
    ++result.ops;
    if (!ran)
      result.missed.push_back(&op);
  }
  return result;
}

std::string OpCoverage::table() const {
  TextTable table({{"variant"}, {"target"}, {"ops", true}, {"ran", true}, {"lines that never ran"}});
  for (const Kernel &kernel : kernels) {
    const Result result = resultOf(kernel);
    std::string missed;
    for (const OpLine *op : result.missed)
      missed += fmt::format("{}{} ({})", missed.empty() ? "" : ", ", op->line, op->op);
    table.add({kernel.row->variant, kernel.row->target, std::to_string(result.ops),
               std::to_string(result.ops - result.missed.size()), missed});
  }
  return table.text();
}

Json OpCoverage::json() const {
  Json list = Json::array();
  for (const Kernel &kernel : kernels) {
    const Result result = resultOf(kernel);
    Json missed = Json::array();
    for (const OpLine *op : result.missed)
      missed.push_back({{"line", op->line}, {"op", op->op}, {"spec", op->spec}});
    list.push_back({{"variant", kernel.row->variant},
                    {"target", kernel.row->target},
                    {"symbol", kernel.row->launches[kernel.launch].symbol},
                    {"ops", result.ops},
                    {"ran", result.ops - result.missed.size()},
                    {"missed", missed}});
  }
  return list;
}

} // namespace fagen::lab
