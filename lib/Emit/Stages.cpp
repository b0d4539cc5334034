// fagen: which stage of a kernel an op belongs to, for instrumented kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Stages.h"

#include "fagen/IR/Patterns.h"
#include "fagen/IR/Rescaling.h"
#include "fagen/IR/Sync.h"

#include "llvm/ADT/StringExtras.h"

using namespace fagen;
using namespace fagen::ir;
using device::Stage;

/// Of what only hands over copies, or waits for others; nothing where the op does more.
static std::optional<Stage> stageOf(const SyncInfo &sync) {
  switch (sync.acquires != Means::Nothing ? sync.acquires : sync.releases) {
  case Means::Nothing:
  case Means::Counters:
    return std::nullopt;
  case Means::CopyGroups:
    return sync.acquires == Means::Nothing ? Stage::kCopyIssue : Stage::kLoadWait;
  case Means::Phases:
    return sync.acquires == Means::Nothing ? Stage::kBarrierWait : Stage::kLoadWait;
  case Means::Tickets:
    return sync.acquires == Means::Nothing ? Stage::kCopyIssue : Stage::kEpilogue;
  case Means::ProductGroups:
    return Stage::kPv;
  case Means::StoreGroups:
    return Stage::kEpilogue;
  default:
    return Stage::kBarrierWait;
  }
}

/// Of an op by itself.
static Stage stageOf(const Kernel &kernel, const Op &op) {
  if (const std::optional<Stage> stage = stageOf(syncOf(op)))
    return *stage;
  switch (op.kind) {
  case OpKind::CopyIssue:
  case OpKind::FetchTile:
    return Stage::kCopyIssue;
  case OpKind::MmaIssue:
  case OpKind::Mma:
    return isOfScores(kernel, op) ? Stage::kQk : Stage::kPv;
  case OpKind::Map:
    return isOfRescaling(op) ? Stage::kRescale
           : asFill(op)      ? Stage::kPrologue
           : isMask(op)      ? Stage::kMask
           : isSum(op)       ? Stage::kPv
           : isQuotient(op)  ? Stage::kEpilogue
                             : Stage::kSoftmax;
  case OpKind::Reduce: // one of a row's values ends the tile
    return ReduceOp(op).src().buffer->columns == 1 && ReduceOp(op).reach() == ReduceReach::Row ? Stage::kEpilogue
                                                                                               : Stage::kSoftmax;
  case OpKind::Convert:
    return Stage::kSoftmax;
  case OpKind::Vote:
    return Stage::kRescale;
  case OpKind::StorePartial:
  case OpKind::StoreMerged:
  case OpKind::Store:
  case OpKind::StoreLse:
  case OpKind::StoreNumber:
  case OpKind::StageOutput:
  case OpKind::StoreSplit:
  case OpKind::StoreMergedSplit:
  case OpKind::Combine:
  case OpKind::CombineLast:
  case OpKind::MergeParts:
  case OpKind::Transpose:
  case OpKind::ClassifyTiles:
  case OpKind::BulkStore:
    return Stage::kEpilogue;
  default: // what begins a tile, or is never emitted as an op of its own
    return Stage::kPrologue;
  }
}

static bool isProductFence(const SyncInfo &sync) { return sync.releases == Means::ProductFence; }

/// Whether nobody waits there, so that the op belongs to what stands before it.
static bool goesWithBefore(const Op &op, const SyncInfo &sync) {
  if (sync.acquires != Means::Nothing)
    return false;
  switch (sync.releases) {
  case Means::ProductGroups:
  case Means::Turns:
  case Means::AsyncFence:
  case Means::InitFence:
    return true;
  case Means::Phases:
    return !op.has(Attr::Bytes);
  default:
    return false;
  }
}

std::vector<Stage> fagen::stagesOf(const Kernel &kernel, llvm::ArrayRef<const Op *> ops) {
  std::vector<Stage> stages;
  std::vector<Stage> groups; // of products that were closed
  for (const Op *op : ops) {
    const SyncInfo &sync = syncOf(*op);
    Stage stage = stageOf(kernel, *op);
    if (goesWithBefore(*op, sync) && !stages.empty())
      stage = stages.back();
    if (sync.releases == Means::ProductGroups)
      groups.push_back(stage);
    if (sync.acquires == Means::ProductGroups && int64_t(groups.size()) > op->integer(Attr::Pending))
      stage = groups[groups.size() - 1 - op->integer(Attr::Pending)];
    if (sync.releases == Means::Phases && op->has(Attr::Bytes))
      stage = Stage::kCopyIssue;
    stages.push_back(stage);
  }
  for (size_t i = 0; i + 1 < ops.size(); ++i)
    if (isProductFence(syncOf(*ops[i])))
      stages[i] = stages[i + 1];
  return stages;
}

bool fagen::isWait(Stage stage) { return stage == Stage::kLoadWait || stage == Stage::kBarrierWait; }

/// "load wait": kLoadWait; "QK": kQk.
std::string fagen::enumeratorOf(Stage stage) {
  std::string name = "k";
  bool upper = true;
  for (char c : llvm::StringRef(device::kStageNames[int(stage)])) {
    if (c != ' ')
      name += upper ? llvm::toUpper(c) : llvm::toLower(c);
    upper = c == ' ';
  }
  return name;
}
