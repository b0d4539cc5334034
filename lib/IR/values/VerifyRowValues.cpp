// fagen: the IR verifier: values of rows that leave a role are of whole rows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A reduction of reach `thread` leaves in each thread what its own columns of a row make; the threads that share a row
// have different values, of which a store would take one. Row values that follow from it are of a thread alone, too,
// until a reduction of another reach takes the threads' values together. Elements of tiles are not followed: where all
// columns are alike, as those of a product with ones, what a thread has of them tells the row.

#include "../VerifierState.h"

#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::Twine;

namespace {

class RowValues {
public:
  explicit RowValues(VerifierState &state) : state(state) {}

  void check(const Role &role) { go(role.body); }

private:
  void go(const Block &block) {
    for (const std::unique_ptr<Op> &op : block.ops)
      step(*op);
  }

  void step(const Op &op) {
    if (op.operands.size() != opInfo(op.kind).operands.size())
      return; // which is said elsewhere
    if (op.kind == OpKind::Loop)
      return around(op);
    if (!op.body.ops.empty())
      return maybe(op.body);
    const auto reduce = dynCast<ReduceOp>(op);
    const Op *const from = reduce && reduce->reach() == ReduceReach::Thread ? &op : sourceOf(op);
    for (unsigned i = 0; i != op.operands.size(); ++i)
      if (const Buffer *const buffer = op.operands[i].buffer; buffer && isWritten(op, i)) {
        if (leaves(op, *buffer) && from)
          fail(op, *from);
        else if (isOfRows(*buffer))
          set(*buffer, from);
      }
  }

  /// A loop may have no step, and a step begins with what the one before left.
  void around(const Op &loop) {
    size_t known = 0;
    do {
      known = partial.size();
      maybe(loop.body);
    } while (partial.size() != known);
  }

  void maybe(const Block &body) {
    const auto before = partial;
    go(body);
    partial.insert(before.begin(), before.end());
  }

  void set(const Buffer &buffer, const Op *from) {
    if (from)
      partial[&buffer] = from;
    else
      partial.erase(&buffer);
  }

  static bool isOfRows(const Buffer &buffer) { return buffer.space == Space::Fragment && buffer.columns == 1; }

  static bool isWritten(const Op &op, unsigned i) {
    return opInfo(op.kind).operands[i].effect == Effect::Write ||
           opInfo(op.kind).operands[i].effect == Effect::ReadWrite;
  }

  /// A map reads what its value names, or where it does nothing; a product its sums where it adds to them.
  static bool isRead(const Op &op, unsigned i) {
    if (const auto map = dynCast<MapOp>(op))
      return map->when() || map->value().uses("%" + op.operands[i].buffer->name);
    const std::optional<Product> product = asProduct(op);
    const bool begins = product && i == 0 && !product->accumulates;
    return !begins && opInfo(op.kind).operands[i].effect != Effect::Write;
  }

  /// Whether others see it: results, and the values that roles hand each other.
  static bool leaves(const Op &op, const Buffer &buffer) {
    return buffer.space == Space::Global || op.kind == OpKind::StageOutput ||
           (op.kind == OpKind::Map && buffer.space == Space::Shared);
  }

  /// The reduction that something follows from which the op reads; null where all that it reads is of whole rows. A
  /// reduction takes together what is one value of each thread.
  const Op *sourceOf(const Op &op) const {
    const auto reduce = dynCast<ReduceOp>(op);
    for (unsigned i = 0; i != op.operands.size(); ++i) {
      const Buffer *const buffer = op.operands[i].buffer;
      if (buffer && isRead(op, i) && !(reduce && buffer->columns == 1))
        if (const Op *const from = partial.lookup(buffer))
          return from;
    }
    return nullptr;
  }

  void fail(const Op &op, const Op &from) {
    if (llvm::is_contained(failed, &op))
      return;
    failed.push_back(&op);
    const ReduceOp reduce(from);
    const std::string sums = "%" + reduce.dst().buffer->name;
    state.defect(op.location, opInfo(op.kind).name + ": what leaves follows from " + sums +
                                  ", of which each thread has that of its " + "own columns: `reduce " + sums + ", %" +
                                  reduce.src().buffer->name + "` has reach \"thread\"; `reduce " + sums + ", " + sums +
                                  " {op = \"" + toString(reduce.op()) +
                                  "\", reach = \"row\"}` after it makes it the row's");
  }

  VerifierState &state;
  llvm::DenseMap<const Buffer *, const Op *> partial; ///< values of a thread alone, by the reduction they follow from
  llvm::SmallVector<const Op *, 2> failed;
};

} // namespace

void ir::verifyRowValues(VerifierState &state) {
  if (state.defective) // operands may be missing
    return;
  for (const Role &role : state.kernel.roles)
    RowValues(state).check(role);
}
