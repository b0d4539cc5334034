// fagen: ops that one function of the device library does together.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpEmitter.h"

using namespace fagen;
using namespace fagen::ir;

/// How many of these ops begin the mbarriers of a ring, one slot after the other and all alike; 0 unless it is the
/// whole ring.
static size_t opsThatBeginRing(llvm::ArrayRef<const Op *> ops) {
  const auto first = dynCast<MbarrierInitOp>(*ops.front());
  if (!first)
    return 0;
  const Operand &bar = first->bar();
  if (!bar.buffer->isRing)
    return 1;
  const auto slots = static_cast<size_t>(bar.buffer->stages);
  if (ops.size() < slots)
    return 0;
  for (size_t slot = 0; slot != slots; ++slot) {
    const auto init = dynCast<MbarrierInitOp>(*ops[slot]);
    if (!init || init->bar().buffer != bar.buffer || init->arrivals() != first->arrivals() ||
        !(init->bar().position == constant(static_cast<int64_t>(slot))))
      return 0;
  }
  return slots;
}

Composition fagen::compositionOf(llvm::ArrayRef<const Op *> ops) {
  Composition found{.count = 1, .subject = ops.front()};
  if (const auto settling = asSettling(ops)) {
    found.settling = settling;
    found.count = kSettlingOps;
    found.subject = settling->vote;
    found.later = settling->sum;
    found.registers = {settling->s, settling->alpha, settling->l, settling->m,
                       settling->isApart ? settling->sums : nullptr};
  } else if (const auto rescaling = asRescaling(ops)) {
    found.rescaling = rescaling;
    found.count = rescaling->count;
    found.registers = {rescaling->o, rescaling->alpha, rescaling->l, rescaling->m, rescaling->mNew};
  } else if (const auto output = asOutputRescaling(*ops.front())) {
    found.output = output;
    found.registers = {output->o, output->alpha};
  } else if (const auto beginning = asBeginning(*ops.front())) {
    found.beginning = beginning;
    found.registers = {beginning->s, beginning->m};
  } else if (const size_t slots = opsThatBeginRing(ops)) {
    found.beginsRing = true;
    found.count = slots;
  } else {
    for (const Operand &operand : ops.front()->operands)
      found.registers.push_back(operand.buffer);
  }
  return found;
}

void fagen::forEachComposition(const Block &block, llvm::function_ref<void(const Composition &)> visit) {
  const llvm::SmallVector<const Op *, 16> ops = pointersTo(block.ops);
  const Op *doneBefore = nullptr;
  for (size_t i = 0; i != ops.size();) {
    if (ops[i] == doneBefore) {
      ++i;
      continue;
    }
    const Composition composition = compositionOf(llvm::ArrayRef(ops).drop_front(i));
    visit(composition);
    if (composition.isSingle())
      forEachComposition(ops[i]->body, visit);
    doneBefore = composition.later ? composition.later : doneBefore;
    i += composition.count;
  }
}

void OpEmitter::emitComposition(const Composition &composition) {
  if (composition.settling)
    emitSettling(*composition.settling);
  else if (composition.rescaling)
    emitRescaling(*composition.rescaling);
  else if (composition.beginning)
    line(out, "begin_rows(r.{}, r.{});", composition.beginning->m->name, composition.beginning->s->name);
  else if (composition.beginsRing)
    emitRingInit(*composition.subject);
  else
    emitOutputRescaling(*composition.output);
}

void OpEmitter::emitRescaling(const Rescaling &rescaling) {
  auto fragment = [](const Buffer *buffer) { return "r." + buffer->name; };
  line(out, "rescale{}{}<{}>({}, {}, {}, {}, {});", rescaling.alpha ? "_rows" : "", rescaling.isLazy ? "_lazily" : "",
       rescaling.isGuarded, fragment(rescaling.alpha ? rescaling.alpha : rescaling.o), fragment(rescaling.l),
       fragment(rescaling.m), fragment(rescaling.mNew), element(*rescaling.first, rescaling.factor));
}

/// Where the step was not done again alpha is 1.
void OpEmitter::emitOutputRescaling(const OutputRescaling &rescaling) {
  std::optional<IndentedStream::Scope> scope;
  if (rescaling.isLazy && knowsRedone) {
    line(out, "if (is_redone)");
    scope.emplace(out);
    callStandsHere();
  }
  line(out, "rescale_output{}(r.{}, r.{});", rescaling.isLazy && !knowsRedone ? "_lazily" : "", rescaling.o->name,
       rescaling.alpha->name);
}

/// if (any(x, [&](float x, float y) { return test; }, y)) { ... }
void OpEmitter::emitVote(const Op &op) {
  const VoteOp vote(op);
  const bool hasSecond = vote.y().buffer != nullptr;
  const Braces scope(out, "}", "if (any({}, [&](float {}{}) {{ return {}; }}{})) {{", operand(vote.x()),
                     parameterFor(*vote.x().buffer, vote.test()),
                     hasSecond ? ", float " + parameterFor(*vote.y().buffer, vote.test()) : "",
                     element(op, vote.test()), hasSecond ? ", " + operand(vote.y()) : "");
  const llvm::SmallVector<const Op *, 16> body = pointersTo(op.body.ops);
  for (size_t i = 0; i != body.size();)
    i += emitOps(llvm::ArrayRef(body).drop_front(i));
}

/// q, row, k, c, [&] { mask again });
void OpEmitter::emitScoresAgain(const Settling &settling, const std::string &call, bool alwaysMasks) {
  const MmaOp product(*settling.product);
  const bool masks = !settling.shaping.empty();
  line(out, "{}, {}, warp_row(), {}, {}{}", call, operand(product.a()), operand(product.b()),
       element(*settling.vote, settling.factor),
       masks         ? ", [&] {"
       : alwaysMasks ? ", [] {});"
                     : ");");
  if (!masks)
    return;
  {
    auto scope = out.scope();
    for (const Op *map : settling.shaping)
      emitMap(*map);
  }
  line(out, "}});");
}

/// How terms are computed again.
static const char *exponentOf(const Settling &settling) {
  return settling.order == ExponentOrder::DifferenceFirst ? "<kOfDifference>" : "";
}

/// const bool is_redone = settle_rows(s, alpha, l, m, ...
void OpEmitter::emitSettling(const Settling &settling) {
  knowsRedone = true;
  emitScoresAgain(settling,
                  fmt::format("const bool is_redone = settle_rows{}(r.{}, r.{}, r.{}, r.{}", exponentOf(settling),
                              settling.s->name, settling.alpha->name, settling.l->name, settling.m->name),
                  /*alwaysMasks=*/false);
}

/// Whether step 0 is the only one there can be.
static bool isFirstStepAlone(const Expr &begin, const Expr &end) {
  const std::optional<Interval> first = difference(begin, constant(0)), last = difference(end, constant(1));
  return first && last && first->low >= 0 && last->high <= 0;
}

/// Whether the lets' own expressions say so, as they do of the last tile of a tensor without a mask: ptxas need not
/// keep what a second step would want.
bool fagen::runsAtMostOnce(const Kernel &kernel, const Role &role, LoopOp<const Op> loop) {
  const Expr begin = expand(kernel, loop.begin()), end = expand(kernel, loop.end());
  const unsigned groups =
      usesScope(begin, RunScope::Group) || usesScope(end, RunScope::Group) ? role.warps / kGroupWarps : 1;
  for (unsigned group = 0; group < groups; ++group) {
    const Expr from = atGroup(kernel, begin, group), to = atGroup(kernel, end, group);
    const std::optional<Interval> steps = difference(to, from);
    if (!isFirstStepAlone(from, to) && (!steps || steps->high > 1))
      return false;
  }
  return true;
}

std::optional<StepApart> fagen::asStepApart(const Op &loop) {
  const llvm::SmallVector<const Op *, 16> ops = pointersTo(loop.body.ops);
  const auto *const vote = llvm::find_if(ops, [](const Op *op) { return op->isSet(Attr::Apart); });
  if (vote == ops.end() || vote + 1 - ops.begin() < ptrdiff_t(kSettlingOps) || !asOutputRescaling(*ops.back()))
    return std::nullopt;
  const auto *const alpha = vote + 1 - kSettlingOps;
  const std::optional<Settling> settling = asSettling({alpha, ops.end()});
  auto isWait = [](const Op *op) { return op->kind == OpKind::MmaWait; };
  const auto *const sum = settling ? llvm::find(ops, settling->sum) : ops.end();
  if (sum == ops.end() || std::any_of(sum, ops.end(), isWait))
    return std::nullopt;
  const auto *const wait = std::find_if(vote, sum, isWait);
  return StepApart{*settling, *alpha, {ops.begin(), alpha}, {vote + 1, wait}, {wait, sum}, {sum + 1, ops.end() - 1},
                   ops.back()};
}

void OpEmitter::emitSettled(const StepApart &step) {
  const Settling &settling = step.settling;
  emitBlock({step.alpha});
  addPlace(*settling.vote);
  emitScoresAgain(settling,
                  fmt::format("settle_outgrown{}(r.{}, r.{}, r.{}, r.{}, r.{}", exponentOf(settling), settling.s->name,
                              settling.sums->name, settling.alpha->name, settling.l->name, settling.m->name),
                  /*alwaysMasks=*/true);
  emitBlock(step.settled);
}

/// Steps of which none is rare make a loop of their own.
void OpEmitter::emitStepsApart(const StepApart &step, const std::string &variable, const std::string &begin,
                               const std::string &end) {
  const Settling &settling = step.settling;
  auto emitEnd = [&] {
    line(out, "add_sums(r.{}, r.{});", settling.l->name, settling.sums->name);
    emitBlock(step.rest);
  };
  line(out, "// A vote keeps the loops apart: ptxas makes one loop of two that begin at the same place.");
  const Braces loops(out, "}", "for ({0}; ptx::any({1} < {2}); ++{1}) {{", begin, variable, end);
  {
    const Braces loop(out, "}", "for (; {0} < {1}; ++{0}) {{", variable, end);
    emitBlock(step.terms);
    line(out, "const bool is_outgrown = terms_outgrow<{}>(r.{}, r.{});",
         elementType(MmaOp(*settling.product).a().buffer->type), settling.sums->name, settling.s->name);
    if (!step.settled.empty())
      inBraces("if (!is_outgrown)", [&] { emitBlock(step.settled); });
    emitBlock(step.together);
    line(out, "if (is_outgrown)\n  break;");
    emitEnd();
  }
  line(out, "if ({} >= {})\n  break;", variable, end);
  emitSettled(step);
  emitEnd();
  const OutputRescaling output = *asOutputRescaling(*step.output);
  addPlace(*step.output);
  line(out, "rescale_output(r.{}, r.{});", output.o->name, output.alpha->name); // nobody need ask whether
}
