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
    emitBeginning(*composition.beginning);
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

void OpEmitter::emitBeginning(const Beginning &beginning) {
  line(out, "begin_rows(r.{}, r.{});", beginning.m->name, beginning.s->name);
}

/// if (any(x, [&](float x, float y) { return test; }, y)) { ... }
void OpEmitter::emitVote(const Op &op) {
  const VoteOp vote(op);
  const bool hasSecond = vote.y().buffer != nullptr;
  line(out, "if (any({}, [&](float {}{}) {{ return {}; }}{})) {{", operand(vote.x()), parameterFor(*vote.x().buffer),
       hasSecond ? ", float " + parameterFor(*vote.y().buffer) : "", element(op, vote.test()),
       hasSecond ? ", " + operand(vote.y()) : "");
  {
    auto scope = out.scope();
    const llvm::SmallVector<const Op *, 16> body = pointersTo(op.body.ops);
    for (size_t i = 0; i != body.size();)
      i += emitOps(llvm::ArrayRef(body).drop_front(i));
  }
  line(out, "}}");
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

void OpEmitter::emitOutgrown(const Settling &settling, llvm::ArrayRef<const Op *> settled,
                             llvm::ArrayRef<const Op *> together) {
  line(out, "const bool is_outgrown = terms_outgrow<Element>(r.{}, r.{});", settling.sums->name, settling.s->name);
  if (!settled.empty()) {
    line(out, "if (!is_outgrown) {{");
    {
      auto scope = out.scope();
      emitBlock(settled);
    }
    line(out, "}}");
  }
  emitBlock(together);
  line(out, "return is_outgrown;");
}

void OpEmitter::emitSettlingApart(const Settling &settling) {
  addPlace(*settling.vote);
  emitScoresAgain(settling,
                  fmt::format("settle_outgrown{}(r.{}, r.{}, r.{}, r.{}, r.{}", exponentOf(settling), settling.s->name,
                              settling.sums->name, settling.alpha->name, settling.l->name, settling.m->name),
                  /*alwaysMasks=*/true);
}

/// Where the step was settled, so that nobody asks whether.
void OpEmitter::emitSettledOutput(const Op &op) {
  const OutputRescaling output = *asOutputRescaling(op);
  addPlace(op);
  line(out, "rescale_output(r.{}, r.{});", output.o->name, output.alpha->name);
}

void OpEmitter::emitSettledSum(const Settling &settling) {
  line(out, "add_sums(r.{}, r.{});", settling.l->name, settling.sums->name);
}
