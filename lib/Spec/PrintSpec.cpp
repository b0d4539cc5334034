// fagen: --emit=spec: the resolved spec as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   kernel l4_fp16 // l4_fp16.fa:4
//     variant l4_fp16_prefill_f16_d64_none target sm_89
//       pass     = forward   // l4_fp16.fa:6
//       tile     = 128 x 64  // l4_fp16.fa:15
//       q_in     = shared    // default
//       warps on the tile: 4 over rows, 1 over keys
//       shared memory: 49152 B: q 16384, k 16384, v 16384

#include "fagen/Spec/PrintSpec.h"

#include "OptionValues.h"
#include "fagen/Form/Print.h"
#include "fagen/Support/IndentedStream.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

/// Where a key was set, or that it was not.
static std::string originOf(StringRef key, ArrayRef<std::pair<std::string, Location>> locations, bool implicit) {
  auto found = find_if(locations, [&](const auto &entry) { return entry.first == key; });
  if (found != locations.end())
    return found->second.str();
  return implicit && (isImplicitKey(key) || key == "mma") ? "implicit" : "default";
}

static void printKeys(const Variant &variant, IndentedStream &os) {
  struct Line {
    std::string setting, origin;
  };
  std::vector<Line> lines;
  size_t width = 0;
  for (const OptionInfo &option : allOptions()) {
    bool isProblem = option.block == OptionBlock::Problem;
    std::string value =
        toText(option, isProblem ? getKey(variant.problem, option.key) : getKey(variant.schedule, option.key));
    const auto &locations = isProblem ? variant.problem.locations : variant.schedule.locations;
    lines.push_back({fmt::format("{:<8} = {}", option.name.str(), value),
                     originOf(option.name, locations, variant.schedule.implicit)});
    width = std::max(width, lines.back().setting.size());
  }
  for (const Line &line : lines)
    os << fmt::format("{:<{}}  // {}\n", line.setting, width, line.origin);
}

static void printSharedMemory(const Variant &variant, IndentedStream &os) {
  const SharedMemory &memory = variant.schedule.shared;
  if (memory.total == 0) // nobody asked
    return;
  os << "shared memory: " << memory.total << " B:";
  ListSeparator separator(",");
  for (const SharedBuffer &buffer : memory.buffers)
    os << separator << " " << buffer.name << " " << buffer.bytes << (buffer.overRing ? " (over k and v)" : "");
  os << "\n";
}

/// The keys of a tune choice that differ from the variant's own.
static std::string tuneText(const Schedule &schedule, const Schedule &choice) {
  std::string text;
  for (const OptionInfo &option : allOptions()) {
    if (option.block != OptionBlock::Schedule || getKey(schedule, option.key) == getKey(choice, option.key))
      continue;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", option.name.str(),
                        toText(option, getKey(choice, option.key)));
  }
  return text;
}

static void printVariant(const Variant &variant, IndentedStream &os) {
  os << "variant " << variant.name << " target " << variant.target->name;
  if (variant.schedule.implicit)
    os << " // implicit: for strides and alignments that no other row takes";
  else if (!variant.dispatched)
    os << " // by name only";
  os << "\n";
  auto scope = os.scope();
  printKeys(variant, os);
  os << "warps on the tile: " << variant.schedule.rowWarps << " over rows, " << variant.schedule.keyWarps
     << " over keys\n";
  printSharedMemory(variant, os);
  for (const Schedule &choice : variant.tuneChoices)
    os << "tune: " << tuneText(variant.schedule, choice) << "\n";
}

static void printSelect(const KernelSpec &kernel, IndentedStream &os) {
  os << "select\n";
  auto scope = os.scope();
  if (kernel.least != "time")
    os << "least " << kernel.least << "\n";
  for (const SelectLine &line : kernel.select) {
    const std::string &name = kernel.scheduleNames[line.scheduleIndex];
    os << (line.condition.empty() ? "" : "when ") << line.text << " : " << (name.empty() ? "the schedule" : name)
       << " // " << line.location.str() << "\n";
  }
}

static void printKernel(const KernelSpec &kernel, IndentedStream &os) {
  os << "kernel " << kernel.name << " // " << kernel.location.str() << "\n";
  auto scope = os.scope();
  for (const Variant &variant : kernel.variants)
    printVariant(variant, os);
  printSelect(kernel, os);
  if (!kernel.claim.condition.empty())
    os << "claim " << kernel.claim.text << "\n";
  if (!kernel.gates.empty()) {
    os << "require\n";
    auto gates = os.scope();
    for (const Gate &gate : kernel.gates)
      os << gate.text << " // " << gate.location.str() << "\n";
  }
  for (const std::string &remark : kernel.remarks)
    os << "remark: " << remark << "\n";
}

void printSpec(const SpecFile &file, raw_ostream &os) {
  IndentedStream stream(os);
  stream << "target";
  ListSeparator separator(",");
  for (const TargetInfo *target : file.targets)
    stream << separator << " " << target->name;
  stream << "\n";
  for (const auto &form : file.forms)
    form::printForm(*form, stream);
  for (const KernelSpec &kernel : file.kernels)
    printKernel(kernel, stream);
}

} // namespace fagen
