// fagen: collects the uses of global buffers over the launches of a program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Launches.h"

#include "fagen/Analysis/GlobalRows.h"
#include "fagen/Analysis/OwnTiles.h"
#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Views.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>

using namespace fagen;
using namespace fagen::ir;

namespace {

/// How many rows of the global buffer the op names: as many as the tile on the other side has, which for fragments is
/// that of the CTA.
int64_t rowsOf(const Kernel &kernel, const Op &op) {
  if (const auto copy = dynCast<CopyIssueOp>(op))
    return copy->dst().buffer->rows;
  if (const auto store = dynCast<BulkStoreOp>(op))
    return store->src().buffer->rows;
  return *rowsOfTile(kernel);
}

/// Whether several CTAs have the same rows of Q, each another part of the keys: then the kernel asks which.
bool isSplit(const Kernel &kernel) {
  bool found = false;
  auto look = [&](const Expr &expr) { found |= usesScope(expr, RunScope::Split); };
  for (const Let &let : kernel.lets)
    look(let.value);
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      forEachExpr(op, look);
      found |= op.kind == OpKind::CombineLast;
    });
  return found;
}

/// Whether the op stays in the rows of the CTA's tile, of kernels that have one.
bool isOfTile(const Kernel &kernel, const Op &op) {
  const std::optional<unsigned> rows = rowsOfTile(kernel);
  if (!op.has(Attr::Row) || !rows)
    return false;
  const std::optional<Interval> apart =
      difference(expandButRow(kernel, op.expr(Attr::Row)), variable(RunValue::RowBegin));
  return apart && apart->low >= 0 && apart->high <= int64_t(*rows) - rowsOf(kernel, op);
}

bool namesTensor(const Op &op, const Buffer &tensor) {
  return llvm::any_of(globalOperandsOf(op),
                      [&](const Operand *global) { return &tensorOf(*global->buffer) == &tensor; });
}

bool readsElement(const Let &let, const Buffer &buffer) {
  if (!let.judged)
    return let.source ? let.source->buffer == &buffer : let.value && let.value.uses(elementOf(buffer).name());
  const TileJudgement &judged = *let.judged;
  const llvm::StringRef name = elementOf(buffer).name();
  return judged.first.uses(name) || judged.tiles.uses(name) || judged.seen.uses(name) || judged.whole.uses(name);
}

/// Whether no other op of the launch reaches the same elements of the tensor, in whichever tile.
bool isAlone(const Kernel &kernel, const Role &role, const Op &op) {
  const Buffer &tensor = tensorOf(*globalOf(op));
  bool meets = llvm::any_of(kernel.lets, [&](const Let &let) { return readsElement(let, tensor); });
  for (const Role &other : kernel.roles)
    walk(other.body, [&](const Op &each) {
      forEachRead(kernel, each, [&](const Buffer &index) { meets |= &index == &tensor; });
      const Buffer *const matrix = globalOf(each);
      const bool isMerger = op.kind == OpKind::StoreMergedSplit && each.kind == OpKind::CombineLast; // comes after all
      meets |= &each != &op && !isMerger && matrix && namesTensor(each, tensor) &&
               !reachApart(kernel, role, op, other, each);
    });
  return !meets;
}

bool isOwn(const Kernel &kernel, const Role &role, const Op &op) {
  if (op.kind == OpKind::ClassifyTiles) // an entry a warp
    return isAlone(kernel, role, op);
  if (kernel.hasOwnParams())
    return reachesOwnElements(kernel, role, op) && isAlone(kernel, role, op);
  const bool namesSplit =
      op.has(Attr::Split) && expandButRow(kernel, op.expr(Attr::Split)) == variable(RunValue::Split);
  return isOfTile(kernel, op) && (namesSplit || !isSplit(kernel));
}

/// Whether the op merges rows that the CTAs that share them have for themselves.
bool mergesOwnRows(const Kernel &kernel, const Role &role, const Op &combine) {
  if (CombineLastOp(combine).parts().buffer->shape.empty()) // attention's
    return isOfTile(kernel, combine);
  bool isOwn = false;
  forEach<StoreMergedSplitOp>(role.body, [&](StoreMergedSplitOp<const Op> store) {
    isOwn |= areOwnRowsOfParts(kernel, role, *store, combine);
  });
  return isOwn;
}

/// Whether the splits' count orders `second` in one CTA after `first` in another: first is the CTA's own part of rows
/// that second, or is, the combine_last of one split for all. Both are what every warp does once, in this order, for
/// the same of its rows.
bool isCounted(const Kernel &kernel, const GlobalAccess &first, const GlobalAccess &second) {
  if (!first.op || !second.op || second.op->kind != OpKind::CombineLast || first.role != second.role ||
      !mergesOwnRows(kernel, *second.role, *second.op))
    return false;
  if (first.op == second.op)
    return true;
  const auto &ops = first.role->body.ops;
  const auto placeOf = [&](const Op *op) {
    return llvm::find_if(ops, [&](const std::unique_ptr<Op> &each) { return each.get() == op; });
  };
  return first.op->kind == OpKind::StoreMergedSplit && first.isOwn &&
         nameSameRows(kernel, *first.role, *first.op, *second.op) && placeOf(first.op) < placeOf(second.op);
}

std::vector<GlobalAccess> accessesOf(const Program &program) {
  std::vector<GlobalAccess> all;
  llvm::StringSet<> written;
  const std::vector<const Kernel *> launches = launchesOf(program);
  for (unsigned launch = 0; launch < launches.size(); ++launch) {
    const Kernel &kernel = *launches[launch];
    for (const Let &let : kernel.lets)
      for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
        if (buffer->space == Space::Global && readsElement(let, *buffer))
          all.push_back({.launch = launch, .let = &let, .buffer = &tensorOf(*buffer), .reads = true});
    for (const Role &role : kernel.roles)
      walk(role.body, [&](const Op &op) {
        forEachRead(kernel, op, [&](const Buffer &index) {
          all.push_back({.launch = launch, .role = &role, .op = &op, .buffer = &index, .reads = true, .isIndex = true});
        });
        for (unsigned i = 0; i < op.operands.size(); ++i) {
          const Buffer *buffer = op.operands[i].buffer;
          if (!buffer || buffer->space != Space::Global)
            continue;
          const Effect effect = effectOn(op, i);
          const bool writes = effect != Effect::Read;
          const Buffer &tensor = tensorOf(*buffer);
          all.push_back({launch, &role, &op, nullptr, &tensor, effect != Effect::Write, writes});
          if (writes)
            written.insert(tensor.name);
        }
      });
  }
  llvm::erase_if(all, [&](const GlobalAccess &access) { return !written.contains(access.buffer->name); });
  for (GlobalAccess &access : all)
    access.isOwn = access.op && !access.isIndex && isOwn(*launches[access.launch], *access.role, *access.op);
  return all;
}

HazardKind kindOf(const GlobalAccess &first, const GlobalAccess &second) {
  if (first.writes && second.reads)
    return HazardKind::Raw;
  return first.writes ? HazardKind::Waw : HazardKind::War;
}

} // namespace

std::vector<const Kernel *> fagen::launchesOf(const Program &program) {
  std::vector<const Kernel *> launches;
  for (const std::unique_ptr<Kernel> &kernel : program.kernels)
    launches.push_back(kernel.get());
  std::stable_partition(launches.begin(), launches.end(),
                        [](const Kernel *kernel) { return kernel->grid.unit == CtaGrid::KeyTiles; });
  return launches;
}

std::vector<GlobalHazard> fagen::findGlobalHazards(const Program &program, const Kernel &kernel) {
  const std::vector<const Kernel *> launches = launchesOf(program);
  const unsigned launch = unsigned(llvm::find(launches, &kernel) - launches.begin());
  const std::vector<GlobalAccess> accesses = accessesOf(program);
  std::vector<GlobalHazard> hazards;
  for (unsigned second = 0; second < accesses.size(); ++second)
    for (unsigned first = 0; first <= second; ++first) {
      const GlobalAccess &a = accesses[first], &b = accesses[second];
      if (b.launch != launch || a.buffer->name != b.buffer->name || (!a.writes && !b.writes))
        continue;
      if (a.launch != b.launch || !a.isOwn || !b.isOwn)
        hazards.push_back({kindOf(a, b), a, b, a.launch == b.launch && isCounted(kernel, a, b)});
    }
  return hazards;
}
