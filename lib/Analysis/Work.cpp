// fagen: counts the work of ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Work.h"
#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Rescaling.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <numeric>

using namespace fagen;
using namespace fagen::ir;
using namespace fagen::model;

static constexpr double kWarp = 32;

Work &Work::operator+=(const Work &other) {
  tensorFlops += other.tensorFlops;
  tensorF16Flops += other.tensorF16Flops;
  askedFlops += other.askedFlops;
  askedWavefronts += other.askedWavefronts;
  bulkBytes += other.bulkBytes;
  exps += other.exps;
  fp32 += other.fp32;
  halfRate += other.halfRate;
  wavefronts += other.wavefronts;
  copiedWavefronts += other.copiedWavefronts;
  copiedBytes += other.copiedBytes;
  storedBytes += other.storedBytes;
  barriers += other.barriers;
  loadRounds += other.loadRounds;
  return *this;
}

static double elements(const Buffer &buffer) { return double(buffer.rows) * buffer.columns; }
static double wavefrontsOf(double bytes) { return bytes / 128; }

/// What ldmatrix reads: eight rows of 16 bytes at a time. Rows that are a multiple of 128 bytes apart meet in their
/// banks.
static double wavefrontsRead(const Buffer &tile, double bytes) {
  constexpr unsigned kRows = 8, kRowBytes = 16, kAllBanks = 128;
  if (tile.layout != Layout::RowMajor)
    return wavefrontsOf(bytes);
  const unsigned apart = std::gcd(tile.columns * sizeOf(tile.type), kAllBanks); // rows that do not meet: their share
  return wavefrontsOf(bytes) * kRows / std::min(kRows, kAllBanks / std::max(apart, kRowBytes));
}

/// An instruction a vector moves it; some more make addresses and compare the row with the limit.
static Work workOfCopy(const Kernel &kernel, CopyIssueOp<const Op> copy) {
  constexpr double kFreshAddress = 4, kRunningAddress = 2;
  constexpr double kPadded = 8; // rows of padded tiles are not aligned to 128 bytes
  const Buffer &tile = *copy.dst().buffer;
  const double vectorBytes = vectorBytesOf(kernel);
  const double bytes = elements(tile) * sizeOf(tile.type), vectors = bytes / vectorBytes;
  Work work;
  work.copiedBytes = bytes;
  if (copy.kind() == CopyKind::Bulk) { // one thread asks for all of it
    work.bulkBytes = bytes / (copy.cluster() ? kernel.grid.cluster : 1);
    return work;
  }
  work.copiedWavefronts = wavefrontsOf(bytes) * (tile.layout == Layout::Padded ? kPadded : 1);
  work.wavefronts = std::max(wavefrontsOf(bytes), vectors / kWarp);
  work.fp32 = vectors * (copy.running() ? kRunningAddress : kFreshAddress);
  if (copy.kind() == CopyKind::LdSt) { // so many vectors are in flight at once as ops/copy.h unrolls
    const double perThread = vectors / kernel.threads;
    work.loadRounds = perThread <= 16 ? 1 : perThread / 4;
    work.wavefronts *= 2; // to registers, too, they come through the same unit
  }
  return work;
}

/// A warp reads its own rows of a and all columns of b, each by ldmatrix where it is in shared memory.
static Work workOfMma(MmaOp<const Op> product, double warps) {
  const Buffer &acc = *product.acc().buffer, &a = *product.a().buffer, &b = *product.b().buffer;
  const double depth = asProduct(*product)->sumsOfLeft();
  Work work;
  (product.sums() ? work.tensorF16Flops : work.tensorFlops) = warps * 2 * elements(acc) * depth;
  if (product.sums()) // they become f32, and are added where they must be
    work.halfRate = warps * elements(acc);
  work.wavefronts = warps * wavefrontsRead(b, acc.columns * depth * sizeOf(b.type));
  if (a.space == Space::Shared)
    work.wavefronts += warps * wavefrontsRead(a, acc.rows * depth * sizeOf(a.type));
  return work;
}

/// A group's warps share b; they read of a what no fragment holds.
static Work workOfAskedMma(const Kernel &kernel, MmaIssueOp<const Op> product, double warps) {
  const Buffer &acc = *product.acc().buffer, &a = *product.a().buffer, &b = *product.b().buffer;
  const double depth = asProduct(*product)->sumsOfLeft();
  double fromShared = depth;
  for (const Operand &columns : columnsInRegisters(*product))
    fromShared -= columns.buffer->columns.number();
  Work work;
  work.askedFlops = warps * 2 * elements(acc) * depth;
  work.askedWavefronts = warps / warpsOfGroup(kernel) * wavefrontsOf(acc.columns * depth * sizeOf(b.type));
  if (a.space == Space::Shared)
    work.askedWavefronts += warps * wavefrontsOf(acc.rows * fromShared * sizeOf(a.type));
  return work;
}

unsigned model::warpsOfGroup(const Kernel &kernel) { return mmaFamily(kernel.backend).unitWarps; }

/// Each of 4 lanes has a copy of its row's value.
static double rowLanes(const Buffer &rows, double warps) { return warps * rows.rows * 4; }

/// An instruction an operator, but that a product with a sum is one, and a constant and a choice of it none.
static double operators(const Expr &value) {
  double count = value.isBinary() && value.kind() != ExprKind::Mul ? 1 : 0;
  for (const Expr &operand : value.operands())
    count += operators(operand);
  return count;
}

static unsigned exponentials(const Expr &value) {
  unsigned count = value.kind() == ExprKind::Exp2 || value.kind() == ExprKind::Tanh || value.kind() == ExprKind::Log2;
  for (const Expr &operand : value.operands())
    count += exponentials(operand);
  return count;
}

/// With a condition it is that of the few last tiles. What a row has is computed once for all of its elements.
static Work workOfMap(MapOp<const Op> map, double warps) {
  Work work;
  const double count = warps * elements(*map.dst().buffer);
  if (map.when() || asFill(*map))
    return work;
  if (isOfRescaling(*map)) { // f is computed once for a row; it is counted with the sums, which it comes to first
    const bool isOfRows = map.dst().buffer->columns == 1, isCopy = map.value().kind() == ExprKind::Variable;
    const double lanes = isOfRows ? rowLanes(*map.dst().buffer, warps) : 0;
    work.exps = isCopy ? 0 : lanes;
    work.fp32 = isCopy ? lanes : isOfRows ? 2 * lanes : count;
    return work;
  }
  work.exps = count * exponentials(map.value());
  const auto powers = asPowers(*map);
  const bool isFused = powers && powers->order == ExponentOrder::ProductsFirst;
  work.fp32 = isMask(*map) ? 3 * count : isQuotient(*map) || isFused ? count : count * operators(map.value());
  if (map.every()) { // a polynomial is 9 instructions at the full rate and 3 at half of it
    const double polynomials = work.exps / *map.every();
    work.exps -= polynomials;
    work.fp32 += 9 * polynomials;
    work.halfRate += 3 * polynomials;
  }
  return work;
}

/// To the row's whole result two shuffles lead, by each of its lanes.
static Work workOfReduce(ReduceOp<const Op> reduce, double warps) {
  Work work;
  const Buffer &src = *reduce.src().buffer, &dst = *reduce.dst().buffer;
  const double count = src.columns == 1 ? 0 : warps * elements(src);
  (reduce.op() == Reduction::Max ? work.halfRate : work.fp32) = count;
  if (reduce.reach() == ReduceReach::Row) {
    work.wavefronts = 2 * rowLanes(dst, warps) / kWarp;
    if (reduce.op() == Reduction::Max)
      work.halfRate += 2 * rowLanes(dst, warps);
  }
  return work;
}

/// `keyWarps` warps have the same rows.
static Work workOfResult(const Op &op, double warps, double keyWarps) {
  Work work;
  if (const auto store = dynCast<StoreOp>(op)) { // a quad hands its words round: half a shuffle an element pair
    const double count = warps * elements(*store->o().buffer);
    work.halfRate = count / 2;
    work.wavefronts = count / 2 / kWarp;
    work.storedBytes = count * sizeOf(store->dst().buffer->type);
  } else if (const auto staged = dynCast<StageOutputOp>(op)) {
    const Buffer &o = *staged->o().buffer, &dst = *staged->dst().buffer;
    const double count = warps * o.rows * std::min(o.columns, dst.columns);
    work.wavefronts = wavefrontsOf(count * sizeOf(dst.type));
    work.storedBytes = count * sizeOf(dst.type); // by the bulk_store after it
  } else if (const auto split = dynCast<StoreSplitOp>(op)) {
    work.storedBytes = warps * elements(*split->o().buffer) * sizeOf(split->dst().buffer->type);
  } else if (const auto own = dynCast<StorePartialOp>(op)) {
    const Buffer &partial = *own->partial().buffer;
    work.wavefronts = wavefrontsOf(elements(partial) * sizeOf(partial.type));
  } else { // store_merged[_split]: a pair of m and l, and an exp2, for each pair of columns
    const auto merged = dynCast<StoreMergedOp>(op);
    const Buffer &partial = merged ? *merged->partial().buffer : *StoreMergedSplitOp(op).partial().buffer;
    const Buffer &target = merged ? *merged->o().buffer : *StoreMergedSplitOp(op).dst().buffer;
    work.wavefronts = 2 * wavefrontsOf(elements(partial) * sizeOf(partial.type));
    work.exps = elements(partial) / 2;
    work.fp32 = 4 * elements(partial);
    work.storedBytes = elements(partial) / keyWarps * sizeOf(target.type);
  }
  return work;
}

/// Without a default: an op that is new in Ops.td must be given its work, or a reason for none, before this compiles.
Work model::workOf(const Kernel &kernel, const Role &role, const Op &op) {
  const double warps = role.warps;
  Work work;
  switch (op.kind) {
  case OpKind::CopyIssue:
    return workOfCopy(kernel, CopyIssueOp(op));
  case OpKind::LoadFragment: {
    const Buffer &dst = *LoadFragmentOp(op).dst().buffer;
    work.wavefronts = warps * wavefrontsRead(*LoadFragmentOp(op).src().buffer, elements(dst) * sizeOf(dst.type));
    return work;
  }
  case OpKind::Mma:
    return workOfMma(MmaOp(op), warps);
  case OpKind::MmaIssue:
    return workOfAskedMma(kernel, MmaIssueOp(op), warps);
  case OpKind::Barrier:
    work.barriers = BarrierOp(op).scope() == BarrierScope::Warp ? 0 : 1;
    return work;
  case OpKind::Store:
  case OpKind::StageOutput:
  case OpKind::StorePartial:
  case OpKind::StoreMerged:
  case OpKind::StoreSplit:
  case OpKind::StoreMergedSplit:
    return workOfResult(op, warps, warpGridOf(kernel, role).columns);
  case OpKind::Map:
    return workOfMap(MapOp(op), warps);
  case OpKind::Reduce:
    return workOfReduce(ReduceOp(op), warps);
  case OpKind::Vote: // its body hardly ever happens
    work.fp32 = 3 * rowLanes(*VoteOp(op).x().buffer, warps);
    return work;
  case OpKind::Convert: // two elements an instruction
    work.halfRate = warps * elements(*ConvertOp(op).s().buffer) / 2;
    return work;
  // What waits, or lets others go on: Chain.cpp knows their latency.
  case OpKind::MmaCommit:
  case OpKind::MmaWait:
  case OpKind::AwaitTurn:
  case OpKind::PassTurn:
  case OpKind::MbarrierInit:
  case OpKind::Arrive:
  case OpKind::Wait:
  case OpKind::FetchTile:
  case OpKind::HandTile:
  case OpKind::TakeTile:
  case OpKind::Fence:
  case OpKind::AwaitLaunches:
  // By the copy engine, during what follows.
  case OpKind::BulkStore:
  case OpKind::BulkCommit:
  case OpKind::BulkWait:
  // The merge of splits, which it leaves out.
  case OpKind::Combine:
  case OpKind::CombineLast:
  case OpKind::MergeParts:
  // A launch of its own, before.
  case OpKind::Transpose:
  case OpKind::ClassifyTiles:
  case OpKind::PlanRows:
  // Little compared with the rest, or nothing: once a tile, no instruction, or what the body has.
  case OpKind::CopyCommit:
  case OpKind::CopyWait:
  case OpKind::StoreLse:
  case OpKind::StoreNumber:
  case OpKind::Loop:
  case OpKind::If:
  case OpKind::Place:
    return work;
  }
  llvm_unreachable("an op of a kind that Ops.td lists");
}
