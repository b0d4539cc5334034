// fagen: how sums and results of an online softmax follow a row's maximum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Rescaling.h"

#include "fagen/IR/Factors.h"

#include <limits>

using namespace fagen;
using namespace fagen::ir;

/// As in ops/softmax.h.
static constexpr float kLazyBits = 8;

static Expr shrinkOf(const Buffer &m, const Buffer &mNew, const Expr &factor, bool isGuarded) {
  const Expr grown = elementOf(mNew);
  return exp2((elementOf(m) - (isGuarded ? finiteOf(grown) : grown)) * factor);
}

/// The factor of f, if the expression is of its shape, and all elements share the factor.
static Expr factorOf(const Expr &shrink) {
  const bool hasFactor = shrink.kind() == ExprKind::Exp2 && shrink.operand().kind() == ExprKind::Mul;
  return hasFactor && isUniform(shrink.operand().rhs()) ? shrink.operand().rhs() : Expr();
}

static Expr hasGrown(const Rescaling &r) {
  return greaterThan((elementOf(*r.mNew) - elementOf(*r.m)) * r.factor, real(kLazyBits));
}

static Expr isNoLongerOne(const Buffer &alpha) { return Expr::binary(ExprKind::Ne, elementOf(alpha), real(1)); }

static std::unique_ptr<Op> makeMapOf(const Buffer &dst, Expr value, const Buffer *x, const Buffer *y,
                                     const Location &location) {
  auto operand = [](const Buffer *buffer) { return Operand{const_cast<Buffer *>(buffer), {}}; };
  return makeMap(
      {.dst = operand(&dst), .x = operand(x), .y = operand(y), .value = std::move(value), .location = location});
}

/// The maps themselves.
static Ops makeMaps(const Rescaling &r, const Location &location) {
  const Expr shrink = shrinkOf(*r.m, *r.mNew, r.factor, r.isGuarded);
  Ops ops;
  if (r.alpha) {
    ops.push_back(makeMapOf(*r.alpha, shrink, r.m, r.mNew, location));
    ops.push_back(makeMapOf(*r.l, elementOf(*r.l) * elementOf(*r.alpha), r.alpha, nullptr, location));
  } else {
    ops.push_back(makeMapOf(*r.l, elementOf(*r.l) * shrink, r.m, r.mNew, location));
    ops.push_back(makeMapOf(*r.o, elementOf(*r.o) * shrink, r.m, r.mNew, location));
  }
  ops.push_back(makeMapOf(*r.m, elementOf(*r.mNew), r.mNew, nullptr, location));
  return ops;
}

Ops ir::makeRescaling(const Rescaling &r, const Location &location) {
  Ops maps = makeMaps(r, location);
  if (!r.isLazy)
    return maps;
  Ops ops;
  if (r.alpha)
    ops.push_back(makeMapOf(*r.alpha, real(1), nullptr, nullptr, location));
  ops.push_back(makeVote({.x = {const_cast<Buffer *>(r.m), {}},
                          .y = {const_cast<Buffer *>(r.mNew), {}},
                          .test = hasGrown(r),
                          .location = location}));
  ops.back()->body.ops = std::move(maps);
  return ops;
}

/// Whether it has one value a row, or is none.
static bool isRowOrNone(const Buffer *buffer) {
  return !buffer || (buffer->columns == 1 && buffer->space == Space::Fragment);
}

/// Whether maxima and sums are one a row.
static bool areOfRows(const Rescaling &r) {
  return isRowOrNone(r.alpha) && isRowOrNone(r.l) && isRowOrNone(r.m) && isRowOrNone(r.mNew) &&
         !(r.o && isRowOrNone(r.o));
}

/// The three maps with which the ops begin; `whole` is filled in where they are.
static std::optional<Rescaling> asMaps(llvm::ArrayRef<const Op *> ops) {
  if (ops.size() < 3 || ops[0]->kind != OpKind::Map || ops[1]->kind != OpKind::Map || ops[2]->kind != OpKind::Map)
    return std::nullopt;
  const MapOp first(*ops[0]), second(*ops[1]);
  Rescaling r{.m = first.x().buffer, .mNew = first.y().buffer, .count = 3, .first = ops[0]};
  if (!r.m || !r.mNew)
    return std::nullopt;
  const bool isWhole = first.value().kind() == ExprKind::Mul;
  (isWhole ? r.l : r.alpha) = first.dst().buffer;
  (isWhole ? r.o : r.l) = second.dst().buffer;
  r.factor = factorOf(isWhole ? first.value().rhs() : first.value());
  if (!r.factor || !areOfRows(r))
    return std::nullopt;
  for (bool isGuarded : {false, true}) {
    r.isGuarded = isGuarded;
    const Ops made = makeMaps(r, {});
    if (isSame(*made[0], *ops[0]) && isSame(*made[1], *ops[1]) && isSame(*made[2], *ops[2]))
      return r;
  }
  return std::nullopt;
}

std::optional<Rescaling> ir::asRescaling(llvm::ArrayRef<const Op *> ops) {
  if (const auto maps = asMaps(ops))
    return maps;
  const bool beginsWithOne = ops.size() > 1 && asFill(*ops[0]) == 1.0f;
  const auto vote = ops.size() > beginsWithOne ? dynCast<VoteOp>(*ops[beginsWithOne]) : std::nullopt;
  if (!vote)
    return std::nullopt;
  std::optional<Rescaling> r = asMaps(pointersTo((*vote)->body.ops));
  if (!r || (*vote)->body.ops.size() != 3 || (r->alpha != nullptr) != beginsWithOne ||
      !(vote->test() == hasGrown(*r)) || (beginsWithOne && MapOp(*ops[0]).dst().buffer != r->alpha))
    return std::nullopt;
  r->isLazy = true;
  r->count = 1 + beginsWithOne;
  r->first = ops[0];
  return r;
}

std::unique_ptr<Op> ir::makeOutputRescaling(const OutputRescaling &r, const Location &location) {
  std::unique_ptr<Op> map = makeMapOf(*r.o, elementOf(*r.o) * elementOf(*r.alpha), r.alpha, nullptr, location);
  if (!r.isLazy)
    return map;
  auto vote =
      makeVote({.x = {const_cast<Buffer *>(r.alpha), {}}, .test = isNoLongerOne(*r.alpha), .location = location});
  vote->body.ops.push_back(std::move(map));
  return vote;
}

std::optional<OutputRescaling> ir::asOutputRescaling(const Op &op) {
  if (const auto vote = dynCast<VoteOp>(op)) {
    auto r = op.body.ops.size() == 1 ? asOutputRescaling(*op.body.ops.front()) : std::nullopt;
    if (!r || r->isLazy || !(vote->test() == isNoLongerOne(*r->alpha)))
      return std::nullopt;
    r->isLazy = true;
    return r;
  }
  const auto map = dynCast<MapOp>(op);
  if (!map || !map->x().buffer || map->dst().buffer->columns == 1 || !isRowOrNone(map->x().buffer) ||
      !(map->value() == elementOf(*map->dst().buffer) * elementOf(*map->x().buffer)))
    return std::nullopt;
  return OutputRescaling{.o = map->dst().buffer, .alpha = map->x().buffer};
}

std::unique_ptr<Op> ir::makeBeginning(const Beginning &beginning, const Location &location) {
  auto operand = [](const Buffer *buffer) { return Operand{const_cast<Buffer *>(buffer), {}}; };
  const Expr m = elementOf(*beginning.m), isNew = equal(m, real(-std::numeric_limits<float>::infinity()));
  std::unique_ptr<Op> vote = makeVote({.x = operand(beginning.m), .test = isNew, .location = location});
  vote->body.ops.push_back(makeReduce({.dst = operand(beginning.mNew),
                                       .src = operand(beginning.s),
                                       .with = operand(beginning.m),
                                       .op = Reduction::Max,
                                       .reach = ReduceReach::Row,
                                       .location = location}));
  vote->body.ops.push_back(
      makeMapOf(*beginning.m, select(isNew, elementOf(*beginning.mNew), m), beginning.mNew, nullptr, location));
  return vote;
}

std::optional<Beginning> ir::asBeginning(const Op &op) {
  if (op.kind != OpKind::Vote || op.body.ops.empty() || !isReduction(*op.body.ops.front(), Reduction::Max))
    return std::nullopt;
  const ReduceOp max(std::as_const(*op.body.ops.front()));
  const Beginning beginning{max.src().buffer, max.with().buffer, max.dst().buffer};
  return beginning.m && isRowOrNone(beginning.m) && !isRowOrNone(beginning.s) &&
                 isSame(*makeBeginning(beginning, {}), op)
             ? std::optional(beginning)
             : std::nullopt;
}

bool ir::isOfRescaling(const Op &op) {
  if (op.kind == OpKind::Vote)
    return asRescaling(&op) || asOutputRescaling(op) || asBeginning(op);
  const auto map = dynCast<MapOp>(op);
  if (!map || !map->x().buffer || !isRowOrNone(map->x().buffer) || !isRowOrNone(map->y().buffer))
    return false;
  if (isRowOrNone(map->dst().buffer) && map->value() == elementOf(*map->x().buffer)) // the maximum itself
    return true;
  if (map->value().kind() == ExprKind::Mul)
    return map->value().lhs() == elementOf(*map->dst().buffer);
  const Expr factor = factorOf(map->value());
  return factor && map->y().buffer &&
         (map->value() == shrinkOf(*map->x().buffer, *map->y().buffer, factor, true) ||
          map->value() == shrinkOf(*map->x().buffer, *map->y().buffer, factor, false));
}

llvm::SmallVector<const Op *, 16> ir::pointersTo(const Ops &ops) {
  llvm::SmallVector<const Op *, 16> pointers;
  for (const std::unique_ptr<Op> &op : ops)
    pointers.push_back(op.get());
  return pointers;
}

std::optional<FoundRescaling> ir::findRescaling(const Ops &ops) {
  const llvm::SmallVector<const Op *, 16> pointers = pointersTo(ops);
  for (size_t at = 0; at != pointers.size(); ++at)
    if (const auto rescaling = asRescaling(llvm::ArrayRef(pointers).drop_front(at)))
      return FoundRescaling{*rescaling, at};
  return std::nullopt;
}
