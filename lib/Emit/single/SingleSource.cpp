// fagen: the CUDA source of --emit=single.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SingleSource.h"

#include "../DeviceText.h"
#include "../SingleTexts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <fmt/format.h>

using namespace fagen;
using llvm::StringRef;

std::string fagen::replaceAll(std::string text, StringRef from, StringRef to) {
  for (size_t at = text.find(from.str()); at != std::string::npos; at = text.find(from.str(), at + to.size()))
    text.replace(at, from.size(), to.str());
  return text;
}

std::string fagen::withName(StringRef text, StringRef name) {
  return replaceAll(replaceAll(text.str(), "ATTN_", name.upper() + "_"), "attn_", (name + "_").str());
}

std::string fagen::filledText(StringRef file, StringRef name,
                              std::initializer_list<std::pair<StringRef, std::string>> values) {
  const auto *const found =
      std::find_if(kSingleTexts, kSingleTexts + kSingleTextCount, [&](const auto &one) { return file == one.name; });
  assert(found != kSingleTexts + kSingleTextCount && "a text of lib/Emit/single");
  std::string text = withName(found->text, name);
  for (const auto &[word, value] : values)
    text = replaceAll(std::move(text), word, value);
  return text;
}

std::string fagen::listTargets(const KernelPlan &plan) {
  std::vector<StringRef> names;
  for (const VariantPlan &one : plan.variants)
    if (!llvm::is_contained(names, one.variant->target->name))
      names.push_back(one.variant->target->name);
  return llvm::join(names, ", ");
}

namespace {

/// Whether the code that nvcc is compiling runs a variant's text. For sm_90a nvcc makes PTX of compute_90 as well.
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

/// Each __global__ function gets a body for GPUs that run the text, and one that stops others.
std::string guardEntries(std::string text, const Variant &variant) {
  for (size_t at = text.find("__global__"); at != std::string::npos; at = text.find("__global__", at + 1)) {
    const size_t body = text.find("{\n", at) + 2, end = text.find("\n}\n", body) + 1;
    text.insert(end, "#else\n  __trap(); // not compiled for a GPU that runs it\n#endif\n");
    text.insert(body, fmt::format("#if !defined(__CUDA_ARCH__) || {}\n", runsHere(variant)));
  }
  return text;
}

/// A variant's text in a namespace of its own, without what it includes.
std::string kernelText(const Variant &variant, StringRef source, const std::string &space) {
  llvm::SmallVector<StringRef> lines;
  source.split(lines, '\n');
  std::string text;
  const unsigned head = lines[2] == "//" ? 3 : 2; // whose file it was
  for (StringRef line : llvm::drop_begin(lines, head))
    if (!line.starts_with("#include <fagen/"))
      text += (line + "\n").str();
  text = guardEntries(markConstexpr(text), variant);
  text = replaceAll(text, "namespace fagen::generated", "namespace " + space + "::" + variant.symbol);
  text = replaceAll(text, "extern \"C\" __global__", "__global__");
  return replaceAll(text, "fagen::device", space + "::device");
}

/// A compilation for a GPU that runs none of the kernels ends here.
std::string archCheck(const KernelPlan &plan, StringRef name) {
  std::vector<std::string> conditions;
  for (const VariantPlan &one : plan.variants)
    if (std::string condition = isNear(*one.variant); !llvm::is_contained(conditions, condition))
      conditions.push_back(condition);
  return fmt::format("#if defined(__CUDA_ARCH__) && !({0})\n#error \"{1}.cu is for {2}: nvcc -arch={3} -c {1}.cu\"\n"
                     "#endif\n",
                     llvm::join(conditions, " || "), name.str(), listTargets(plan),
                     plan.variants.front().variant->target->name.str());
}

} // namespace

std::string fagen::singleSource(const KernelPlan &plan, llvm::ArrayRef<StringRef> sources,
                                llvm::ArrayRef<unsigned> order, StringRef name, const std::string &host,
                                StringRef launches, const std::set<unsigned> &columns) {
  const std::string space = (name + "_detail").str();
  std::vector<std::string> kernels;
  std::vector<StringRef> includes{"fagen/device/params.h"};
  for (const unsigned index : order) {
    kernels.push_back(kernelText(*plan.variants[index].variant, sources[index], space));
    llvm::append_range(includes, deviceIncludesOf(sources[index]));
  }
  std::vector<std::string> users = kernels;
  users.push_back(host);
  const std::string device = replaceAll(pickDeviceText(users, includes, columns), "fagen::device", space + "::device");
  std::string text =
      fmt::format("// Generated by fagen from {0}. Do not edit: change the {2} and run fagen again.\n"
                  "// This file is unencumbered: no licence of fagen applies to generated text.\n"
                  "//\n"
                  "// The kernels of {1}.h: first what they share, then each kernel, then their launch.\n"
                  "#include \"{1}.h\"\n\n"
                  "#include <cfloat>\n#include <cuda_runtime.h>\n\n{3}\n",
                  plan.specName, name.str(), plan.variants.front().recipe ? "program" : "spec", archCheck(plan, name));
  text += "// Code for a GPU that does not run a kernel has no use for its functions.\n"
          "#pragma nv_diag_suppress 177\n\n" +
          device;
  for (const std::string &kernel : kernels)
    text += kernel + "\n";
  text += "#pragma nv_diag_default 177\n\n";
  return text + replaceAll(replaceAll(host, "@launches@", launches), "fagen::device", space + "::device");
}
