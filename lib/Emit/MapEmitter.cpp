// fagen: what maps and reductions become: a function of the device library where it has one, else a lambda for each
// element.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpEmitter.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Products.h"
#include "fagen/Target/MmaInstrs.h"

#include <cmath>

using namespace fagen;
using namespace fagen::ir;

static bool isInShared(const Operand &operand) { return operand.buffer->space == Space::Shared; }
/// A value for each column, which a fragment's lanes take to registers.
static bool isOfColumns(const Operand &operand) { return isInShared(operand) && operand.buffer->rows == 1; }
/// A value for each row, which other warps left there.
static bool isOfRows(const Operand &operand) { return isInShared(operand) && operand.buffer->columns == 1; }
/// As wmma leaves products, where a lane finds its elements.
static bool addsShared(const Op &op) {
  const Operand &x = MapOp(op).x();
  return isSum(op) && isInShared(x) && !isOfColumns(x) && !isOfRows(x);
}

/// Of reductions the first one of a step, and of what ends a tile.
std::string OpEmitter::heading(const Op &op) const {
  if (asProduct(op))
    return isOfScores(kernel, op)       ? "S = Q K^T"
           : op.isSet(Attr::Accumulate) ? "O += P V"
                                        : "P V, which no lane can add to its O yet";
  if (op.kind == OpKind::StorePartial)
    return "merge of the warps that share keys";
  if (const auto reduce = dynCast<ReduceOp>(op))
    return reduce->op() == Reduction::Max ? (reduce->reach() == ReduceReach::Lanes ? "" : "online softmax")
           : isInShared(reduce->dst())    ? "row sums"
                                          : "";
  return op.kind != OpKind::Map ? ""
         : isMask(op)           ? "S = -inf where the key is not visible"
         : isSum(op)            ? "O += P V"
         : isQuotient(op)       ? "O /= l"
                                : "";
}

bool fagen::isOfElements(const Op &op) {
  if (op.kind == OpKind::Vote)
    return true;
  const auto map = dynCast<MapOp>(op);
  if (!map)
    return false;
  return !asFill(op) && !isMask(op) && !isPowers(op) && !isQuotient(op) && !addsShared(op);
}

void OpEmitter::emitMap(const Op &op) {
  const MapOp map(op);
  if (const std::optional<float> value = asFill(op); value && map.dst().buffer->columns > 1)
    return line(out, "clear({});", operand(map.dst()));
  else if (value)
    return line(out, "fill({}, {});", operand(map.dst()), spellReal(*value));
  if (const auto mask = asMask(op))
    return emitMask(op, mask->predicate());
  if (isPowers(op))
    return emitPowers(op);
  if (addsShared(op))
    return line(out, "accumulate({}, {}, warp_row());", operand(map.dst()), operand(map.x()));
  if (isQuotient(op))
    return line(out, "normalize({}, {});", operand(map.dst()), operand(map.x()));
  emitElements(op);
}

/// `bound`, where there is one, and the first key of the tile for which a condition holds, joined by min or max.
OpEmitter::OfRow OpEmitter::boundOfRow(const Op &op, const Expr &bound, llvm::ArrayRef<Expr> searched,
                                       const char *join) const {
  const llvm::StringRef row = nameOf(RunValue::ElementRow);
  OfRow ofRow{bound ? expression(bound) : "", bound && bound.uses(row)};
  for (const Expr &condition : searched) {
    const std::string first = fmt::format("first_key<{}>({}, [&](int k) {{ return {}; }})",
                                          nameOr(Measure::TileKeys, op.operands.front().buffer->columns),
                                          expression(op.expr(Attr::Key)), expression(condition));
    ofRow.text = ofRow.text.empty() ? first : fmt::format("{}({}, {})", join, ofRow.text, first);
    ofRow.usesRow |= condition.uses(row);
  }
  return ofRow;
}

std::string OpEmitter::cornerOf(const Op &op) const {
  return fmt::format("{} + warp_row(), {}{}", expression(op.expr(Attr::Row)), expression(op.expr(Attr::Key)),
                     mmaFamily(kernel.backend).isAsynchronous ? "" : " + warp_key()");
}

/// Inside the braces of `if (when)`, where there is a condition.
void OpEmitter::emitWhen(const Op &op, llvm::function_ref<void()> emit) {
  if (!op.has(Attr::When))
    return emit();
  inBraces(fmt::format("if ({})", expression(op.expr(Attr::When))), [&] {
    callStandsHere();
    emit();
  });
}

/// `op` is the map, or the step that is masked again.
void OpEmitter::emitMask(const Op &op, const Expr &visible) {
  emitWhen(op, [&] {
    if (const std::optional<KeysOfRow> keys = maskByKeys(kernel, visible))
      return emitMaskOfKeys(op, *keys);
    if (const std::optional<ConditionByRuns> byRuns = maskByRuns(kernel, visible))
      return emitMaskOfRuns(op, *byRuns);
    emitMaskOfElements(op, visible);
  });
}

std::optional<KeysOfRow> fagen::maskByKeys(const Kernel &kernel, const Expr &visible) {
  return mmaFamily(kernel.backend).isAsynchronous ? keysOfRow(kernel, visible) : std::nullopt;
}

std::optional<ConditionByRuns> fagen::maskByRuns(const Kernel &kernel, const Expr &visible) {
  const MmaFamilyInfo &family = mmaFamily(kernel.backend);
  if (!family.isCollective || !family.keepsResults || maskByKeys(kernel, visible))
    return std::nullopt;
  ConditionByRuns condition(kernel, visible);
  const bool isOfRows =
      llvm::any_of(condition.runs, [](const KeyRunRead &run) { return run.read.uses(nameOf(RunValue::ElementRow)); });
  return isOfRows ? std::optional(std::move(condition)) : std::nullopt;
}

/// row, key, [&](int q, int first, auto read) { return a bit for each key; });
void OpEmitter::emitSeenKeys(const Op &op, const ConditionByRuns &visible, const std::string &call) {
  const Braces scope(out, "});", "{}{}, [&](int q, int {}, auto {}) {{", call, cornerOf(op), visible.first,
                     visible.read);
  emitSeenOfRun(out, visible, "cta.", [&](const Expr &expr) { return expression(expr); });
}

/// The mask of the scores that are waited for, if only maps of these come before it; null where there is none.
static const Op *maskAfterWait(llvm::ArrayRef<const Op *> ops) {
  if (ops.front()->kind != OpKind::MmaWait)
    return nullptr;
  for (const Op *op : ops.drop_front())
    if (op->kind != OpKind::Map || asMask(*op))
      return op->kind == OpKind::Map && !op->has(Attr::When) ? op : nullptr;
  return nullptr;
}

/// A mask that follows a wait for products has its elements read before the wait.
void OpEmitter::readAhead(llvm::ArrayRef<const Op *> ops) {
  const Op *const mask = maskAfterWait(ops);
  const std::optional<ConditionByRuns> byRuns = mask ? maskByRuns(kernel, asMask(*mask)->predicate()) : std::nullopt;
  if (!byRuns)
    return;
  emitSeenKeys(*mask, *byRuns, "const auto seen = seen_keys<kWarpRows, kWarpKeys>(");
  seenAhead = mask;
}

/// Of the mask that was read ahead, or of the same for scores that are taken again.
bool OpEmitter::isSeenAhead(const Op &op) const {
  auto isSame = [&](Attr attr) { return seenAhead->expr(attr) == op.expr(attr); };
  return seenAhead && isSame(Attr::Value) && isSame(Attr::Row) && isSame(Attr::Key);
}

void OpEmitter::emitMaskOfRuns(const Op &op, const ConditionByRuns &visible) {
  const std::string scores = operand(op.operands.front());
  if (isSeenAhead(op))
    return line(out, "hide_unseen({}, seen);", scores);
  emitSeenKeys(op, visible, "mask_by_runs(" + scores + ", ");
}

void OpEmitter::emitMaskOfKeys(const Op &op, const KeysOfRow &keys) {
  const std::string s = operand(op.operands.front()), corner = cornerOf(op);
  const OfRow end = boundOfRow(op, keys.end, keys.areOver, "min");
  if (keys.areBoundBelow()) {
    const OfRow begin = boundOfRow(op, keys.begin, keys.follow, "max");
    line(out, "mask_range({}, {},", s, corner);
    auto deeper = out.scope();
    line(out, "[&](int{}) {{ return {}; }},", begin.usesRow ? " q" : "", begin.text);
    return line(out, "[&](int{}) {{ return {}; }});", end.usesRow ? " q" : "", end.text);
  }
  const Braces scope(out, "});", "mask_from({}, {}, [&](int{}) {{", s, corner, end.usesRow ? " q" : "");
  line(out, "return {};", end.text);
}

void OpEmitter::emitMaskOfElements(const Op &op, const Expr &visible) {
  const Operand &scores = op.operands.front();
  const bool isShared = isInShared(scores);
  const Braces scope(out, "});", "mask{}({}, {}{}, [&](int q, int k) {{", isShared ? "<kWarpRows>" : "",
                     operand(scores), isShared ? "warp_row(), " : "", cornerOf(op));
  line(out, "return {};", expression(visible));
}

void OpEmitter::emitPowers(const Op &op) {
  const Powers powers = *asPowers(op);
  const bool isOfDifference = powers.order == ExponentOrder::DifferenceFirst;
  const std::string every =
      op.has(Attr::Every) ? fmt::format(", {}", op.integer(Attr::Every)) : (isOfDifference ? ", 0" : "");
  line(out, "exp2<{}{}{}>({}, {}{}, {});", powers.isGuarded, every, isOfDifference ? ", kOfDifference" : "",
       operand(*powers.scores), isInShared(*powers.scores) ? "warp_row(), " : "", operand(*powers.shift),
       element(op, powers.factor));
}

std::string fagen::spellReal(float value) {
  if (std::isinf(value))
    return value < 0 ? "ptx::negative_infinity()" : "-ptx::negative_infinity()";
  return real(value).str() + "f";
}

/// What the lambda calls an element: as the buffer is called, unless the place, or what the value names, is called so.
std::string fagen::parameterFor(const Buffer &buffer, const Expr &value) {
  const RunValueInfo *const info = findRunValue(buffer.name);
  std::string name = buffer.name + (info && info->scope == RunScope::Element ? "_" : "");
  while (value.uses(name))
    name += '_';
  return name;
}

/// With names of the lambda's in place of elements. Names are integers to whoever folds, so that x - x, which of a real
/// number need not be 0, is text before it has them.
static Expr withNames(const Op &op, const Expr &value, const Expr &whole) {
  if (value.kind() == ExprKind::Real)
    return variable(spellReal(value.realValue()));
  for (const Operand &operand : op.operands)
    if (operand.buffer && value == elementOf(*operand.buffer))
      return variable(parameterFor(*operand.buffer, whole));
  llvm::SmallVector<Expr, 3> operands;
  for (const Expr &operand : value.operands())
    operands.push_back(withNames(op, operand, whole));
  if (value.kind() == ExprKind::Sub && operands[0] == operands[1])
    return variable(fmt::format("({0} - ({0}))", operands[0].str()));
  return operands.empty() ? value : value.withOperands(operands);
}

/// A real expression as the lambda computes it.
std::string OpEmitter::element(const Op &op, const Expr &value) const {
  return expression(withNames(op, value, value));
}

namespace {

/// What ops/map.h calls a thread's first key, and the distance from there to the element's.
constexpr llvm::StringLiteral kFirst = "first", kAlong = "along";

/// By how much the integer grows from key to key; nothing where that is not one number.
std::optional<int64_t> slopeOf(const Expr &integer) {
  const llvm::StringRef key = nameOf(RunValue::ElementKey);
  const std::optional<Interval> step = difference(integer.substitute(key, variable(key) + constant(1)), integer);
  return step && step->low == step->high && step->low != 0 ? std::optional(step->low) : std::nullopt;
}

/// f32 of an integer that grows evenly along the keys, as what it is at the thread's first key and a multiple of
/// `along`: one conversion a row instead of one an element. A factor goes to both, so that each element takes one fused
/// multiply-add.
Expr followKeys(const Expr &node) {
  auto isFollowing = [](const Expr &sum) { return sum.kind() == ExprKind::Add && sum.rhs().uses(kAlong); };
  if (node.kind() == ExprKind::F32)
    if (const std::optional<int64_t> slope = slopeOf(node.operand())) {
      const Expr along = variable(kAlong),
                 first = node.operand().substitute(nameOf(RunValue::ElementKey), variable(kFirst));
      return Expr::unary(ExprKind::F32, first) + (*slope == 1 ? along : real(float(*slope)) * along);
    }
  // What all keys of a row share comes together, and is computed once.
  if (node.kind() == ExprKind::Sub && isFollowing(node.lhs()) && !node.rhs().uses(kAlong))
    return node.lhs().rhs() + (node.lhs().lhs() - node.rhs());
  if (node.kind() != ExprKind::Mul)
    return {};
  if (isFollowing(node.rhs()) && !node.lhs().uses(kAlong))
    return node.lhs() * node.rhs().lhs() + node.lhs() * node.rhs().rhs();
  if (isFollowing(node.lhs()) && !node.rhs().uses(kAlong))
    return node.rhs() * node.lhs().lhs() + node.rhs() * node.lhs().rhs();
  return {};
}

} // namespace

/// map(dst, place, [&](float dst, float x, int q, int k) { return value; }, x);
void OpEmitter::emitElements(const Op &op) {
  const MapOp map(op);
  std::string parameters, sources;
  for (const Operand &each : op.operands)
    if (each.buffer) {
      parameters += fmt::format("float {}, ", parameterFor(*each.buffer, map.value()));
      if (&each != &map.dst())
        sources += ", " + (isOfColumns(each) ? "column_values(" + operand(each) + ")"
                           : isOfRows(each)  ? fmt::format("row_values<{}>({}, warp_row())",
                                                           map.dst().buffer->rows.str(), operand(each))
                                             : operand(each));
    }
  const bool isFragment = !isInShared(map.dst()) && map.dst().buffer->columns > 1;
  const bool mayFollow = isFragment && !map.value().uses(kFirst) && !map.value().uses(kAlong);
  const Expr value = mayFollow ? map.value().rewritten(followKeys) : map.value();
  const bool follows = mayFollow && value.uses(kAlong);
  emitWhen(op, [&] {
    auto place = [&](llvm::StringRef name) { return value.uses(name) ? "int " + name.str() : std::string("int"); };
    const std::string places = place(nameOf(RunValue::ElementRow)) + ", " + place(nameOf(RunValue::ElementKey)) +
                               (follows ? ", " + place(kFirst) + ", float " + kAlong.str() : "");
    line(out, "map{}({}, {}{}, [&]({}{}) {{",
         isInShared(map.dst()) ? "<kWarpRows>"
         : follows             ? "_along"
                               : "",
         operand(map.dst()), isInShared(map.dst()) ? "warp_row(), " : "", map.row() ? cornerOf(op) : "0, 0", parameters,
         places);
    {
      auto body = out.scope();
      line(out, "return {};", element(op, value));
    }
    line(out, "}}{});", sources);
  });
}

/// Where warps share the lanes' results they leave them in shared memory.
void OpEmitter::emitReduce(const Op &op) {
  const ReduceOp reduce(op);
  const std::string dst = operand(reduce.dst()), src = operand(reduce.src());
  const std::string what = toString(reduce.op()).str();
  const char *row = isInShared(reduce.src()) ? ", warp_row()" : "";
  if (isInShared(reduce.dst()))
    return line(out, "reduce_partial_{}{}({}, {}, warp_row());", what, isInShared(reduce.src()) ? "<kWarpRows>" : "",
                dst, src);
  const std::string with = reduce.with().buffer ? ", " + operand(reduce.with()) : "";
  if (reduce.reach() == ReduceReach::Lanes)
    return line(out, "reduce_total_{}({}, {}{}{});", what, dst, src, row, with);
  if (reduce.op() == Reduction::Max)
    return line(out, "row_max({}, {}{}{});", dst, src, row, with);
  if (reduce.reach() == ReduceReach::Row)
    return line(out, "total({});", dst);
  line(out, "row_sum({}, {}{});", dst, src, row);
}
