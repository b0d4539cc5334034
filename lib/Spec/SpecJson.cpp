// fagen: checked specs as JSON, for programs that choose among schedules.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Spec/PrintSpec.h"

#include "OptionValues.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace fagen {

/// The keys of a schedule that a spec may set, as it writes them.
static json::Object valuesOf(const Schedule &schedule) {
  json::Object values;
  for (const OptionInfo &option : allOptions())
    if (option.block == OptionBlock::Schedule)
      values[option.name] = toText(option, getKey(schedule, option.key));
  return values;
}

static json::Object jsonOf(const Schedule &schedule) {
  const RegisterFigures &figures = schedule.figures;
  return json::Object{{"values", valuesOf(schedule)},
                      {"shared_bytes", int64_t(schedule.shared.total)},
                      {"registers", figures.registers},
                      {"least_registers", figures.leastRegisters},
                      {"most_registers", figures.mostRegisters},
                      {"ctas_per_sm", figures.ctasPerSm}};
}

static json::Object jsonOf(const Variant &variant) {
  json::Array choices;
  for (const Schedule &choice : variant.tuneChoices)
    choices.push_back(jsonOf(choice));
  return json::Object{{"variant", variant.name},
                      {"target", variant.target->name},
                      {"schedule", jsonOf(variant.schedule)},
                      {"tune", std::move(choices)}};
}

void printSpecJson(ArrayRef<SpecFile> files, raw_ostream &os) {
  json::Array variants;
  for (const SpecFile &file : files)
    for (const KernelSpec &kernel : file.kernels)
      for (const Variant &variant : kernel.variants)
        variants.push_back(jsonOf(variant));
  os << formatv("{0:2}", json::Value(std::move(variants))) << '\n';
}

} // namespace fagen
