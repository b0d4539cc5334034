// fagen: which stage of a kernel an op belongs to, for instrumented kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Stages.h"

#include "llvm/ADT/StringExtras.h"

using namespace fagen;
using namespace fagen::ir;
using device::Stage;

/// Of an op by itself.
static Stage stageOf(const Op &op) {
  switch (op.kind) {
  case OpKind::Fill:
  case OpKind::LoadFragment:
  case OpKind::MbarrierInit:
    return Stage::kPrologue;
  case OpKind::CopyIssue:
  case OpKind::CopyCommit:
  case OpKind::FetchTile:
  case OpKind::HandTile:
    return Stage::kCopyIssue;
  case OpKind::CopyWait:
  case OpKind::Wait:
    return Stage::kLoadWait;
  case OpKind::Barrier:
  case OpKind::AwaitTurn:
  case OpKind::PassTurn:
  case OpKind::Arrive:
  case OpKind::Fence:
    return Stage::kBarrierWait;
  case OpKind::MmaCommit:
  case OpKind::MmaWait:
    return Stage::kPv;
  case OpKind::MmaIssue:
  case OpKind::Mma:
    return op.text("form") == "abt" ? Stage::kQk : Stage::kPv;
  case OpKind::Accumulate:
    return Stage::kPv;
  case OpKind::Mask:
    return Stage::kMask;
  case OpKind::RowMax:
  case OpKind::Exp2:
  case OpKind::RowSum:
  case OpKind::SettleRows:
  case OpKind::Convert:
  case OpKind::ReducePartial:
  case OpKind::ReduceTotal:
    return Stage::kSoftmax;
  case OpKind::Rescale:
  case OpKind::RescaleRows:
  case OpKind::RescaleOutput:
    return Stage::kRescale;
  case OpKind::Total:
  case OpKind::StorePartial:
  case OpKind::StoreMerged:
  case OpKind::Normalize:
  case OpKind::Store:
  case OpKind::StoreLse:
  case OpKind::StageOutput:
  case OpKind::StoreSplit:
  case OpKind::StoreMergedSplit:
  case OpKind::Combine:
  case OpKind::CombineLast:
  case OpKind::BulkStore:
  case OpKind::BulkCommit:
  case OpKind::BulkWait:
  case OpKind::TakeTile:
    return Stage::kEpilogue;
  case OpKind::Loop:
  case OpKind::If:
  case OpKind::Place:
    break; // never emitted as an op of its own
  }
  return Stage::kPrologue;
}

static bool isProductFence(const Op &op) { return op.kind == OpKind::Fence && op.text("kind") == "mma"; }

/// Whether nobody waits there, so that the op belongs to what stands before it.
static bool goesWithBefore(const Op &op) {
  return op.kind == OpKind::MmaCommit || op.kind == OpKind::PassTurn ||
         (op.kind == OpKind::Arrive && !op.has("bytes")) || (op.kind == OpKind::Fence && !isProductFence(op));
}

std::vector<Stage> fagen::stagesOf(llvm::ArrayRef<const Op *> ops) {
  std::vector<Stage> stages;
  std::vector<Stage> groups; // of products that were closed
  for (const Op *op : ops) {
    Stage stage = stageOf(*op);
    if (goesWithBefore(*op) && !stages.empty())
      stage = stages.back();
    if (op->kind == OpKind::MmaCommit)
      groups.push_back(stage);
    if (op->kind == OpKind::MmaWait && int64_t(groups.size()) > op->integer("pending"))
      stage = groups[groups.size() - 1 - op->integer("pending")];
    if (op->kind == OpKind::Arrive && op->has("bytes"))
      stage = Stage::kCopyIssue;
    stages.push_back(stage);
  }
  for (size_t i = 0; i + 1 < ops.size(); ++i)
    if (isProductFence(*ops[i]))
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
