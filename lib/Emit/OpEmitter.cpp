// fagen: one emit function an op: which call of the device library it becomes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpEmitter.h"

#include "Stages.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Patterns.h"
#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/ValueRange.h"
#include "fagen/Spec/Options.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

using namespace fagen;
using namespace fagen::ir;

static bool isNotNegative(const Kernel &kernel, const Expr &expr) { return valueRange(kernel, expr).low >= 0; }

static std::string listOf(llvm::ArrayRef<Expr> values, llvm::function_ref<std::string(const Expr &)> spell) {
  std::string text;
  for (const Expr &value : values)
    text += (text.empty() ? "" : ", ") + spell(value);
  return text;
}

/// Whether it differs between elements, or between the key tiles that the lanes of a warp judge.
static bool isOfPlace(const Kernel &kernel, const Expr &expr) {
  return usesScope(expr, RunScope::Element) || llvm::any_of(kernel.lets, [&](const Let &let) {
           return let.judged && (expr.uses(let.judged->low) || expr.uses(let.judged->high));
         });
}

/// Whether such a place decides what is read.
static bool readsByPlace(const Kernel &kernel, const Expr &expr) {
  return (isReadOfElement(kernel, expr) && isOfPlace(kernel, expr)) ||
         llvm::any_of(expr.operands(), [&](const Expr &operand) { return readsByPlace(kernel, operand); });
}

/// form.map(b, h, i, j), or form.map.zero_if(known, b, h, i, j); of a box form.map, {b, h, i0, j0}, {b, h, i1, j1}, for
/// lowest or highest.
static std::string spellRead(const Kernel &kernel, const Expr &read, llvm::StringRef holder,
                             llvm::function_ref<std::string(const Expr &)> spell, const Expr &known = {}) {
  const llvm::StringRef name = read.operands().front().name().drop_front();
  const llvm::ArrayRef<Expr> indices = read.indices();
  const size_t rank = kernel.buffer(name)->shape.size();
  if (known)
    return fmt::format("{}form.{}.zero_if({}, {})", holder.str(), name.str(), spell(known), listOf(indices, spell));
  if (indices.size() == rank)
    return fmt::format("{}form.{}({})", holder.str(), name.str(), listOf(indices, spell));
  const llvm::StringRef member = kernel.buffer(name)->param.empty() ? "" : "form.";
  return fmt::format("{}{}{}, {{{}}}, {{{}}}", holder.str(), member.str(), name.str(),
                     listOf(indices.take_front(rank), spell), listOf(indices.drop_front(rank), spell));
}

/// floor_div(a, by_b), floor_mod(a, b, by_b), ceil_div(a, b, by_b), rest_of(a, b, by_b)
static std::string spellDivision(const Kernel &kernel, const Expr &node, const std::string &by,
                                 llvm::function_ref<std::string(const Expr &)> spell) {
  if (node.kind() != ExprKind::FloorDiv)
    return fmt::format("{}({}, {}, {})", node.kind() == ExprKind::Mod ? "rest_of" : nameOfCall(node.kind()).str(),
                       spell(node.lhs()), spell(node.rhs()), by);
  return fmt::format("{}floor_div({}, {})", isNotNegative(kernel, node.lhs()) ? "" : "signed_", spell(node.lhs()), by);
}

/// a, b and c of a && b && c.
static void collectConditions(const Expr &expr, ExprKind kind, llvm::SmallVectorImpl<Expr> &conditions) {
  if (expr.kind() != kind)
    return conditions.push_back(expr);
  for (const Expr &operand : expr.operands())
    collectConditions(operand, kind, conditions);
}

/// What becomes a call of the device library. No branches around reads: all_of(a, b) for a && b, and zero_if.
static std::optional<std::string> spellCall(const Kernel &kernel, const TileDivisors &divisors, const Expr &node,
                                            llvm::StringRef holder,
                                            llvm::function_ref<std::string(const Expr &)> spell) {
  if ((node.kind() == ExprKind::And || node.kind() == ExprKind::Or) && readsByPlace(kernel, node)) {
    llvm::SmallVector<Expr, 4> conditions;
    collectConditions(node, node.kind(), conditions);
    return fmt::format("{}({})", node.kind() == ExprKind::And ? "all_of" : "any_of", listOf(conditions, spell));
  }
  if (const Expr read = guardedRead(kernel, node); read && usesScope(read, RunScope::Element))
    return spellRead(kernel, read, holder, spell, node.operands()[0]);
  if (node.kind() == ExprKind::Read)
    return spellRead(kernel, node, holder, spell);
  if (const TileDivisor *const divisor = divisors.of(node))
    return spellDivision(kernel, node, (holder + divisor->name).str(), spell);
  const bool isDivision = node.kind() == ExprKind::FloorDiv || node.kind() == ExprKind::CeilDiv;
  if (!isDivision || isNotNegative(kernel, node.lhs()))
    return std::nullopt;
  return fmt::format("signed_{}({})", nameOfCall(node.kind()).str(), listOf(node.operands(), spell));
}

/// From the whole to its parts: what is asked of an expression is asked before its text stands in its place.
Expr fagen::spellCalls(const Kernel &kernel, const TileDivisors &divisors, const Expr &expr, llvm::StringRef holder,
                       llvm::function_ref<std::string(const Expr &)> spell) {
  if (expr.kind() == ExprKind::Real)
    return variable(spellReal(expr.realValue()));
  if (const std::optional<std::string> call = spellCall(kernel, divisors, expr, holder, spell))
    return variable(*call);
  if (expr.kind() == ExprKind::Ascending)
    return spellCalls(kernel, divisors, expr.operand(), holder, spell);
  llvm::SmallVector<Expr, 3> operands;
  for (const Expr &operand : expr.operands())
    operands.push_back(spellCalls(kernel, divisors, operand, holder, spell));
  return operands.empty() ? expr : expr.withOperands(operands);
}

Expr fagen::spellRunValues(const Expr &expr, llvm::function_ref<llvm::StringRef(RunScope)> holderOf) {
  auto member = [&](const RunValueInfo &info, llvm::StringRef prefix) {
    const llvm::StringRef holder = holderOf(info.scope);
    const llvm::StringRef name = info.value == RunValue::BatchIndex ? "batch" : llvm::StringRef(info.name);
    return holder.empty() ? Expr() : variable((holder + "." + prefix + name).str());
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

std::string OpEmitter::expression(const Expr &expr) const {
  const Expr called =
      spellCalls(kernel, divisors, expr, "cta.", [&](const Expr &operand) { return expression(operand); });
  const Expr spelled = spellRunValues(called, [&](RunScope scope) -> llvm::StringRef {
    const bool isOfTile = scope == RunScope::Tile || scope == RunScope::Split;
    return scope == RunScope::Launch              ? "cta.params"
           : isOfTile && inEpilogue               ? "place"
           : isOfTile || scope == RunScope::Group ? "cta"
                                                  : "";
  });
  return spelled.rewritten([&](const Expr &node) { return memberOfCta(node); }).str();
}

/// A let, a scalar, or of tiles of query rows that are taken in turn their number, and what the loop carries; null for
/// others.
Expr OpEmitter::memberOfCta(const Expr &node) const {
  if (node.kind() != ExprKind::Variable)
    return {};
  const llvm::StringRef name = node.name();
  auto isNamed = [&](const auto &each) { return each.name == name; };
  if (llvm::any_of(kernel.lets, isNamed) || llvm::any_of(kernel.scalars, isNamed))
    return variable(("cta." + name).str());
  for (const Role &role : kernel.roles)
    if (const auto loop = turnsOf(role))
      for (const auto &[of, member] : {std::pair(loop->variable(), "cta.turn"), std::pair(loop->carry(), "cta.base")})
        if (name == of)
          return variable(member);
  return {};
}

std::string OpEmitter::headOf(const Op &op) const {
  const Matrix matrix = matrixOf(op);
  return fmt::format("{}, {}", expression(matrix.at()[0]), expression(firstOf(matrix, 1)));
}

Expr fagen::firstOf(const Matrix &matrix, unsigned dimension) {
  const Expr row = variable(matrix.map().row);
  return matrix.at()[dimension]
      .rewritten([&](const Expr &node) {
        const bool isOfPacked = node.kind() == ExprKind::Mod || node.kind() == ExprKind::FloorDiv;
        return isOfPacked && node.lhs() == row ? constant(0) : Expr();
      })
      .substitute(matrix.map().row, constant(0));
}

std::string OpEmitter::nameOr(Measure measure, int64_t number) const {
  return measureOf(kernel, measure) ? nameOf(measure).str() : std::to_string(number);
}

static bool isShared(const Operand &operand) { return operand.buffer->space == Space::Shared; }

bool fagen::isOfKeys(const Kernel &kernel, const Buffer &ring) {
  bool isOfOthers = false;
  for (const Role &role : kernel.roles)
    forEach<CopyIssueOp>(role.body, [&](CopyIssueOp<const Op> copy) {
      isOfOthers |= copy.dst().buffer == &ring && !Matrix(copy.src()).at()[1].uses(nameOf(RunValue::KvHead));
    });
  return !isOfOthers;
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
                               : expression(operand.position % buffer.stages.expr());
  return fmt::format("cta.shared.{}{}[{}]", isInKvRing(buffer) ? "ring." : "", buffer.name, slot);
}

/// Short calls, of which a step has many: a comment at the end of the line says what each is for.
static bool hasNoteAfter(const Op &op) {
  return op.kind == OpKind::Arrive || op.kind == OpKind::Wait || op.kind == OpKind::AwaitTurn ||
         op.kind == OpKind::PassTurn;
}

void OpEmitter::comment(const Op &op) {
  if (hasNoteAfter(op))
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
  if (isBulkCopy(op))
    return emitBulkCopy(copy);
  std::optional<IndentedStream::Scope> scope;
  if (copy.when() && !(copy.when().kind() == ExprKind::Constant && copy.when().value() != 0)) {
    line(out, "if ({})", expression(copy.when()));
    scope.emplace(out);
    callStandsHere();
  }
  emitCopy(copy);
}

void OpEmitter::emitCopy(CopyIssueOp<const Op> copy) {
  const Operand &target = copy.dst();
  const Matrix matrix(copy.src());
  const std::string &tensor = matrix.tensor().param, end = expression(matrix.rows());
  const bool isAsync = copy.kind() == CopyKind::CpAsync;
  if (!hasEvenRows(matrix))
    return line(out,
                "copy_packed_tile{}<kThreads, kVectorBytes>({}, cta.{}, packed_rows(cta.params, "
                "cta.params.{}_stride), {}, {});",
                isAsync ? "_async" : "", operand(target), tensor, tensor, expression(copy.row()), end);
  line(out, "copy_{}tile{}<kThreads, kVectorBytes>({}, {}{}, cta.params.{}_stride[2], {}, {});",
       copy.running() ? "next_" : "", isAsync ? "_async" : "", operand(target), copy.running() ? "r.next_" : "cta.",
       tensor, tensor, expression(copy.row()), end);
}

std::string fagen::clusterOf(const Kernel &kernel) {
  const llvm::StringRef name = optionInfo(OptionKey::Cluster).constant;
  const bool isNamed = kernel.hasConstant(name) && kernel.constant(name) == kernel.grid.cluster;
  return isNamed ? name.str() : std::to_string(kernel.grid.cluster);
}

std::string fagen::cacheHintOf(CopyIssueOp<const Op> copy) {
  return !copy.hint()                            ? ""
         : *copy.hint() == CacheHint::EvictFirst ? ", ptx::CacheHint::kEvictFirst"
                                                 : ", ptx::CacheHint::kEvictLast";
}

void OpEmitter::emitBulkCopy(CopyIssueOp<const Op> copy) {
  const Matrix matrix(copy.src());
  line(out, "{}({}, cta.params.{}_map, {}, {}, {}, {}{});",
       copy.cluster() ? "copy_share<" + clusterOf(kernel) + ">" : "copy_tile_box", operand(copy.dst()),
       matrix.tensor().param, expression(copy.row() + firstOf(matrix, 2)), expression(matrix.at()[1]),
       expression(matrix.at()[0]), mbarrier(copy.full()), cacheHintOf(copy));
}

std::string fagen::loopHead(LoopOp<const Op> loop, bool runsAtMostOnce,
                            llvm::function_ref<std::string(const Expr &)> spell) {
  const std::string variable = loop.variable().str();
  const std::optional<OneStep> once = oneStepOf(variable, loop.begin(), loop.end());
  if (!once && !runsAtMostOnce)
    return fmt::format("for (int {0} = {1}; {0} < {2}; ++{0})", variable, spell(loop.begin()), spell(loop.end()));
  const OneStep step = once ? *once : OneStep{loop.begin(), lessThan(ir::variable(variable), loop.end())};
  return fmt::format("if (const int {} = {}; {})", variable, spell(step.begin), spell(step.condition));
}

void OpEmitter::emitLoop(const Op &op) {
  inBraces(loopHead(LoopOp(op), false, [&](const Expr &expr) { return expression(expr); }),
           [&] { emitBlock(pointersTo(op.body.ops)); });
}

void OpEmitter::inBraces(const std::string &head, llvm::function_ref<void()> body) {
  const Braces scope(out, "}", "{} {{", head);
  body();
}

/// Warps, or groups of them, have rows of what lies in shared memory; warps side by side divide the right operand.
void OpEmitter::emitMma(const Op &op) {
  const Product product = *asProduct(op);
  const std::string function = functionOf(kernel, product).str() + (product.sumsInF16 ? "_f16" : "") +
                               (product.first != 0 ? fmt::format("<{}>", product.first) : "");
  const std::string acc = operand(op.operands[MmaOp<>::kAcc]), b = operand(op.operands[MmaOp<>::kB]);
  std::string a = operand(op.operands[MmaOp<>::kA]);
  if (!mmaFamily(kernel.backend).keepsResults)
    return line(out, "{}({}, {}, {}, warp_row());", function, acc, a, b);
  if (product.a->space == Space::Shared)
    a += product.isAsynchronous ? ", cta.group_row" : ", warp_row()";
  if (product.isAsynchronous)
    for (const Operand &columns : llvm::reverse(columnsInRegisters(op)))
      a = operand(columns) + ", " + a;
  line(out, "{}({}, {}, {}{});", function, acc, a, b, product.isAsynchronous ? "" : ", warp_key()");
}

void OpEmitter::emitConvert(const Op &op) {
  const ConvertOp convert(op);
  const std::string p = operand(convert.p()), s = operand(convert.s());
  if (isShared(convert.s()) && convert.p().buffer->type == ElementType::F32)
    line(out, "convert({}, {}, warp_row(){});", p, s, mmaFamily(kernel.backend).isAsynchronous ? "" : ", warp_key()");
  else if (isShared(convert.s()))
    line(out, "convert<kWarpRows>({}, {}, warp_row());", p, s);
  else
    line(out, "convert{}({}, {});", convert.p().buffer->isPaired ? "_paired" : "", p, s);
}

/// Whether it holds others, or all that it names are registers.
static bool isSilent(const Op &op) {
  auto isRegisters = [](const Operand &operand) { return !operand.buffer || operand.buffer->space == Space::Fragment; };
  if (op.kind == OpKind::Vote)
    return llvm::all_of(op.body.ops, [](const std::unique_ptr<Op> &inner) { return isSilent(*inner); });
  return opInfo(op.kind).hasBody || (!op.operands.empty() && llvm::all_of(op.operands, isRegisters));
}

/// The next line is the op's.
void OpEmitter::addPlace(const Op &op) {
  places.push_back({out.getLine(), (role ? role->name + "." : "") + points.nameOf(&op),
                    op.location.isKnown() ? op.location.str() : "", op.site, isSilent(op)});
}

size_t OpEmitter::emitOps(llvm::ArrayRef<const Op *> ops) {
  const bool isOfEntry = ops.front()->kind == OpKind::AwaitLaunches && awaitsLaunchesAtItsHead(kernel);
  if (ops.front() == doneBefore || isOfEntry)
    return 1;
  const Composition composition = compositionOf(ops);
  doneBefore = composition.later ? composition.later : doneBefore;
  readAhead(ops);
  comment(*ops.front());
  const Op &op = *composition.subject;
  addPlace(op);
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
    return emitCopyIssue(op);
  case OpKind::CopyCommit:
    return line(out, "ptx::cp_async_commit();");
  case OpKind::CopyWait:
    return line(out, "ptx::cp_async_wait<{}>();", CopyWaitOp(op).pending());
  case OpKind::LoadFragment:
    return line(out, "load_operand({}, {}, warp_row());", operand(LoadFragmentOp(op).dst()),
                operand(LoadFragmentOp(op).src()));
  case OpKind::Map:
    return emitMap(op);
  case OpKind::Reduce:
    return emitReduce(op);
  case OpKind::Mma:
  case OpKind::MmaIssue:
    return emitMma(op);
  case OpKind::Vote:
    return emitVote(op);
  case OpKind::Convert:
    return emitConvert(op);
  case OpKind::StorePartial:
    return emitStorePartial(op);
  case OpKind::StoreMerged:
    return emitStoreMerged(op);
  case OpKind::Store:
    return emitStore(op);
  case OpKind::StoreLse:
    return emitStoreLse(op);
  case OpKind::StoreSplit:
  case OpKind::StoreMergedSplit:
    return emitStoreSplit(op);
  case OpKind::CombineLast:
    return emitCombineLast(op);
  case OpKind::Barrier:
    return emitBarrier(op);
  case OpKind::MmaCommit:
    return line(out, "ptx::{}_commit();", mmaFamily(kernel.backend).async.str());
  case OpKind::MmaWait:
    return line(out, "ptx::{}_wait<{}>();", mmaFamily(kernel.backend).async.str(), MmaWaitOp(op).pending());
  case OpKind::MbarrierInit:
    return emitSlotInit(op);
  case OpKind::Arrive:
    return emitArrive(op);
  case OpKind::Wait:
    return line(out, "wait_for({});{}", mbarrier(WaitOp(op).bar()), noteAfter(op));
  case OpKind::AwaitTurn:
  case OpKind::PassTurn:
    return emitTurn(op);
  case OpKind::Fence:
    return emitFence(op);
  case OpKind::AwaitLaunches:
    return line(out, "ptx::await_launches();\nptx::release_launches();");
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
  case OpKind::StoreNumber: // of programs
  case OpKind::MergeParts:
  case OpKind::Transpose:
  case OpKind::Combine: // a kernel of its own
  case OpKind::ClassifyTiles:
  case OpKind::PlanRows:
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
    line(out, "{}.{}<kSampled>(Stage::{});", clockNames.name, isBeforeWait ? "sample_before_wait" : "sample", name);
  else
    line(out, "{}.mark({}, Stage::{});", clockNames.name, clockNames.params, name);
}

void OpEmitter::emitBlock(llvm::ArrayRef<const Op *> ops) {
  std::vector<device::Stage> stages;
  if (marks != Marks::None)
    stages = stagesOf(kernel, ops);
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