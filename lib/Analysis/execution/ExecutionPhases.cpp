// fagen: mbarriers in an execution: arrivals, bytes and phases.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A wait sees only whether the number of complete phases is odd. It is right only if it begins when the phase before is
// known to be complete, and if the phase after cannot be complete before it has passed.

#include "Execution.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace fagen;
using namespace fagen::ir;

const Execution::Slot &Execution::slotOf(unsigned cta, const PlannedOp &op, const Event &event) const {
  return state.slots[cta * plan.slots.size() + op.firstSlot + slotAt(*op.bar, event.positions[op.barOperand])];
}

Execution::Slot &Execution::slotOf(unsigned cta, const PlannedOp &op, const Event &event) {
  return const_cast<Slot &>(std::as_const(*this).slotOf(cta, op, event));
}

int64_t Execution::phaseOf(const PlannedOp &op, const Event &event) {
  const unsigned slots = op.bar->stages;
  const int64_t position = event.positions[op.barOperand], stages = slots;
  return llvm::has_single_bit(slots) ? position >> llvm::countr_zero(slots)
                                     : position / stages - (position % stages < 0);
}

/// phase 1 of %full[0]
std::string Execution::textOf(const Slot &slot, int64_t phase) const {
  std::string text = "phase " + std::to_string(phase) + " of %" + slot.buffer->name;
  return (slot.buffer->isRing ? text + "[" + std::to_string(slot.number) + "]" : text) + ofCta(slot.cta);
}

void Execution::initialise(const Warp &warp, const PlannedOp &op, const Event &event) {
  Slot &slot = slotOf(warp.cta, op, event);
  if (slot.needed != 0)
    return fail(*op.op, "%" + slot.buffer->name + " is initialised twice");
  slot.needed = unsigned(op.op->integer(Attr::Arrivals));
}

/// Whether what these lanes do counts in this phase of the slot, whoever is faster.
bool Execution::isTimely(Warp &warp, const Op &op, Slot &slot, int64_t phase, Lanes lanes) {
  std::string wrong;
  if (slot.needed == 0)
    wrong = "%" + slot.buffer->name + " is not initialised";
  else if (phase < 0)
    wrong = textOf(slot, phase) + " lies before the first";
  else if (phase < slot.phase())
    wrong = textOf(slot, phase) + " is complete already, by " + std::to_string(slot.needed) +
            " arrivals and the bytes "
            "that they announced";
  else if (phase > slot.phase() || !isKnown(warp, lanes, shape.slot(numberOf(slot)), unsigned(phase)))
    wrong = "it may count in the phase before: nothing says that " + textOf(slot, phase - 1) + " is complete";
  if (!wrong.empty())
    fail(op, wrong);
  return wrong.empty();
}

void Execution::arrive(unsigned cta, Warp &warp, const PlannedOp &planned, const Event &event, Lanes lanes) {
  const Op &op = *planned.op;
  Slot &slot = slotOf(cta, planned, event);
  if (!isTimely(warp, op, slot, phaseOf(planned, event), lanes))
    return;
  if (event.bytes < 0 || event.bytes > kMostBytesOfPhase)
    return fail(op, std::to_string(event.bytes) + " B are announced; a phase counts up to " +
                        std::to_string(kMostBytesOfPhase));
  const unsigned count = lanes == kAllLanes ? 32 : 1;
  slot.arrived += count;
  slot.lastArrival = &op;
  slot.announced += count * event.bytes;
  if (slot.arrived > slot.needed)
    return fail(op, textOf(slot, slot.phase()) + " gets " + std::to_string(slot.arrived) +
                        " arrivals; mbarrier_init says " + std::to_string(slot.needed));
  if (planned.isShared && lanes != kFirstLane)
    slot.gathered.join(warp.clocks[1]); // one lane, which speaks for no other one
  else
    release(slot.gathered, warp, lanes, planned);
  if (cta != warp.cta)
    state.remote[cta * 2 * shape.warps + 2 * warp.agent + (lanes != kFirstLane)] = {&op, warp.event};
  completeIfDone(slot, planned);
}

/// What has landed was asked for: its thread had gone that far, and past its waits. That says nothing of memory, so no
/// phase is told that copies are waited for with.
void Execution::tellOfIssue(Slot &slot, const Warp &warp, const PlannedOp &op) const {
  const Clock &clock = warp.clocks[0];
  slot.gathered.join(clock, shape.executedBegin(), shape.executedEnd(), 0);
  slot.gathered.raise(shape.of(Layer::Executed, 2 * warp.agent), warp.event + 1, op.number);
  for (unsigned i = 0; i < state.slots.size(); ++i)
    if (!state.slots[i].countsBytes)
      slot.gathered.join(clock, shape.slot(i), shape.slot(i) + 1, 0);
}

void Execution::copyInBulk(unsigned cta, Warp &warp, const PlannedOp &op, const Event &event) {
  Slot &slot = slotOf(cta, op, event);
  const int64_t phase = phaseOf(op, event);
  if (!isTimely(warp, *op.op, slot, phase, kFirstLane))
    return;
  slot.copied += op.bytes;
  slot.lastCopy = op.op;
  slot.lastCopyPhase = phase;
  tellOfIssue(slot, warp, op);
  completeIfDone(slot, op);
}

std::string Execution::overtaken(const Slot &slot, int64_t phase, const Op *wait) const {
  return textOf(slot, phase) + " may be complete before all threads have passed " + observer.nameOf(wait) +
         ", which waits for phase " + std::to_string(phase - 1) + " and would then wait for ever";
}

void Execution::completeIfDone(Slot &slot, const PlannedOp &op) {
  if (slot.arrived < slot.needed || slot.copied < slot.announced)
    return;
  const int64_t phase = slot.phase();
  if (slot.copied > slot.announced)
    return fail(*op.op, "copies bring " + std::to_string(slot.copied) + " B to " + textOf(slot, phase) +
                            "; its arrivals announce " + std::to_string(slot.announced) + " B");
  for (const Passed &passed : slot.passed)
    if (passed.phase < phase && slot.gathered.value(shape.of(Layer::Executed, passed.agent)) <= passed.event)
      return fail(*op.op, overtaken(slot, phase, passed.op));
  llvm::erase_if(slot.passed, [&](const Passed &passed) { return passed.phase < phase; });
  slot.gathered.raise(shape.slot(numberOf(slot)), unsigned(phase) + 1, op.number);
  slot.last = slot.gathered;
  ++slot.phases;
  slot.gathered.clear();
  slot.arrived = 0;
  slot.announced = slot.copied = 0;
}

/// False: the phase is not complete.
bool Execution::wait(Warp &warp, const PlannedOp &planned, const Event &event, Lanes lanes) {
  const Op &op = *planned.op;
  Slot &slot = slotOf(warp.cta, planned, event);
  const int64_t phase = phaseOf(planned, event);
  const unsigned entry = shape.slot(numberOf(slot));
  if (phase < -1) {
    fail(op, textOf(slot, phase) + " lies more than one phase before the first");
    return false;
  }
  if (phase > 0 && !isKnown(warp, lanes, entry, unsigned(phase))) {
    fail(op, "it may pass early: nothing says that " + textOf(slot, phase - 1) +
                 " is complete when it waits for phase " + std::to_string(phase));
    return false;
  }
  if (slot.phase() <= phase)
    return false;
  if (slot.phase() > phase + 1) {
    fail(op, overtaken(slot, phase + 1, &op));
    return false;
  }
  if (phase >= 0)
    acquire(warp, lanes, slot.last, planned);
  for (unsigned lane = 0; lane < 2; ++lane)
    if (lanes >> lane & 1)
      slot.passed.push_back({&op, 2 * warp.agent + lane, warp.event, phase});
  return true;
}
