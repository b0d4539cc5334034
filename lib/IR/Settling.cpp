// fagen: a step of an online softmax whose terms were computed by the maximum of the steps before.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Settling.h"

#include "fagen/IR/Sync.h"

#include <fagen/device/settling.h>

using namespace fagen;
using namespace fagen::ir;

static Operand operand(const Buffer *buffer) { return {const_cast<Buffer *>(buffer), {}}; }

static Expr outgrows(const Buffer &sums, float bound) {
  return Expr::unary(ExprKind::Not, lessEqual(elementOf(sums), real(bound)));
}

namespace {
/// How far a row's terms may grow, and what they come down to.
struct TermBounds {
  float settledSum, loweredBits;
};
} // namespace

/// The terms have the type of the product's operands when they are multiplied. Nothing of types without bounds.
static std::optional<TermBounds> boundsOfTerms(const Op &product) {
  const auto issued = dynCast<MmaIssueOp>(product);
  switch ((issued ? issued->a() : MmaOp(product).a()).buffer->type) {
  case ElementType::F16:
    return TermBounds{device::kSettledSumF16, device::kLoweredBitsF16};
  case ElementType::BF16:
    return TermBounds{device::kSettledSumBf16, device::kLoweredBitsBf16};
  case ElementType::E4M3:
    return TermBounds{device::kSettledSumE4M3, device::kLoweredBitsE4M3};
  case ElementType::E5M2:
  case ElementType::F32:
  case ElementType::U32:
  case ElementType::MBarrier:
  case ElementType::I32:
  case ElementType::U8:
  case ElementType::Bit:
    break;
  }
  return std::nullopt;
}

bool ir::canSettle(const Op &product) { return boundsOfTerms(product).has_value(); }

static std::unique_ptr<Op> makeSums(const Settling &settling, const Location &location) {
  return makeReduce({.dst = operand(settling.sums),
                     .src = operand(settling.s),
                     .op = Reduction::Sum,
                     .reach = ReduceReach::Thread,
                     .location = location});
}

/// By the warp alone, complete when it is.
static std::unique_ptr<Op> makeProduct(const Op &product, const Location &location) {
  auto make = [&](auto of) {
    return makeMma(
        {.acc = of.acc(), .a = of.a(), .b = of.b(), .form = of.form(), .accumulate = false, .location = location});
  };
  const auto issued = dynCast<MmaIssueOp>(product);
  return issued ? make(*issued) : make(MmaOp(product));
}

/// Scores again, and terms by their maxima.
static Ops makeAgain(const Settling &settling, const Location &location) {
  Ops ops;
  ops.push_back(makeProduct(*settling.product, location));
  for (const Op *map : settling.shaping) {
    ops.push_back(clone(*map));
    ops.back()->location = location;
    ops.back()->note.clear();
  }
  ops.push_back(makeReduce({.dst = operand(settling.mNew),
                            .src = operand(settling.s),
                            .with = operand(settling.m),
                            .op = Reduction::Max,
                            .reach = ReduceReach::Row,
                            .location = location}));
  llvm::move(makeRescaling({.alpha = settling.alpha,
                            .l = settling.l,
                            .m = settling.m,
                            .mNew = settling.mNew,
                            .factor = settling.factor,
                            .isGuarded = true},
                           location),
             std::back_inserter(ops));
  ops.push_back(
      makeMap({.dst = operand(settling.s),
               .x = operand(settling.m),
               .value = powersOf(*settling.s, finiteOf(elementOf(*settling.m)), settling.factor, settling.order),
               .location = location}));
  ops.push_back(makeSums(settling, location));
  return ops;
}

/// Terms, their sums, and all that came before, by an m that makes the sum of a row no larger than 2^loweredBits.
static void appendLowering(Ops &ops, const Settling &settling, const Location &location) {
  ops.push_back(makeReduce({.dst = operand(settling.mNew),
                            .src = operand(settling.sums),
                            .op = Reduction::Sum,
                            .reach = ReduceReach::Row,
                            .location = location}));
  const Expr m = elementOf(*settling.m), mNew = elementOf(*settling.mNew);
  ops.push_back(
      makeMap({.dst = operand(settling.mNew),
               .x = operand(settling.m),
               .value = m + max(Expr::unary(ExprKind::Log2, mNew) - real(boundsOfTerms(*settling.product)->loweredBits),
                                real(0)) /
                                settling.factor,
               .location = location}));
  for (const Buffer *lowered : {settling.s, settling.sums, settling.alpha, settling.l})
    ops.push_back(makeMap({.dst = operand(lowered),
                           .x = operand(settling.m),
                           .y = operand(settling.mNew),
                           .value = elementOf(*lowered) * exp2((m - finiteOf(mNew)) * settling.factor),
                           .location = location}));
  ops.push_back(
      makeMap({.dst = operand(settling.m), .x = operand(settling.mNew), .value = mNew, .location = location}));
}

Ops ir::makeSettling(const Settling &settling, const Location &location) {
  auto makeVoteOn = [&](float bound, bool isFenced) {
    return makeVote({.x = operand(settling.sums),
                     .test = outgrows(*settling.sums, bound),
                     .apart = isFenced && settling.isApart,
                     .fenced = isFenced,
                     .location = location});
  };
  Ops ops;
  ops.push_back(makeMap({.dst = operand(settling.alpha), .value = real(1), .location = location}));
  ops.push_back(makeSums(settling, location));
  ops.push_back(makeVoteOn(boundsOfTerms(*settling.product)->settledSum, true));
  Ops &body = ops.back()->body.ops;
  body.push_back(makeVoteOn(device::kFiniteSum, false));
  body.back()->body.ops = makeAgain(settling, location);
  appendLowering(body, settling, location);
  ops.push_back(makeMap({.dst = operand(settling.l),
                         .x = operand(settling.sums),
                         .value = elementOf(*settling.l) + elementOf(*settling.sums),
                         .location = location}));
  return ops;
}

const Op *ir::findUnsettling(const Block &block) {
  llvm::SmallVector<const Op *, 16> ops;
  for (const std::unique_ptr<Op> &op : block.ops)
    ops.push_back(op.get());
  for (size_t i = 0; i != ops.size(); ++i) {
    if (const auto settling = asSettling(llvm::ArrayRef(ops).drop_front(i))) {
      i += kSettlingOps - 1;
      continue;
    }
    if (ops[i]->kind == OpKind::Mma)
      return ops[i];
    if (const Op *const found = findUnsettling(ops[i]->body))
      return found;
  }
  return nullptr;
}

std::optional<Settling> ir::asSettling(llvm::ArrayRef<const Op *> ops) {
  if (ops.size() < kSettlingOps || asFill(*ops[0]) != 1.0f || ops[1]->kind != OpKind::Reduce ||
      ops[2]->kind != OpKind::Vote || ops[2]->body.ops.empty())
    return std::nullopt;
  const auto sum = std::find_if(ops.begin() + 3, ops.end(), [](const Op *op) { return !synchronises(syncOf(*op)); });
  if (sum == ops.end() || (*sum)->kind != OpKind::Map)
    return std::nullopt;
  Settling settling{.s = ReduceOp(*ops[1]).src().buffer,
                    .sums = ReduceOp(*ops[1]).dst().buffer,
                    .alpha = MapOp(*ops[0]).dst().buffer,
                    .l = MapOp(**sum).dst().buffer,
                    .isApart = VoteOp(*ops[2]).apart(),
                    .vote = ops[2],
                    .sum = *sum};
  for (const std::unique_ptr<Op> &op : ops[2]->body.ops.front()->body.ops) {
    if (op->kind == OpKind::Mma)
      settling.product = op.get();
    else if (op->kind == OpKind::Map && !settling.mNew)
      settling.shaping.push_back(op.get());
    else if (const auto powers = asPowers(*op)) {
      settling.factor = powers->factor;
      settling.order = powers->order;
    } else if (isReduction(*op, Reduction::Max)) {
      settling.mNew = ReduceOp(std::as_const(*op)).dst().buffer;
      settling.m = ReduceOp(std::as_const(*op)).with().buffer;
    }
  }
  if (!settling.product || !settling.m || !settling.mNew || !settling.factor || !canSettle(*settling.product))
    return std::nullopt;
  const Ops made = makeSettling(settling, {});
  const Op *const own[] = {ops[0], ops[1], ops[2], *sum};
  auto isOwn = [](const std::unique_ptr<Op> &op, const Op *own) { return isSame(*op, *own); };
  return llvm::equal(made, own, isOwn) ? std::optional(settling) : std::nullopt;
}
