// fagen: one emit function an op: which call of the device library it becomes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpEmitter.h"

#include "KernelEmitter.h"
#include "LoopText.h"
#include "Stages.h"

#include "fagen/IR/Queries.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

using namespace fagen;
using namespace fagen::ir;

Expr fagen::spellRunValues(const Expr &expr, llvm::function_ref<llvm::StringRef(RunScope)> holderOf) {
  auto member = [&](const RunValueInfo &info, llvm::StringRef prefix) {
    const llvm::StringRef holder = holderOf(info.scope);
    return holder.empty() ? Expr() : variable((holder + "." + prefix + info.name).str());
  };
  return expr.rewritten([&](const Expr &node) {
    if (node.kind() == ExprKind::Variable) {
      const RunValueInfo *const info = findRunValue(node.name());
      return info ? member(*info, "") : Expr();
    }
    if (node.kind() == ExprKind::FloorDiv)
      for (const RunValueInfo &info : kRunValues)
        if (info.kind == RunKind::Divisor && node.rhs() == member(info, ""))
          return Expr::binary(ExprKind::FloorDiv, node.lhs(), member(info, "by_"));
    return Expr();
  });
}

/// Tiles of query rows are taken in turn: the loop's variable counts them, what it carries the steps before.
static Expr spellTurns(const Kernel &kernel, Expr expr) {
  for (const Role &role : kernel.roles)
    if (const auto loop = turnsOf(role))
      expr = expr.substitute(loop->variable(), variable("cta.turn")).substitute(loop->carry(), variable("cta.base"));
  return expr;
}

std::string OpEmitter::expression(const Expr &expr) const {
  Expr spelled = spellRunValues(expr, [&](RunScope scope) -> llvm::StringRef {
    switch (scope) {
    case RunScope::Launch:
      return "cta.params";
    case RunScope::Tile:
    case RunScope::Split:
      return inEpilogue ? "place" : "cta";
    case RunScope::Group:
      return "cta";
    case RunScope::Cta:
    case RunScope::Element:
      return "";
    }
    return "";
  });
  for (const Let &let : kernel.lets)
    spelled = spelled.substitute(let.name, variable("cta." + let.name));
  return spellTurns(kernel, spelled).str();
}

static bool isShared(const Operand &operand) { return operand.buffer->space == Space::Shared; }

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
    return tileUses().isOfScores(op)    ? "S = Q K^T"
           : op.isSet(Attr::Accumulate) ? "O += P V"
                                        : "P V, which no lane can add to its O yet";
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
  const CopyIssueOp copy(op);
  const Operand &target = copy.dst();
  const std::string &tensor = copy.src().buffer->param;
  const bool isAsync = copy.kind() == CopyKind::CpAsync;
  std::optional<IndentedStream::Scope> scope;
  if (copy.when() && !(copy.when().kind() == ExprKind::Constant && copy.when().value() != 0)) {
    line(out, "if ({})", expression(copy.when()));
    scope.emplace(out);
    callStandsHere();
  }
  if (copy.src().buffer->isPacked)
    return line(out,
                "copy_packed_tile{}<kThreads, kVectorBytes>({}, cta.{}, packed_rows(cta.params, "
                "cta.params.{}_stride), {}, {});",
                isAsync ? "_async" : "", operand(target), tensor, tensor, expression(copy.row()),
                expression(copy.limit()));
  line(out, "copy_{}tile{}<kThreads, kVectorBytes>({}, {}{}, cta.params.{}_stride[2], {}, {});",
       copy.running() ? "next_" : "", isAsync ? "_async" : "", operand(target), copy.running() ? "r.next_" : "cta.",
       tensor, tensor, expression(copy.row()), expression(copy.limit()));
}

void OpEmitter::emitBulkCopy(const Op &op) {
  const CopyIssueOp copy(op);
  const bool isOfQueries = tileUses().of(*copy.dst().buffer) == TileUse::Left; // which no other CTA reads
  line(out, "{}({}, cta.params.{}_map, {}, cta.{}, cta.batch, {}, ptx::CacheHint::{});",
       copy.cluster() ? "copy_share<kCluster>" : "copy_tile_box", operand(copy.dst()), copy.src().buffer->param,
       expression(copy.row()), isOfQueries ? "head" : "kv_head", mbarrier(copy.full()),
       isOfQueries ? "kEvictFirst" : "kEvictLast");
}

std::string OpEmitter::mbarrier(const Operand &operand) const {
  return fmt::format("cta.shared.{}, {}", operand.buffer->name,
                     operand.buffer->isRing ? expression(operand.position) : "0");
}

/// As the text counts warps; the number where one arrives, or the text has no such constants.
std::string OpEmitter::arrivalsAt(const MbarrierInitOp<const Op> &init) const {
  std::string text = std::to_string(init.arrivals());
  for (const Role &of : kernel.roles)
    forEach<ArriveOp>(of.body, [&](ArriveOp<const Op> arrive) {
      if (arrive.bar().buffer != init.bar().buffer || !countsWarps())
        return;
      const bool isByWarp = arrive.by() == Actor::Warp, isByGroup = arrive.by() == Actor::Group;
      const int64_t units = isByWarp ? of.warps : isByGroup ? of.warps / kGroupWarps : 1;
      if (units == 1 || init.arrivals() % units != 0 || (init.arrivals() != units && !arrive.cluster()))
        return;
      text = fmt::format("{}{}", init.arrivals() == units ? "" : "kCluster * ", isByWarp ? "kWarps" : "kWarps / 4");
    });
  return text;
}

/// The tiles of one slot where these are the bytes.
std::string OpEmitter::bytesAt(const ArriveOp<const Op> &arrive) const {
  std::string tiles;
  int64_t bytes = 0;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (fullOf(*buffer) == arrive.bar().buffer) {
      tiles += fmt::format("{}sizeof({})", tiles.empty() ? "" : " + ", typeName(buffer->name));
      bytes += buffer->bytes() / buffer->stages;
    }
  return arrive.bytes() == constant(bytes) ? tiles : expression(arrive.bytes());
}

void OpEmitter::emitArrive(const Op &op) {
  const ArriveOp arrive(op);
  const std::string bar = mbarrier(arrive.bar());
  if (arrive.bytes())
    return line(out, "arrive_expecting({}, {});{}", bar, bytesAt(arrive), noteBehind(op));
  const bool isByOne = arrive.by() == Actor::Group || arrive.by() == Actor::Warp;
  const std::string by = isByOne ? "_by_" + toString(arrive.by()).str() : "";
  if (arrive.cluster())
    return line(out, "arrive_in_cluster{}<kCluster>({});{}", by, bar, noteBehind(op));
  line(out, "arrive{}({});{}", by, bar, noteBehind(op));
}

void OpEmitter::emitSync(const Op &op) {
  if (const auto init = dynCast<MbarrierInitOp>(op)) {
    const Operand &bar = init->bar();
    return line(out, "ptx::mbarrier_init(cta.shared.{}.address({}), {});", bar.buffer->name,
                bar.buffer->isRing ? bar.position.str() : "0", arrivalsAt(*init));
  }
  if (const auto wait = dynCast<WaitOp>(op))
    return line(out, "wait_for({});{}", mbarrier(wait->bar()), noteBehind(op));
  if (op.kind == OpKind::Arrive)
    return emitArrive(op);
  if (op.kind == OpKind::Fence)
    return emitFence(op);
  emitTurn(op);
}

static const Role &roleOf(const Kernel &kernel, const Op &op) {
  return *llvm::find_if(kernel.roles, [&](const Role &role) {
    bool found = false;
    walk(role.body, [&](const Op &each) { found |= &each == &op; });
    return found;
  });
}

/// In front of the loop over tiles and behind it one group does, by its number among all groups of the CTA.
void OpEmitter::emitTurn(const Op &op) {
  std::optional<IndentedStream::Scope> scope;
  std::string row = "cta.group_row";
  if (op.has(Attr::Group)) {
    const int64_t group = op.integer(Attr::Group);
    line(out, "if (ptx::warp_group_index() == {})", group + roleOf(kernel, op).firstWarp / kGroupWarps);
    scope.emplace(out);
    callStandsHere();
    row = fmt::format("{} * kGroupRows", group);
  }
  line(out, "{}<kWarps / 4>({}, {});{}", opInfo(op.kind).name.str(), op.integer(Attr::Id), row, noteBehind(op));
}

void OpEmitter::emitFence(const Op &op) {
  switch (FenceOp(op).kind()) {
  case FenceKind::Mma:
    return line(out, "ptx::wgmma_fence();");
  case FenceKind::MbarrierInit:
    return line(out, "ptx::mbarrier_init_fence();");
  case FenceKind::AsyncProxy:
    return line(out, "ptx::fence_proxy_async();");
  }
}

std::string OpEmitter::tileOf(const char *ticket, const char *params) const {
  if (!measureOf(kernel, Measure::TurnRows))
    return ticket;
  return fmt::format("longest_tile_first<kTileRows, kTurnRows{}>({}, {})",
                     measureOf(kernel, Measure::TurnTiles) ? ", kTurnTiles" : "", params, ticket);
}

/// A thread keeps what it drew, and the number that it hands over or takes, in variables of those names.
void OpEmitter::emitHandover(const Op &op) {
  if (op.kind == OpKind::FetchTile)
    return line(out, "const unsigned drawn = draw<kTileRows>(cta.params);");
  if (const auto take = dynCast<TakeTileOp>(op))
    return line(out, "const int next = take_tile(cta.shared.{});", take->src().buffer->name);
  line(out, "const int next = {};", tileOf("ticket_of<kTileRows>(cta.params, drawn)", "cta.params"));
  callStandsHere();
  line(out, "hand_tile(cta.shared.{}, next);", HandTileOp(op).dst().buffer->name);
}

void OpEmitter::emitAsyncMma(const Op &op) {
  if (op.kind == OpKind::MmaCommit)
    return line(out, "ptx::wgmma_commit();");
  if (const auto wait = dynCast<MmaWaitOp>(op))
    return line(out, "ptx::wgmma_wait<{}>();", wait->pending());
  const MmaIssueOp product(op);
  const std::string acc = operand(product.acc()), a = operand(product.a()), b = operand(product.b());
  if (isShared(product.a()) && product.held().buffer)
    line(out, "issue_abt({}, {}, {}, cta.group_row, {});", acc, operand(product.held()), a, b);
  else if (isShared(product.a()))
    line(out, "issue_{}abt({}, {}, cta.group_row, {});", product.accumulate() ? "add_" : "", acc, a, b);
  else
    line(out, "issue_ab({}, {}, {});", acc, a, b);
}

void OpEmitter::emitLoop(const Op &op) {
  const LoopOp loop(op);
  line(out, "{} {{",
       loopHead(loop.variable(), loop.begin(), loop.end(), false, [&](const Expr &expr) { return expression(expr); }));
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
  const MmaOp product(op);
  const std::string acc = operand(product.acc()), a = operand(product.a()), b = operand(product.b());
  const bool isTransposed = product.form() == MmaForm::Abt;
  const MmaFamilyInfo &family = mmaFamily(kernel.backend);
  if (!family.keepsResults)
    return line(out, "{}({}, {}, {}, warp_row());", (isTransposed ? family.abt : family.ab).str(), acc, a, b);
  const bool isAdded = isTransposed && product.accumulate(); // the other form always is
  const std::string function = std::string(isAdded        ? "mma_add_abt"
                                           : isTransposed ? "mma_abt"
                                                          : "mma_ab") +
                               (product.sums() ? "_f16" : "");
  if (isTransposed && isShared(product.a()))
    line(out, "{}({}, {}, warp_row(), {}, warp_key());", function, acc, a, b);
  else
    line(out, "{}({}, {}, {}, warp_key());", function, acc, a, b);
}

void OpEmitter::emitLoadFragment(const Op &op) {
  const LoadFragmentOp load(op);
  line(out, "load_operand({}, {}, warp_row());", operand(load.dst()), operand(load.src()));
}

void OpEmitter::emitConvert(const Op &op) {
  const ConvertOp convert(op);
  const std::string p = operand(convert.p()), s = operand(convert.s());
  if (isShared(convert.s()))
    line(out, "convert<kWarpRows>({}, {}, warp_row());", p, s);
  else
    line(out, "convert({}, {});", p, s);
}

void OpEmitter::emitStorePartial(const Op &op) {
  const StorePartialOp store(op);
  line(out, "store_partial({}, ptx::warp_index() / kRowWarps * kTileRows + warp_row(), {}, {}, {});",
       operand(store.partial()), operand(store.o()), operand(store.m()), operand(store.l()));
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
  const StoreMergedOp store(op);
  const bool hasLse = store.lse().buffer != nullptr;
  line(out, "store_merged<kThreads, kKeyWarps, kVectorBytes>(");
  auto scope = out.scope();
  auto deeper = out.scope();
  line(out, "head_rows<Element>(cta.params.o, cta.params.o_stride, place.batch, place.head), {},", rowsOfO());
  line(out, "{}, {}{}, cta.params.scale, cta.params.scale_log2, {}, {});",
       hasLse ? "head_lse(cta.params, place.batch, place.head)" : "nullptr", rowsOfLse(), operand(store.partial()),
       expression(store.row()), expression(store.limit()));
}

void OpEmitter::emitStore(const Op &op) {
  const StoreOp store(op);
  line(out, "Element *const o = head_rows<Element>(cta.params.o, cta.params.o_stride, place.batch, place.head);");
  callStandsHere();
  line(out, "store_rows<kVectorBytes>(o, {}, {}, {} + warp_row(), {});", rowsOfO(), operand(store.o()),
       expression(store.row()), expression(store.limit()));
}

void OpEmitter::emitStoreLse(const Op &op) {
  const StoreLseOp store(op);
  line(out, "float *const lse = head_lse(cta.params, place.batch, place.head);");
  callStandsHere();
  line(out, "store_lse(lse, {}{}, {}, cta.params.scale, {} + warp_row(), {});", rowsOfLse(), operand(store.m()),
       operand(store.l()), expression(store.row()), expression(store.limit()));
}

/// By the first thread of each group of warps, when all its threads have staged their rows.
void OpEmitter::emitBulkStore(const Op &op) {
  const std::string first = op.has(Attr::First) ? std::to_string(op.integer(Attr::First)) : "";
  if (const auto stage = dynCast<StageOutputOp>(op))
    return line(out, "stage_rows{}({}, {}, warp_row());", first.empty() ? "" : "<" + first + ">", operand(stage->dst()),
                operand(stage->o()));
  if (op.kind == OpKind::BulkCommit)
    return line(out, "commit_boxes_by_group();");
  if (const auto wait = dynCast<BulkWaitOp>(op))
    return line(out, "wait_for_boxes_by_group<{}>();", wait->pending());
  const BulkStoreOp store(op);
  line(out, "store_boxes_by_group<{}>({}, cta.group_row, cta.params.o_map, {}, place.head, place.batch);",
       first.empty() ? "kHeadDimV" : "kStagedColumns, " + first, operand(store.src()), expression(store.row()));
}

/// From the registers, or of warps that share keys from where they left their results.
void OpEmitter::emitStoreSplit(const Op &op) {
  const std::string row = expression(op.expr(Attr::Row)), limit = expression(op.expr(Attr::Limit));
  line(out, "float *const rows = split_rows<kHeadDimV>(cta.params, {}, place.batch, place.head);",
       expression(op.expr(Attr::Split)));
  callStandsHere();
  if (const auto merged = dynCast<StoreMergedSplitOp>(op))
    return line(out, "store_merged_split<kWarps, kKeyWarps>(cta.params, rows, {}, {}, {}, {});", rowsOfParts(),
                operand(merged->partial()), row, limit);
  const StoreSplitOp store(op);
  line(out, "store_split(rows, {}, {}, {}, {}, {} + warp_row(), {});", rowsOfParts(), operand(store.o()),
       operand(store.m()), operand(store.l()), row, limit);
}

void OpEmitter::emitCombineLast(const Op &op) {
  const CombineLastOp combine(op);
  const bool hasLse = combine.lse().buffer != nullptr;
  line(out, "combine_last<kWarps, kKeyWarps, kVectorBytes>(");
  auto scope = out.scope();
  auto deeper = out.scope();
  line(out, "cta.params, {}, split_rows<kHeadDimV>(cta.params, 0, place.batch, place.head), {},",
       operand(combine.partial()), rowsOfParts());
  line(out, "head_rows<Element>(cta.params.o, cta.params.o_stride, place.batch, place.head), {},", rowsOfO());
  line(out, "{}, {}{}, {});", hasLse ? "head_lse(cta.params, place.batch, place.head)" : "nullptr", rowsOfLse(),
       expression(combine.row()), expression(combine.limit()));
}

void OpEmitter::emitBarrier(const Op &op) {
  const BarrierOp barrier(op);
  if (barrier.scope() != BarrierScope::Named)
    return line(out, "{}{}_barrier();",
                barrier.scope() == BarrierScope::Cluster ? "" : "ptx::", toString(barrier.scope()).str());
  const int64_t warps = *barrier.warps(), firstWarp = *barrier.firstWarp(), groups = barrier.groups();
  std::string id = std::to_string(*barrier.id());
  if (mmaFamily(kernel.backend).unitWarps > 1 && groups > 1) {
    id += " + cta.group_row / kGroupRows"; // the same for all threads, as a register of each is not
  } else if (groups > 1) {                 // each group has its own barrier
    const std::string warp = firstWarp == 0 ? "ptx::warp_index()" : fmt::format("(ptx::warp_index() - {})", firstWarp);
    id += barrier.interleaved() ? fmt::format(" + {} % {}", warp, groups)
                                : fmt::format(" + {} / {}", warp, warps / groups);
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
  places.push_back({out.getLine(), (role ? role->name + "." : "") + points.nameOf(&op),
                    op.location.isKnown() ? op.location.str() : "", op.site, isSilent(op)});
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
    return isBulkCopy(op) ? emitBulkCopy(op) : emitCopyIssue(op);
  case OpKind::CopyCommit:
    return line(out, "ptx::cp_async_commit();");
  case OpKind::CopyWait:
    return line(out, "ptx::cp_async_wait<{}>();", CopyWaitOp(op).pending());
  case OpKind::LoadFragment:
    return emitLoadFragment(op);
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
    stages = stagesOf(ops, tileUses());
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
