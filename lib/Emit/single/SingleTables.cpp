// fagen: what dispatch knows of a kernel set, as text of C.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SingleTables.h"

#include "fagen/Emit/Manifest.h"
#include "fagen/Emit/Table.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <fagen/device/tile/layout.h>
#include <fagen/table.h>
#include <fmt/format.h>

using namespace fagen;

namespace {

/// A part of an expression, and how tightly its outermost operator binds.
struct Part {
  std::string text;
  int binding;
};

constexpr int kBindsOr = 1, kBindsAnd = 2, kBindsEqual = 3, kBindsLess = 4, kBindsSum = 5, kBindsProduct = 6,
              kBindsUnary = 7, kBindsWhole = 8;

/// By the number of a SelectOp: its operator in C, or of a function, which binds its arguments wholly, nothing.
constexpr const char *kOperators[] = {"",  "",   "+",  "-", "*",  "",  "",   "",   "-",
                                      "!", "==", "!=", "<", "<=", ">", ">=", "&&", "||"};
constexpr int kBindings[] = {0,           0,           kBindsSum,   kBindsSum,   kBindsProduct, kBindsWhole,
                             kBindsWhole, kBindsWhole, kBindsUnary, kBindsUnary, kBindsEqual,   kBindsEqual,
                             kBindsLess,  kBindsLess,  kBindsLess,  kBindsLess,  kBindsAnd,     kBindsOr};
static_assert(std::size(kOperators) == SelectOp::Or + 1 && std::size(kBindings) == SelectOp::Or + 1);

const char *variableOf(SelectVariable variable) {
  static const char *const names[] = {"p->batch",       "p->heads",      "p->kv_heads", "p->seq_q", "p->seq_kv", "sms",
                                      "p->head_dim_qk", "p->head_dim_v", "p->dtype",    nullptr,    "splits"};
  static_assert(FAGEN_MASK_NONE == 1 && FAGEN_MASK_CAUSAL == 2);
  return variable == SelectVariable::Mask ? "(p->causal + 1)" : names[unsigned(variable)];
}

/// In parentheses unless it binds at least so tightly. gcc asks for those of && in ||.
std::string within(const Part &part, int binding) {
  const bool isClear = part.binding >= binding && !(binding == kBindsOr && part.binding == kBindsAnd);
  return isClear ? part.text : "(" + part.text + ")";
}

Part join(SelectOp::Kind kind, const Part &left, const Part &right) {
  assert(kind <= SelectOp::Or && "the others are the compiler's own");
  const int binding = kBindings[kind];
  if (binding == kBindsWhole)
    return {fmt::format("attn_{}({}, {}, &is_defined)", wordOf(kind).str(), left.text, right.text), kBindsWhole};
  // Of comparisons a second one is always in parentheses.
  const bool compares = binding == kBindsEqual || binding == kBindsLess;
  return {fmt::format("{} {} {}", within(left, compares ? kBindsSum : binding), kOperators[kind],
                      within(right, compares ? kBindsSum : binding + (binding > kBindsAnd))),
          binding};
}

std::string constantOf(int64_t value) { return value == INT64_MIN ? "INT64_MIN" : std::to_string(value); }

uint32_t sharedBytesOf(const VariantPlan &plan) {
  uint64_t most = 0;
  for (const LaunchPlan &launch : plan.launches)
    most = std::max(most, launch.sharedBytes);
  return uint32_t(most);
}

std::string gridOf(const GridPlan &grid, llvm::StringRef prefix) {
  const char *const name = grid.isPersistent        ? "PERSISTENT"
                           : !grid.split            ? "TILES"
                           : grid.split->countsKeys ? "SPLIT_KEYS"
                                                    : "SPLITS";
  return (prefix + name).str();
}

bool hasForm(const KernelPlan &plan) {
  return llvm::any_of(plan.variants, [](const VariantPlan &one) { return one.variant->problem.form != nullptr; });
}

/// The launch of that unit; null where there is none.
const LaunchPlan *launchOf(const VariantPlan &plan, GridPlan::Unit unit) {
  const auto found = llvm::find_if(plan.launches, [&](const LaunchPlan &launch) { return launch.grid.unit == unit; });
  return found == plan.launches.end() ? nullptr : &*found;
}
const LaunchPlan *mergeOf(const VariantPlan &plan) { return launchOf(plan, GridPlan::Rows); }
const LaunchPlan *classifierOf(const VariantPlan &plan) { return launchOf(plan, GridPlan::KeyTiles); }

} // namespace

std::string fagen::expressionOf(llvm::ArrayRef<SelectOp> program) {
  llvm::SmallVector<Part> stack;
  for (const SelectOp &op : program) {
    if (op.kind == SelectOp::Constant)
      stack.push_back({constantOf(op.value), op.value < 0 ? kBindsUnary : kBindsWhole});
    else if (op.kind == SelectOp::Variable)
      stack.push_back({variableOf(SelectVariable(op.value)), kBindsWhole});
    else if (op.kind == SelectOp::Neg || op.kind == SelectOp::Not)
      stack.back() = {kOperators[op.kind] + within(stack.back(), kBindsWhole), kBindsUnary};
    else {
      const Part right = stack.pop_back_val();
      stack.back() = join(op.kind, stack.back(), right);
    }
  }
  return stack.back().text;
}

std::string fagen::singleKernels(const KernelPlan &plan, llvm::ArrayRef<unsigned> order, llvm::StringRef prefix) {
  std::string text;
  const bool hasForms = hasForm(plan);
  for (const unsigned index : order) {
    const VariantPlan &one = plan.variants[index];
    const Variant &variant = *one.variant;
    const Problem &problem = variant.problem;
    const LaunchPlan &launch = one.launches.front(), *const merge = mergeOf(one);
    text += fmt::format("    {{\"{}\", {}, {}, {}, {}{}, {}, {}, {}, {}, {}, {},\n", variant.name, variant.target->sm,
                        firstSmOf(variant), variant.target->lastSm, prefix.str(), toString(problem.dtype).upper(),
                        int(problem.mask == Mask::Causal), problem.headDimQK, problem.headDimV, int(problem.lse),
                        variant.scheduleIndex, int(dispatchOf(variant) == FAGEN_ROW_FALLBACK));
    text += fmt::format("     {}, {}, {}, {}, {}, {}, {}, {}, {}, {}{}}},\n", one.alignment, variant.schedule.tileRows,
                        variant.schedule.tileKeys, int(launch.grid.packsHeads), gridOf(launch.grid, prefix),
                        numberOf(launch.grid), launch.threads, sharedBytesOf(one), merge ? merge->threads : 0,
                        int(!one.maps.empty()),
                        hasForms ? fmt::format(", {}", problem.form ? maskNumber(problem) : 0) : "");
  }
  return text;
}

std::string fagen::singleConditions(const KernelPlan &plan) {
  std::string text;
  for (const auto &[i, line] : llvm::enumerate(plan.kernel->select))
    text += fmt::format("  case {}: /* {} */\n    holds = {};\n    break;\n", i,
                        plan.kernel->scheduleNames[line.scheduleIndex],
                        line.condition.empty() ? "1" : expressionOf(line.condition));
  return text;
}

std::string fagen::singleWorkspace(const KernelPlan &plan, llvm::ArrayRef<unsigned> order) {
  std::string text;
  for (const auto &[place, index] : llvm::enumerate(order)) {
    const VariantPlan &one = plan.variants[index];
    if (one.workspace.empty())
      continue;
    std::string parts;
    bool isScratch = false;
    for (const WorkspacePlan &part : one.workspace) {
      if (part.isScratch && !isScratch)
        parts += "    *zero_bytes = end;\n";
      isScratch |= part.isScratch;
      parts += fmt::format("    end = (end + {0}) / {1} * {1} + {2}; /* {3} */\n", part.alignment - 1, part.alignment,
                           expressionOf(part.bytes), part.name);
    }
    const bool divides = llvm::StringRef(parts).contains("&is_defined");
    text += fmt::format("  case {}: /* {} */\n", place, one.variant->name);
    text += divides ? "  {\n    int is_defined = 1; /* by what is never 0 */\n" : "";
    text += parts + (isScratch ? "" : "    *zero_bytes = end;\n") + "    break;\n" + (divides ? "  }\n" : "");
  }
  return text.empty() ? "  default: /* none has one */\n    break;\n" : text;
}

std::string fagen::singleLaunches(const KernelPlan &plan, llvm::ArrayRef<unsigned> order, llvm::StringRef space) {
  std::string text;
  for (const unsigned index : order) {
    const VariantPlan &one = plan.variants[index];
    const LaunchPlan *const merge = mergeOf(one);
    auto entry = [&](const LaunchPlan &launch) {
      return fmt::format("reinterpret_cast<const void *>(&{}::{}::{})", space.str(), one.variant->symbol,
                         launch.symbol);
    };
    text += fmt::format("    {{{},\n     {},\n     {{", entry(one.launches.front()), merge ? entry(*merge) : "nullptr");
    for (const MapPlan &map : one.maps)
      text += fmt::format("{}{{'{}', {}, {}, {}, {}}}", &map == one.maps.data() ? "" : ", ", map.tensor, map.boxColumns,
                          map.boxRows, map.swizzle, map.boxPanels);
    const LaunchPlan *const classifier = classifierOf(one);
    text += classifier ? fmt::format("}},\n     {}}},\n", entry(*classifier)) : "}},\n";
  }
  return text;
}

SingleClassifier fagen::singleClassifier(const KernelPlan &plan) {
  if (llvm::none_of(plan.variants, classifierOf))
    return {};
  return {"  const void *classifier; // comes first: what rows see of key tiles; null where there is none\n",
          fmt::format("  if (launches.classifier)\n"
                      "    if (cudaError_t error = cudaLaunchKernel(launches.classifier,\n"
                      "                                             dim3(static_cast<unsigned>({} * choice->ctas)),\n"
                      "                                             dim3({}), arguments, 0, stream))\n"
                      "      return failed(error);\n",
                      FAGEN_KEY_TILE_CTAS, 32 * device::kClassifyWarps),
          "  if (launches.classifier) // who uses the workspace next may count on zeros\n"
          "    if (cudaError_t error = cudaMemsetAsync(static_cast<char *>(workspace) + choice->zero_bytes, 0,\n"
          "                                            choice->workspace_bytes - choice->zero_bytes, stream))\n"
          "      return failed(error);\n"};
}
