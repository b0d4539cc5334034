// fagen: enumerates the accesses of each op to shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Warp w of a role stands at (row_warp, key_warp) = (w % row_warps, w / row_warps). The patterns, each the doing of a
// function of device/ops:
//
//   vectors        copies: `across` threads side by side over a row's vectors, so many rows at once, and so on
//   rowsOfRowWarp  left operands and row totals: the rows of the warp's row_warp, every lane (ldmatrix, broadcasts)
//   columnsOfRowWarp  left operands that are taken transposed: the columns of the warp's row_warp, every lane
//   rowsOfKeyWarp  right operands of mma_sync: the rows (keys) of the warp's key_warp, every lane
//   rowsOfFragment results of wmma: the rows of the warp, each element by one of its lanes, nobody knows which
//   columnsOfLane  P V on its way to O: columns 64 i + 2 lane + {0, 1} of the warp's rows
//   keysOfLane     right operand of scalar Q K^T: keys lane, lane + 32, ... of all warps
//   pairsOfLane    right operand of scalar P V: columns 64 i + 2 lane + {0, 1} of all keys, all warps
//   scores         scalar scores and scratch: element (row, column) by lane column % 32 of the row's warp
//   ownElements    partial results: each lane its accumulator's pairs, and after them a copy of m and l
//   mergedPairs    the merge: m, l and element pair e of every key warp's row by thread e % T
//   rowsInTurn     operands with RowsOfWarps: rows w, w + warps, ... of every key warp, by lanes of warp w

#include "fagen/Analysis/Access.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Patterns.h"
#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Sync.h"
#include "fagen/Target/MmaInstrs.h"
#include "fagen/device/tile/layout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// Bytes that every layout keeps together.
constexpr unsigned kChunkBytes = 16;

class Enumerator {
public:
  Enumerator(const Kernel &kernel, const Role &role, const Buffer &buffer, AccessVisitor visit)
      : buffer(buffer), visit(visit), role(role), family(mmaFamily(kernel.backend)), elementBytes(sizeOf(buffer.type)),
        firstThread(kLanes * role.firstWarp), threads(kLanes * role.warps), warps(role.warps),
        keyWarps(warpGridOf(kernel, role).columns), rowWarps(warpGridOf(kernel, role).rows),
        vectorBytes(vectorBytesOf(kernel)) {}

  void run(const Op &op, unsigned operand) {
    if (opInfo(op.kind).operands[operand].rowsOfWarps)
      return rowsInTurn();
    if (const SyncInfo &sync = syncOf(op); sync.isByActor)
      return sync.done == Means::StoreGroups ? rowsOfEach(threadsOf(role, op)) : wholeBy(threadsOf(role, op));
    switch (op.kind) {
    case OpKind::CopyIssue:
      return vectors();
    case OpKind::LoadFragment:
      return rowsOfRowWarp();
    case OpKind::Mma:
    case OpKind::MmaIssue:
      return product(operand, *asProduct(op));
    case OpKind::Map:
      return map(MapOp(op));
    case OpKind::Reduce: // all lanes read what each has left
      return ReduceOp(op).reach() == ReduceReach::Lanes ? rowsOfRowWarp() : elements();
    case OpKind::Convert: // an accumulator's lanes read each their own
      return family.keepsResults ? rowsOfRowWarp() : elements();
    case OpKind::StageOutput: // stmatrix: which lane writes what is nobody's business
      return rowsOfFragment();
    case OpKind::StorePartial:
      return family.isCollective ? ownElements() : everything();
    case OpKind::StoreMerged:
      return mergedPairs();
    default:
      return everything();
    }
  }

private:
  unsigned offset(unsigned row, unsigned column) const {
    return device::tile_offset(device::Swizzle(buffer.layout), buffer.rows, buffer.columns, elementBytes, row, column);
  }
  ThreadRange warp(unsigned number) const { return {firstThread + kLanes * number, kLanes}; }
  ThreadRange lane(unsigned number, unsigned lane) const { return {firstThread + kLanes * number + lane, 1}; }

  /// `count` columns of a row, in pieces that no layout tears.
  void columns(ThreadRange who, unsigned row, unsigned first, unsigned count) {
    const unsigned step = kChunkBytes / elementBytes;
    for (unsigned column = first; column < first + count;) {
      const unsigned end = std::min(first + count, (column / step + 1) * step);
      visit(who, offset(row, column), (end - column) * elementBytes);
      column = end;
    }
  }
  /// Whole rows: of each panel the bytes of its rows, in whatever order its chunks are.
  void rows(ThreadRange who, unsigned first, unsigned count) {
    const unsigned end = std::min(first + count, buffer.rows.number()), rowBytes = buffer.columns * elementBytes;
    const unsigned panelBytes = device::panel_row_bytes(device::Swizzle(buffer.layout), buffer.columns, elementBytes);
    if (rowBytes % panelBytes != 0) { // there are gaps
      for (unsigned row = first; row < end; ++row)
        columns(who, row, 0, buffer.columns);
      return;
    }
    for (unsigned panel = 0; panel < rowBytes / panelBytes && first < end; ++panel)
      visit(who, (panel * buffer.rows + first) * panelBytes, (end - first) * panelBytes);
  }

  void wholeBy(llvm::ArrayRef<ThreadRange> threads) {
    for (const ThreadRange &range : threads)
      rows(range, 0, buffer.rows);
  }

  /// Each of the threads has its share of the rows.
  void rowsOfEach(llvm::ArrayRef<ThreadRange> threads) {
    const unsigned share = llvm::divideCeil(buffer.rows, unsigned(threads.size()));
    for (unsigned i = 0; i < threads.size(); ++i)
      rows(threads[i], i * share, share);
  }

  void everything() { rows({firstThread, threads}, 0, buffer.rows); }

  void vectors() {
    const unsigned elements = std::max(vectorBytes / elementBytes, 1u);
    const unsigned across = device::threads_across(vectorBytes, buffer.columns, elementBytes);
    for (unsigned row = 0; row < buffer.rows; ++row)
      for (unsigned first = 0; first < buffer.columns; first += elements)
        columns({firstThread + (row * across + first / elements % across) % threads, 1}, row, first,
                std::min(elements, buffer.columns - first));
  }

  void rowsOfRowWarp() {
    const unsigned share = llvm::divideCeil(buffer.rows, rowWarps);
    for (unsigned w = 0; w < warps; ++w)
      rows(warp(w), w % rowWarps * share, share);
  }

  void columnsOfRowWarp() {
    const unsigned share = llvm::divideCeil(buffer.columns, rowWarps);
    for (unsigned w = 0; w < warps; ++w)
      for (unsigned row = 0; row < buffer.rows; ++row) {
        const unsigned first = std::min(w % rowWarps * share, buffer.columns.number());
        columns(warp(w), row, first, std::min(share, buffer.columns - first));
      }
  }

  void rowsOfKeyWarp() {
    const unsigned share = llvm::divideCeil(buffer.rows, keyWarps);
    for (unsigned w = 0; w < warps; ++w)
      rows(warp(w), w / rowWarps * share, share);
  }

  /// A warp reads its rows of the left operand. Of the right one it reads those that others next to it have none of; a
  /// group all.
  void product(unsigned operand, const Product &product) {
    if (operand == MmaOp<>::kA)
      return product.takesLeftTransposed() ? columnsOfRowWarp() : rowsOfRowWarp();
    if (operand == MmaOp<>::kB && product.isAsynchronous)
      return everything();
    if (operand == MmaOp<>::kB)
      return family.isCollective ? rowsOfKeyWarp() : product.takesRightTransposed() ? keysOfLane() : pairsOfLane();
    return family.keepsResults ? everything() : family.isCollective ? rowsOfFragment() : scores();
  }

  /// A fragment's lanes read what they have: of a vector a warp its rows' values, or all of them those of the columns.
  /// Of a tile of scores each lane has its own; of other tiles some rows are kept, in vectors.
  void map(MapOp<const Op> op) {
    if (op.dst().buffer->space != Space::Fragment)
      return keptRowsOf(*op) ? vectors() : elements();
    if (buffer.rows == 1)
      return everything();
    buffer.columns == 1 ? rowsOfRowWarp() : columnsOfLane();
  }

  void elements() {
    if (family.keepsResults)
      return family.isAsynchronous ? rowsOfFragment() : everything();
    scores();
  }

  void rowsOfFragment() {
    const unsigned share = llvm::divideCeil(buffer.rows, rowWarps);
    for (unsigned w = 0; w < warps; ++w)
      rows({firstThread + kLanes * w, kLanes, /*isUnknownOne=*/true}, w % rowWarps * share, share);
  }

  void columnsOfLane() {
    const unsigned share = llvm::divideCeil(buffer.rows, rowWarps);
    for (unsigned w = 0; w < warps; ++w)
      for (unsigned row = w % rowWarps * share; row < std::min((w % rowWarps + 1) * share, buffer.rows.number()); ++row)
        for (unsigned column = 0; column < buffer.columns; column += 2)
          columns(lane(w, column / 2 % kLanes), row, column, std::min(2u, buffer.columns - column));
  }

  void keysOfLane() {
    for (unsigned w = 0; w < warps; ++w)
      for (unsigned key = 0; key < buffer.rows; ++key)
        columns(lane(w, key % kLanes), key, 0, buffer.columns);
  }

  void pairsOfLane() {
    for (unsigned w = 0; w < warps; ++w)
      for (unsigned key = 0; key < buffer.rows; ++key)
        for (unsigned column = 0; column < buffer.columns; column += 2)
          columns(lane(w, column / 2 % kLanes), key, column, std::min(2u, buffer.columns - column));
  }

  void scores() {
    const unsigned share = llvm::divideCeil(buffer.rows, rowWarps);
    for (unsigned w = 0; w < warps; ++w)
      for (unsigned row = w % rowWarps * share; row < std::min((w % rowWarps + 1) * share, buffer.rows.number()); ++row)
        for (unsigned column = 0; column < buffer.columns; ++column)
          columns(lane(w, column % kLanes), row, column, 1);
  }

  /// Rows [key_warp * tile rows + row_warp * share, + share) of the warp.
  void ownElements() {
    const unsigned tileRows = buffer.rows / keyWarps, share = tileRows / rowWarps;
    for (unsigned w = 0; w < warps; ++w)
      for (unsigned r = 0; r < share; ++r) {
        const unsigned row = w / rowWarps * tileRows + w % rowWarps * share + r, quad = r % 8 * 4;
        for (unsigned column = 0; column < buffer.columns; column += 2)
          columns(lane(w, quad + column / 2 % 4), row, column, 2);
      }
  }

  void mergedPairs() {
    const unsigned tileRows = buffer.rows / keyWarps;
    const bool hasExtra = buffer.columns > device::kPartialExtra; // else it reaches over the end
    const unsigned results = buffer.columns - (hasExtra ? device::kPartialExtra : 0), pairs = results / 2;
    for (unsigned pair = 0; pair < tileRows * pairs; ++pair)
      for (unsigned keyWarp = 0; keyWarp < keyWarps; ++keyWarp) {
        const ThreadRange who{firstThread + pair % threads, 1};
        const unsigned row = keyWarp * tileRows + pair / pairs;
        columns(who, row, results, 2); // m and l
        columns(who, row, pair % pairs * 2, 2);
      }
  }

  void rowsInTurn() {
    const unsigned tileRows = llvm::divideCeil(buffer.rows, keyWarps);
    for (unsigned row = 0; row < buffer.rows; ++row)
      rows(warp(row % tileRows % warps), row, 1);
  }

  const Buffer &buffer;
  AccessVisitor visit;
  const Role &role;
  const MmaFamilyInfo &family;
  const unsigned elementBytes;
  const unsigned firstThread, threads, warps;
  const unsigned keyWarps, rowWarps, vectorBytes;
};

} // namespace

void fagen::forEachAccess(const Kernel &kernel, const Role &role, const Op &op, unsigned operand, AccessVisitor visit) {
  const Buffer *buffer = op.operands[operand].buffer;
  assert(buffer && buffer->space == Space::Shared && "only shared memory is enumerated");
  Enumerator(kernel, role, *buffer, visit).run(op, operand);
}

llvm::SmallVector<ThreadRange, 4> fagen::threadsOf(const Role &role, const Op &op) {
  const Actor by = actorOf(op);
  const unsigned first = kLanes * role.firstWarp, end = first + kLanes * role.warps;
  if (by == Actor::Thread)
    return {{first, end - first}};
  const unsigned step = by == Actor::Warp ? kLanes : by == Actor::Group ? kLanes * kGroupWarps : end - first;
  llvm::SmallVector<ThreadRange, 4> ranges;
  for (unsigned thread = first; thread < end; thread += step)
    ranges.push_back({thread, 1});
  return ranges;
}

Effect fagen::effectOn(const Op &op, unsigned operand) {
  if ((op.kind == OpKind::Mma || op.kind == OpKind::MmaIssue) && operand == 0 && !op.isSet(Attr::Accumulate))
    return Effect::Write;
  if (const auto map = dynCast<MapOp>(op); map && operand == MapOp<>::kDst && !map->when())
    return map->value().uses(elementOf(*map->dst().buffer).name()) ? Effect::ReadWrite : Effect::Write;
  const Effect effect = opInfo(op.kind).operands[operand].effect;
  return effect == Effect::Sync ? Effect::Read : effect;
}

llvm::StringRef fagen::toString(Scope scope) {
  switch (scope) {
  case Scope::None:
    return "none";
  case Scope::Thread:
    return "thread";
  case Scope::Warp:
    return "warp";
  case Scope::Group:
    return "group";
  case Scope::Cta:
    return "cta";
  }
  return "cta";
}

Grouping fagen::findGrouping(const Role &role, const Conflict &conflict) {
  auto keepsTogether = [&](unsigned count, bool isInterleaved) {
    auto groupOf = [&](unsigned warp) { return isInterleaved ? warp % count : warp / (role.warps / count); };
    for (unsigned w = 0; w < role.warps; ++w)
      for (unsigned v = 0; v < role.warps; ++v)
        if (conflict.meets[role.firstWarp + w] >> (role.firstWarp + v) & 1 && groupOf(w) != groupOf(v))
          return false;
    return true;
  };
  for (unsigned count = role.warps - 1; count > 1; --count)
    for (bool isInterleaved : {false, true})
      if (role.warps % count == 0 && keepsTogether(count, isInterleaved))
        return {uint8_t(count), isInterleaved};
  return {};
}

SharedMap::SharedMap(const Kernel &kernel) {
  constexpr uint64_t kAlignment = 128;
  uint64_t end = 0;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->offset)
      end = std::max(end, *buffer->offset + buffer->bytes());
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers) {
    if (buffer->space != Space::Shared || buffer->overlays)
      continue;
    end = llvm::alignTo(end, kAlignment);
    bases[buffer.get()] = buffer->offset.value_or(end);
    if (!buffer->offset)
      end += buffer->bytes();
  }
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->space == Space::Shared && buffer->overlays)
      bases[buffer.get()] = buffer->offset.value_or(bases.lookup(buffer->overlays));
}
