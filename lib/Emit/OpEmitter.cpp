// fagen: one emit function an op: which call of the device library it becomes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpEmitter.h"

#include "Stages.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

using namespace fagen;
using namespace fagen::ir;

Expr fagen::spellSizes(const Expr &expr, llvm::StringRef params) {
  auto member = [&](llvm::StringRef name) { return variable((params + "." + name).str()); };
  if (expr.kind() == ExprKind::Variable)
    return llvm::is_contained({"seq_q", "seq_kv", "heads_per_kv"}, expr.name()) ? member(expr.name()) : expr;
  if (!expr.isBinary())
    return expr;
  const bool isByHeads = expr.kind() == ExprKind::FloorDiv && expr.rhs() == variable("heads_per_kv");
  return Expr::binary(expr.kind(), spellSizes(expr.lhs(), params),
                      isByHeads ? member("by_heads_per_kv") : spellSizes(expr.rhs(), params));
}

bool OpEmitter::isShared(const Op &op, llvm::StringRef name) const {
  return op.operand(name).buffer->space == Space::Shared;
}

std::string OpEmitter::expression(const Expr &expr) const {
  Expr spelled = spellSizes(expr, "cta.params");
  for (const Let &let : kernel.lets)
    spelled =
        spelled.substitute(let.name, variable((inEpilogue && let.name == "row_begin" ? "place." : "cta.") + let.name));
  for (llvm::StringRef name : {"turn", "base", "group_row", "split_begin", "split_keys"}) // of persist-tiles; of splits
    spelled = spelled.substitute(name, variable(("cta." + name).str()));
  spelled = spelled.substitute("split", variable("place.split"));
  return spelled.substitute("row_begin", variable(inEpilogue ? "place.row_begin" : "cta.row_begin")).str();
}

const TileUses &OpEmitter::tileUses() const {
  if (!uses)
    uses.emplace(kernel);
  return *uses;
}

std::string OpEmitter::operand(const Operand &operand) const {
  const Buffer &buffer = *operand.buffer;
  if (buffer.space == Space::Fragment)
    return "r." + buffer.name;
  if (!buffer.isRing)
    return "cta.shared." + buffer.name;
  const std::string slot = buffer.stages == 1 ? "0"
                           : operand.position.kind() == ExprKind::Constant
                               ? std::to_string(operand.position.value() % buffer.stages)
                               : expression(operand.position % variable(tileUses().slotsOf(buffer)));
  return fmt::format("cta.shared.{}{}[{}]", tileUses().isOfKeys(buffer) ? "ring." : "", buffer.name, slot);
}

std::string OpEmitter::heading(const Op &op) const {
  switch (op.kind) {
  case OpKind::Mma:
  case OpKind::MmaIssue:
    return op.text("form") == "abt"        ? "S = Q K^T"
           : op.integer("accumulate") == 0 ? "P V, which no lane can add to its O yet"
                                           : "O += P V";
  case OpKind::Map:
    return headingOfMap(op);
  case OpKind::Reduce:
    return headingOfReduction(op);
  case OpKind::StorePartial:
    return "merge of the warps that share keys";
  default:
    return {};
  }
}

/// Short calls of which a step has many: what they are for stands behind them.
static bool hasNoteBehind(const Op &op) {
  return op.kind == OpKind::Arrive || op.kind == OpKind::Wait || op.kind == OpKind::AwaitTurn ||
         op.kind == OpKind::PassTurn;
}

static std::string noteBehind(const Op &op) { return op.note.empty() ? "" : " // " + op.note; }

void OpEmitter::comment(const Op &op) {
  if (hasNoteBehind(op))
    return;
  std::string text = heading(op);
  if (!text.empty() && op.location.isKnown())
    text += fmt::format(" ({})", op.location.str());
  if (!op.note.empty())
    text += (text.empty() ? "" : "; ") + op.note;
  if (!text.empty())
    line(out, "// {}", text);
}

void OpEmitter::emitCopyIssue(const Op &op) {
  const Operand &target = op.operand("dst");
  const std::string &tensor = op.operand("src").buffer->param;
  const bool isAsync = op.text("kind") == "cp_async";
  std::optional<IndentedStream::Scope> scope;
  if (op.has("when") && !(op.expr("when").kind() == ExprKind::Constant && op.expr("when").value() != 0)) {
    line(out, "if ({})", expression(op.expr("when")));
    scope.emplace(out);
    callStandsHere();
  }
  const bool isRunning = op.isSet("running");
  if (op.operand("src").buffer->isPacked)
    return line(out,
                "copy_packed_tile{}<kThreads, kVectorBytes>({}, cta.{}, packed_rows(cta.params, "
                "cta.params.{}_stride), {}, {});",
                isAsync ? "_async" : "", operand(target), tensor, tensor, expression(op.expr("row")),
                expression(op.expr("limit")));
  line(out, "copy_{}tile{}<kThreads, kVectorBytes>({}, {}{}, cta.params.{}_stride[2], {}, {});",
       isRunning ? "next_" : "", isAsync ? "_async" : "", operand(target), isRunning ? "r.next_" : "cta.", tensor,
       tensor, expression(op.expr("row")), expression(op.expr("limit")));
}

void OpEmitter::emitBulkCopy(const Op &op) {
  const Operand &target = op.operand("dst");
  const std::string &tensor = op.operand("src").buffer->param;
  const bool isOfQueries = tileUses().of(*target.buffer) == TileUse::Left; // which no other CTA reads
  line(out, "{}({}, cta.params.{}_map, {}, cta.{}, cta.batch, {}, ptx::CacheHint::{});",
       op.isSet("cluster") ? "copy_share<kCluster>" : "copy_tile_box", operand(target), tensor,
       expression(op.expr("row")), isOfQueries ? "head" : "kv_head", mbarrier(op.operand("full")),
       isOfQueries ? "kEvictFirst" : "kEvictLast");
}

std::string OpEmitter::mbarrier(const Operand &operand) const {
  return fmt::format("cta.shared.{}, {}", operand.buffer->name,
                     operand.buffer->isRing ? expression(operand.position) : "0");
}

void OpEmitter::emitSync(const Op &op) {
  if (op.kind == OpKind::Fence)
    return emitFence(op);
  if (op.operands.empty())
    return emitTurn(op);
  const Operand &bar = op.operand("bar");
  if (op.kind == OpKind::MbarrierInit)
    return line(out, "ptx::mbarrier_init(cta.shared.{}.address({}), {});", bar.buffer->name,
                bar.buffer->isRing ? bar.position.str() : "0", op.integer("arrivals"));
  if (op.kind == OpKind::Wait)
    return line(out, "wait_for({});{}", mbarrier(bar), noteBehind(op));
  if (op.has("bytes"))
    return line(out, "arrive_expecting({}, {});{}", mbarrier(bar), expression(op.expr("bytes")), noteBehind(op));
  const llvm::StringRef by = op.text("by");
  if (op.isSet("cluster"))
    return line(out, "arrive_in_cluster_by_{}<kCluster>({});{}", by.str(), mbarrier(bar), noteBehind(op));
  line(out, "{}({});{}",
       by == "group"  ? "arrive_by_group"
       : by == "warp" ? "arrive_by_warp"
                      : "arrive",
       mbarrier(bar), noteBehind(op));
}

/// In front of the loop over tiles and behind it one group does, by its number among all groups of the CTA.
void OpEmitter::emitTurn(const Op &op) {
  std::optional<IndentedStream::Scope> scope;
  std::string row = "cta.group_row";
  if (op.has("group")) {
    const int64_t group = op.integer("group");
    line(out, "if (ptx::warp_group_index() == {})", group + kernel.constant("kLoadWarps") / kGroupWarps);
    scope.emplace(out);
    callStandsHere();
    row = fmt::format("{} * kGroupRows", group);
  }
  line(out, "{}<kWarps / 4>({}, {});{}", opInfo(op.kind).name.str(), op.integer("id"), row, noteBehind(op));
}

void OpEmitter::emitFence(const Op &op) {
  const llvm::StringRef kind = op.text("kind");
  line(out, "ptx::{}();",
       kind == "mma"             ? "wgmma_fence"
       : kind == "mbarrier_init" ? "mbarrier_init_fence"
                                 : "fence_proxy_async");
}

std::string OpEmitter::tileOf(const char *ticket, const char *params) const {
  if (!kernel.hasConstant("kTurnRows"))
    return ticket;
  return fmt::format("longest_tile_first<kTileRows, kTurnRows{}>({}, {})",
                     kernel.hasConstant("kTurnTiles") ? ", kTurnTiles" : "", params, ticket);
}

/// A thread keeps what it drew, and the number that it hands over or takes, in variables of those names.
void OpEmitter::emitHandover(const Op &op) {
  if (op.kind == OpKind::FetchTile)
    return line(out, "const unsigned drawn = draw<kTileRows>(cta.params);");
  if (op.kind == OpKind::TakeTile)
    return line(out, "const int next = take_tile(cta.shared.{});", op.operand("src").buffer->name);
  line(out, "const int next = {};", tileOf("ticket_of<kTileRows>(cta.params, drawn)", "cta.params"));
  callStandsHere();
  line(out, "hand_tile(cta.shared.{}, next);", op.operand("dst").buffer->name);
}

void OpEmitter::emitAsyncMma(const Op &op) {
  if (op.kind == OpKind::MmaCommit)
    return line(out, "ptx::wgmma_commit();");
  if (op.kind == OpKind::MmaWait)
    return line(out, "ptx::wgmma_wait<{}>();", op.integer("pending"));
  const std::string acc = operand(op.operand("acc")), a = operand(op.operand("a")), b = operand(op.operand("b"));
  if (isShared(op, "a") && op.operand("held").buffer)
    line(out, "issue_abt({}, {}, {}, cta.group_row, {});", acc, operand(op.operand("held")), a, b);
  else if (isShared(op, "a"))
    line(out, "issue_{}abt({}, {}, cta.group_row, {});", op.integer("accumulate") ? "add_" : "", acc, a, b);
  else
    line(out, "issue_ab({}, {}, {});", acc, a, b);
}

void OpEmitter::emitLoop(const Op &op) {
  line(out, "for (int {0} = {1}; {0} < {2}; ++{0}) {{", op.text("variable").str(), expression(op.expr("begin")),
       expression(op.expr("end")));
  {
    auto scope = out.scope();
    std::vector<const Op *> ops;
    for (const std::unique_ptr<Op> &inner : op.body.ops)
      ops.push_back(inner.get());
    emitBlock(ops);
  }
  line(out, "}}");
}

void OpEmitter::emitMma(const Op &op) {
  const std::string acc = operand(op.operand("acc")), a = operand(op.operand("a")), b = operand(op.operand("b"));
  const bool isScores = op.text("form") == "abt";
  const MmaFamilyInfo &family = mmaFamily(kernel.backend);
  if (!family.keepsResults)
    return line(out, "{}({}, {}, {}, warp_row());", (isScores ? family.abt : family.ab).str(), acc, a, b);
  const bool isAdded = isScores && op.integer("accumulate") != 0; // P V always is
  const std::string function = std::string(isAdded    ? "mma_add_abt"
                                           : isScores ? "mma_abt"
                                                      : "mma_ab") +
                               (op.has("sums") ? "_f16" : "");
  if (isScores && isShared(op, "a"))
    line(out, "{}({}, {}, warp_row(), {}, warp_key());", function, acc, a, b);
  else
    line(out, "{}({}, {}, {}, warp_key());", function, acc, a, b);
}

void OpEmitter::emitConvert(const Op &op) {
  const std::string p = operand(op.operand("p")), s = operand(op.operand("s"));
  if (isShared(op, "s"))
    line(out, "convert<kWarpRows>({}, {}, warp_row());", p, s);
  else
    line(out, "convert({}, {});", p, s);
}

void OpEmitter::emitStorePartial(const Op &op) {
  line(out, "store_partial({}, ptx::warp_index() / kRowWarps * kTileRows + warp_row(), {}, {}, {});",
       operand(op.operand("partial")), operand(op.operand("o")), operand(op.operand("m")), operand(op.operand("l")));
}

/// By which the store functions get from row 0 to the others.
const char *OpEmitter::rowsOfO() const {
  return kernel.packsHeads() ? "packed_rows(cta.params, cta.params.o_stride)" : "cta.params.o_stride[2]";
}
const char *OpEmitter::rowsOfParts() const {
  return kernel.packsHeads() ? "packed_split_rows<kHeadDimV>(cta.params)" : "split_columns<kHeadDimV>()";
}
const char *OpEmitter::rowsOfLse() const { return kernel.packsHeads() ? "packed_lse_rows(cta.params), " : ""; }

void OpEmitter::emitStoreMerged(const Op &op) {
  const bool hasLse = op.operand("lse").buffer != nullptr;
  line(out, "store_merged<kThreads, kKeyWarps, kVectorBytes>(");
  auto scope = out.scope();
  auto deeper = out.scope();
  line(out, "head_rows<Element>(cta.params.o, cta.params.o_stride, place.batch, place.head), {},", rowsOfO());
  line(out, "{}, {}{}, cta.params.scale, cta.params.scale_log2, {}, {});",
       hasLse ? "head_lse(cta.params, place.batch, place.head)" : "nullptr", rowsOfLse(),
       operand(op.operand("partial")), expression(op.expr("row")), expression(op.expr("limit")));
}

void OpEmitter::emitStore(const Op &op) {
  line(out, "Element *const o = head_rows<Element>(cta.params.o, cta.params.o_stride, place.batch, place.head);");
  callStandsHere();
  line(out, "store_rows<kVectorBytes>(o, {}, {}, {} + warp_row(), {});", rowsOfO(), operand(op.operand("o")),
       expression(op.expr("row")), expression(op.expr("limit")));
}

void OpEmitter::emitStoreLse(const Op &op) {
  line(out, "float *const lse = head_lse(cta.params, place.batch, place.head);");
  callStandsHere();
  line(out, "store_lse(lse, {}{}, {}, cta.params.scale, {} + warp_row(), {});", rowsOfLse(), operand(op.operand("m")),
       operand(op.operand("l")), expression(op.expr("row")), expression(op.expr("limit")));
}

/// By the first thread of each group of warps, when all its threads have staged their rows.
void OpEmitter::emitBulkStore(const Op &op) {
  if (op.kind == OpKind::StageOutput)
    return line(out, "stage_rows{}({}, {}, warp_row());",
                op.has("first") ? fmt::format("<{}>", op.integer("first")) : "", operand(op.operand("dst")),
                operand(op.operand("o")));
  if (op.kind == OpKind::BulkCommit)
    return line(out, "commit_boxes_by_group();");
  if (op.kind == OpKind::BulkWait)
    return line(out, "wait_for_boxes_by_group<{}>();", op.integer("pending"));
  line(out, "store_boxes_by_group<{}>({}, cta.group_row, cta.params.o_map, {}, place.head, place.batch);",
       op.has("first") ? fmt::format("kStagedColumns, {}", op.integer("first")) : "kHeadDimV",
       operand(op.operand("src")), expression(op.expr("row")));
}

/// From the registers, or of warps that share keys from where they left their results.
void OpEmitter::emitStoreSplit(const Op &op) {
  line(out, "float *const rows = split_rows<kHeadDimV>(cta.params, {}, place.batch, place.head);",
       expression(op.expr("split")));
  callStandsHere();
  if (op.kind == OpKind::StoreMergedSplit)
    return line(out, "store_merged_split<kWarps, kKeyWarps>(cta.params, rows, {}, {}, {}, {});", rowsOfParts(),
                operand(op.operand("partial")), expression(op.expr("row")), expression(op.expr("limit")));
  line(out, "store_split(rows, {}, {}, {}, {}, {} + warp_row(), {});", rowsOfParts(), operand(op.operand("o")),
       operand(op.operand("m")), operand(op.operand("l")), expression(op.expr("row")), expression(op.expr("limit")));
}

void OpEmitter::emitCombineLast(const Op &op) {
  const bool hasLse = op.operand("lse").buffer != nullptr;
  line(out, "combine_last<kWarps, kKeyWarps, kVectorBytes>(");
  auto scope = out.scope();
  auto deeper = out.scope();
  line(out, "cta.params, {}, split_rows<kHeadDimV>(cta.params, 0, place.batch, place.head), {},",
       operand(op.operand("partial")), rowsOfParts());
  line(out, "head_rows<Element>(cta.params.o, cta.params.o_stride, place.batch, place.head), {},", rowsOfO());
  line(out, "{}, {}{}, {});", hasLse ? "head_lse(cta.params, place.batch, place.head)" : "nullptr", rowsOfLse(),
       expression(op.expr("row")), expression(op.expr("limit")));
}

void OpEmitter::emitBarrier(const Op &op) {
  const llvm::StringRef scope = op.text("scope");
  if (scope != "named")
    return line(out, "{}{}_barrier();", scope == "cluster" ? "" : "ptx::", scope.str());
  const int64_t warps = op.integer("warps"), firstWarp = op.integer("first_warp");
  const int64_t groups = op.has("groups") ? op.integer("groups") : 1;
  std::string id = std::to_string(op.integer("id"));
  if (mmaFamily(kernel.backend).unitWarps > 1 && groups > 1) {
    id += " + cta.group_row / kGroupRows"; // the same for all threads, as a register of each is not
  } else if (groups > 1) {                 // each group has its own barrier
    const std::string warp = firstWarp == 0 ? "ptx::warp_index()" : fmt::format("(ptx::warp_index() - {})", firstWarp);
    const bool isInterleaved = op.has("interleaved") && op.integer("interleaved") != 0;
    id += isInterleaved ? fmt::format(" + {} % {}", warp, groups) : fmt::format(" + {} / {}", warp, warps / groups);
  }
  line(out, "ptx::named_barrier({}, {});", id, 32 * warps / groups);
}

/// O and LSE on their way out of the CTA: whole, or the key warps' results, or the part of a split.
void OpEmitter::emitResult(const Op &op) {
  switch (op.kind) {
  case OpKind::StorePartial:
    return emitStorePartial(op);
  case OpKind::StoreMerged:
    return emitStoreMerged(op);
  case OpKind::Store:
    return emitStore(op);
  case OpKind::StoreLse:
    return emitStoreLse(op);
  case OpKind::CombineLast:
    return emitCombineLast(op);
  default:
    return emitStoreSplit(op);
  }
}

/// Whether it holds others, or all that it names are registers.
static bool isSilent(const Op &op) {
  auto isRegisters = [](const Operand &operand) { return !operand.buffer || operand.buffer->space == Space::Fragment; };
  if (op.kind == OpKind::Vote)
    return llvm::all_of(op.body.ops, [](const std::unique_ptr<Op> &inner) { return isSilent(*inner); });
  return opInfo(op.kind).hasBody || (!op.operands.empty() && llvm::all_of(op.operands, isRegisters));
}

size_t OpEmitter::emitOps(llvm::ArrayRef<const Op *> ops) {
  if (ops.front() == doneBefore)
    return 1;
  const Composition composition = compositionOf(ops);
  doneBefore = composition.later ? composition.later : doneBefore;
  comment(*ops.front());
  const Op &op = *composition.subject;
  places.push_back({out.getLine(), (role + points.nameOf(&op)).str(), op.location.isKnown() ? op.location.str() : "",
                    op.site, isSilent(op)});
  if (emitOwn(op))
    return 1;
  if (!composition.isSingle())
    emitComposition(composition);
  else
    emit(op);
  return composition.count;
}

void OpEmitter::emit(const Op &op) {
  switch (op.kind) {
  case OpKind::CopyIssue:
    return op.text("kind") == "bulk" ? emitBulkCopy(op) : emitCopyIssue(op);
  case OpKind::CopyCommit:
    return line(out, "ptx::cp_async_commit();");
  case OpKind::CopyWait:
    return line(out, "ptx::cp_async_wait<{}>();", op.integer("pending"));
  case OpKind::LoadFragment:
    return line(out, "load_operand({}, {}, warp_row());", operand(op.operand("dst")), operand(op.operand("src")));
  case OpKind::Map:
    return emitMap(op);
  case OpKind::Reduce:
    return emitReduce(op);
  case OpKind::Mma:
    return emitMma(op);
  case OpKind::Vote:
    return emitVote(op);
  case OpKind::Convert:
    return emitConvert(op);
  case OpKind::StorePartial:
  case OpKind::StoreMerged:
  case OpKind::Store:
  case OpKind::StoreLse:
  case OpKind::StoreSplit:
  case OpKind::StoreMergedSplit:
  case OpKind::CombineLast:
    return emitResult(op);
  case OpKind::Barrier:
    return emitBarrier(op);
  case OpKind::MmaIssue:
  case OpKind::MmaCommit:
  case OpKind::MmaWait:
    return emitAsyncMma(op);
  case OpKind::MbarrierInit:
  case OpKind::Arrive:
  case OpKind::Wait:
  case OpKind::AwaitTurn:
  case OpKind::PassTurn:
  case OpKind::Fence:
    return emitSync(op);
  case OpKind::FetchTile:
  case OpKind::HandTile:
  case OpKind::TakeTile:
    return emitHandover(op);
  case OpKind::Loop:
    return emitLoop(op);
  case OpKind::StageOutput:
  case OpKind::BulkStore:
  case OpKind::BulkCommit:
  case OpKind::BulkWait:
    return emitBulkStore(op);
  case OpKind::Combine: // a kernel of its own
  case OpKind::If:
  case OpKind::Place:
    break;
  }
  llvm::report_fatal_error("emit: no text for op '" + opInfo(op.kind).name + "' here (" +
                           llvm::Twine(op.location.str()) + ")");
}

void OpEmitter::emitMark(device::Stage stage, bool isBeforeWait) {
  const std::string name = enumeratorOf(stage);
  if (marks == Marks::Samples && !isWait(stage))
    line(out, "{}.{}<kSampled>(Stage::{});", clock.name, isBeforeWait ? "sample_before_wait" : "sample", name);
  else
    line(out, "{}.mark({}, Stage::{});", clock.name, clock.params, name);
}

void OpEmitter::emitBlock(llvm::ArrayRef<const Op *> ops) {
  std::vector<device::Stage> stages;
  if (marks != Marks::None)
    stages = stagesOf(ops);
  knowsRedone = false;
  for (size_t i = 0; i != ops.size(); ++i) {
    i += emitOps(ops.drop_front(i)) - 1;
    if (marks == Marks::None || ops[i]->kind == OpKind::Loop) // whose steps tell for themselves
      continue;
    if (i + 1 == ops.size())
      emitMark(stages[i], /*isBeforeWait=*/true); // what follows the loop is told, too
    else if (stages[i + 1] != stages[i] || ops[i + 1]->kind == OpKind::Loop)
      emitMark(stages[i], isWait(stages[i + 1]));
  }
}
