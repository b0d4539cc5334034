// fagen: mbarriers in an execution: arrivals, bytes and phases.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A wait sees only whether the number of complete phases is odd. It is right only if it begins when the phase before is
// known to be complete, and if the phase behind cannot be complete before it has passed.

#include "Execution.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace fagen;
using namespace fagen::ir;

static unsigned slotAt(const Buffer &buffer, int64_t position) {
  const int64_t stages = buffer.stages;
  return unsigned(((position % stages) + stages) % stages);
}

Execution::Slot &Execution::slotOf(const Operand &operand, int64_t position) {
  return slots[firstSlot.lookup(operand.buffer) + slotAt(*operand.buffer, position)];
}

const Execution::Slot &Execution::slotOf(const Operand &operand, int64_t position) const {
  return slots[firstSlot.lookup(operand.buffer) + slotAt(*operand.buffer, position)];
}

int64_t Execution::phaseOf(const Operand &operand, int64_t position) {
  const int64_t stages = operand.buffer->stages;
  return position / stages - (position % stages < 0);
}

/// phase 1 of %full[0]
std::string Execution::textOf(const Slot &slot, int64_t phase) {
  std::string text = "phase " + std::to_string(phase) + " of %" + slot.buffer->name;
  return slot.buffer->isRing ? text + "[" + std::to_string(slot.number) + "]" : text;
}

void Execution::initialise(const Event &event) {
  Slot &slot = slotOf(event.op->operand("bar"), event.positions[0]);
  if (slot.needed != 0)
    return fail(*event.op, "%" + slot.buffer->name + " is initialised twice");
  slot.needed = unsigned(event.op->integer("arrivals"));
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
  else if (phase > slot.phase() || !isKnown(warp, lanes, shape.slot(&slot - slots.data()), unsigned(phase)))
    wrong = "it may count in the phase before: nothing says that " + textOf(slot, phase - 1) + " is complete";
  if (!wrong.empty())
    fail(op, wrong);
  return wrong.empty();
}

void Execution::arrive(Warp &warp, const Event &event, Lanes lanes) {
  const Op &op = *event.op;
  Slot &slot = slotOf(op.operand("bar"), event.positions[0]);
  if (!isTimely(warp, op, slot, phaseOf(op.operand("bar"), event.positions[0]), lanes))
    return;
  constexpr int64_t kMaxBytes = (int64_t(1) << 20) - 1; // that a phase can count
  if (event.bytes < 0 || event.bytes > kMaxBytes)
    return fail(op,
                std::to_string(event.bytes) + " B are announced; a phase counts up to " + std::to_string(kMaxBytes));
  const unsigned count = lanes == kAll ? 32 : 1;
  slot.arrived += count;
  slot.lastArrival = &op;
  slot.announced += count * event.bytes;
  if (slot.arrived > slot.needed)
    return fail(op, textOf(slot, slot.phase()) + " gets " + std::to_string(slot.arrived) +
                        " arrivals; mbarrier_init says " + std::to_string(slot.needed));
  slot.gathered.join(release(warp, lanes, &op));
  completeIfDone(slot, op);
}

void Execution::copyInBulk(Warp &warp, const Event &event) {
  const Op &op = *event.op;
  const Operand &full = op.operand("full");
  Slot &slot = slotOf(full, event.positions[2]);
  const int64_t phase = phaseOf(full, event.positions[2]);
  if (!isTimely(warp, op, slot, phase, kFirst))
    return;
  const Buffer &dst = *op.operand("dst").buffer;
  slot.copied += int64_t(dst.rows) * dst.columns * sizeOf(dst.type);
  slot.lastCopy = &op;
  slot.lastCopyPhase = phase;
  completeIfDone(slot, op);
}

std::string Execution::overtaken(const Slot &slot, int64_t phase, const Op *wait) const {
  return textOf(slot, phase) + " may be complete before all threads have passed " + observer.nameOf(wait) +
         ", which waits for phase " + std::to_string(phase - 1) + " and would then wait for ever";
}

void Execution::completeIfDone(Slot &slot, const Op &op) {
  if (slot.arrived < slot.needed || slot.copied < slot.announced)
    return;
  const int64_t phase = slot.phase();
  if (slot.copied > slot.announced)
    return fail(op, "copies bring " + std::to_string(slot.copied) + " B to " + textOf(slot, phase) +
                        "; its arrivals announce " + std::to_string(slot.announced) + " B");
  for (const Passed &passed : slot.passed)
    if (passed.phase < phase && slot.gathered[shape.of(Layer::Executed, passed.agent)].value <= passed.event)
      return fail(op, overtaken(slot, phase, passed.op));
  llvm::erase_if(slot.passed, [&](const Passed &passed) { return passed.phase < phase; });
  slot.gathered.raise(shape.slot(&slot - slots.data()), unsigned(phase) + 1, &op);
  slot.complete.push_back(slot.gathered);
  slot.gathered = Clock(shape.size());
  slot.arrived = 0;
  slot.announced = slot.copied = 0;
}

/// False: the phase is not complete.
bool Execution::wait(Warp &warp, const Event &event, Lanes lanes) {
  const Op &op = *event.op;
  Slot &slot = slotOf(op.operand("bar"), event.positions[0]);
  const int64_t phase = phaseOf(op.operand("bar"), event.positions[0]);
  const unsigned entry = shape.slot(&slot - slots.data());
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
    acquire(warp, lanes, slot.complete[phase], &op);
  for (unsigned lane = 0; lane < 2; ++lane)
    if (lanes >> lane & 1)
      slot.passed.push_back({&op, 2 * warp.number + lane, warp.next, phase});
  return true;
}
