// fagen: how many registers fragments take where products are issued.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "HeldRegisters.h"

#include "fagen/Analysis/Access.h"
#include "fagen/IR/Names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

using Held = llvm::SmallSetVector<const Buffer *, 8>;

/// A thread's: of a column it has two elements of 16 rows.
unsigned registersOf(const Buffer &fragment) {
  if (fragment.columns == 1)
    return fragment.rows / 16 * 2;
  return fragment.rows * fragment.columns * sizeOf(fragment.type) / 4 / 32;
}

unsigned registersOf(const Held &held) {
  unsigned sum = 0;
  for (const Buffer *fragment : held)
    sum += registersOf(*fragment);
  return sum;
}

/// Goes from the end to the beginning: what is held is what a later op reads.
class Walk {
public:
  HeldRegisters most;

  void go(const Block &block, Held &held) {
    for (const std::unique_ptr<Op> &op : llvm::reverse(block.ops))
      step(*op, held);
  }

private:
  void step(const Op &op, Held &held) {
    if (!op.body.ops.empty())
      around(op, held);
    const Held after = held;
    for (unsigned i = 0; i != op.operands.size(); ++i)
      if (isFragment(op.operands[i]) && effectOn(op, i) == Effect::Write && !op.has(Attr::When))
        held.remove(op.operands[i].buffer);
    for (unsigned i = 0; i != op.operands.size(); ++i)
      if (isFragment(op.operands[i]) && effectOn(op, i) != Effect::Write)
        held.insert(op.operands[i].buffer);
    if (op.kind == OpKind::MmaIssue)
      consider(op, held, after);
  }

  /// Once more for what a loop's next step reads.
  void around(const Op &op, Held &held) {
    Held inside = held;
    for (int i = 0; i != 2; ++i) {
      go(op.body, inside);
      inside.insert(held.begin(), held.end());
    }
    held.insert(inside.begin(), inside.end());
  }

  void consider(const Op &op, const Held &before, const Held &after) {
    Held all = before;
    all.insert(after.begin(), after.end());
    if (const unsigned registers = registersOf(all); !most.product || registers > most.registers)
      most = {&op, {all.begin(), all.end()}, registers};
  }

  static bool isFragment(const Operand &operand) {
    return operand.buffer && operand.buffer->space == Space::Fragment;
  }
};

} // namespace

HeldRegisters fagen::mostHeldAtProduct(const Role &role) {
  Walk walk;
  Held held;
  walk.go(role.body, held);
  return walk.most;
}
