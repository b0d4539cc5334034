// fagen: reports what a pass needs and a kernel lacks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ShapeCheck.h"

using namespace fagen;
using namespace fagen::ir;

bool ShapeCheck::needs(bool holds, const llvm::Twine &what, const Location &location) {
  if (holds)
    return true;
  const std::string message =
      ("pass '" + pass + "' needs " + what + "; kernel '" + kernel.symbol + "' lacks that").str();
  const Location &place = location.isKnown() || location.source.isValid() ? location : kernel.location;
  if (context.variant)
    context.diags.internalError("the order of passes", message, place);
  else
    context.diags.error(place, message + ". Run the passes before it first, each once");
  return false;
}

const Op *fagen::firstOf(const Block &block, llvm::function_ref<bool(const Op &)> isWanted) {
  for (const std::unique_ptr<Op> &op : block.ops)
    if (isWanted(*op))
      return op.get();
  return nullptr;
}

const Op *fagen::firstOf(const Block &block, OpKind kind) {
  return firstOf(block, [kind](const Op &op) { return op.kind == kind; });
}

unsigned fagen::countOf(const Block &block, OpKind kind) {
  unsigned count = 0;
  walk(block, [&](const Op &op) { count += op.kind == kind; });
  return count;
}
