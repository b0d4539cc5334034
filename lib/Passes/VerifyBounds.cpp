// fagen: pass verify-bounds: proves that no index reaches outside, and places the clamps that it takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of kernels with parameters of their own. A let that is read from memory has a range, `in [low, high]`: where the
// caller does not promise that the tensor keeps to it, the value is held to it. Where a let is an index of a tensor by
// itself, it is held to the tensor's extent, too. Both are lets more, which the text shows:
//
//   let page in [0, 4095] = %table[b]       let page_read in [-2147483648, 2147483647] = %table[b]
//                                           let page = min(min(max(page_read, 0), 4095), PAGES - 1)
//
// Then all is proved (Analysis/Bounds.h); an error names the access and what would do. Roles that would read how often
// their loops run each for itself are refused.

#include "fagen/Analysis/Bounds.h"
#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace fagen;
using namespace fagen::ir;

namespace {

constexpr Interval kInt = {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};

/// The let goes on as `bounded` of what it was; what is read has a name of its own.
void hold(Kernel &kernel, llvm::StringRef name, const std::string &note,
          llvm::function_ref<Expr(const Expr &)> bounded) {
  const auto let = llvm::find_if(kernel.lets, [&](const Let &each) { return each.name == name; });
  if (!let->source) {
    let->value = bounded(let->value);
    let->note += (let->note.empty() ? "" : "; ") + note;
    return;
  }
  Let read = *let;
  read.name = kernel.freshName(let->name + "_read");
  read.value = variable(read.name);
  const Interval values = read.source->buffer->values.value_or(kInt);
  read.source->low = values.low;
  read.source->high = values.high;
  let->source.reset();
  let->value = bounded(read.value);
  let->note = note;
  kernel.lets.insert(let, std::move(read));
}

/// Lets keep to what they say.
bool holdToRanges(Kernel &kernel) {
  std::vector<Let> held;
  for (const Let &let : kernel.lets)
    if (let.source) {
      const Interval values = let.source->buffer->values.value_or(kInt);
      if (values.low < let.source->low || values.high > let.source->high)
        held.push_back(let);
    }
  for (const Let &let : held) {
    const GlobalElement &source = *let.source;
    hold(kernel, let.name, "verify-bounds: %" + source.buffer->name + " may hold anything",
         [&](const Expr &value) { return min(max(value, constant(source.low)), constant(source.high)); });
  }
  return !held.empty();
}

/// An index that is a let keeps to the extent: the first one found. False where there is none, or it did not help.
bool holdToExtent(Kernel &kernel, llvm::ArrayRef<OutOfBounds> found) {
  const auto each = llvm::find_if(found, [](const OutOfBounds &each) { return each.let != nullptr; });
  if (each == found.end())
    return false;
  const Expr &value = each->let->value;
  if (value.kind() == ExprKind::Min && value.rhs() == each->most)
    return false;
  hold(kernel, std::string(each->let->name), "verify-bounds: an index, at most " + each->most.str(),
       [&](const Expr &value) { return min(value, each->most); });
  return true;
}

void report(llvm::ArrayRef<OutOfBounds> found, const Kernel &kernel, Diagnostics &diags) {
  for (const OutOfBounds &each : found)
    diags.error(each.op ? each.op->location : kernel.location, each.message);
}

} // namespace

bool fagen::verifyBounds(Kernel &kernel, PassContext &context) {
  if (!kernel.hasOwnParams()) {
    if (!context.variant) // forms are lowered with their clamps
      report(findOutOfBounds(kernel), kernel, context.diags);
    return false;
  }
  bool changed = holdToRanges(kernel);
  std::vector<OutOfBounds> found = findOutOfBounds(kernel);
  while (holdToExtent(kernel, found)) {
    changed = true;
    found = findOutOfBounds(kernel);
  }
  report(found, kernel, context.diags);
  for (const SteeredTwice &twice : findSteeredTwice(kernel))
    context.diags.error(twice.tensor->location,
                        "roles '" + twice.first->name + "' and '" + twice.second->name + "' each read %" +
                            twice.tensor->name +
                            " to know how often their loops run, and wait for ever if somebody writes it meanwhile; "
                            "where the caller keeps it as it is during a launch, declare it 'constant'");
  return changed;
}
