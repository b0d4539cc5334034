// fagen: adds up clocks of a CTA's sections.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CtaModel.h"

#include "fagen/IR/Queries.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace fagen;
using namespace fagen::ir;
using namespace fagen::model;

// Where these come from: docs/internals/Model.md.
static constexpr double kStepClocks = 320;      ///< of a step: what waits for results in its chain of ops
static constexpr double kPrologueClocks = 4450; ///< a CTA's start and end: parameters, addresses, first load, O
static constexpr double kTileClocks = 500;      ///< between two tiles of a CTA, in addition to what its ops say

//===-- Structure -------------------------------------------------------------------------------------------------===//

/// The accumulator of a product of the role; null where it has none.
static const Buffer *accumulatorOf(const Role &role) {
  const Buffer *accumulator = nullptr;
  auto take = [&](auto product) { accumulator = accumulator ? accumulator : product.acc().buffer; };
  forEach<MmaOp>(role.body, [&](MmaOp<const Op> product) { take(product); });
  forEach<MmaIssueOp>(role.body, [&](MmaIssueOp<const Op> product) { take(product); });
  return accumulator;
}

const Role *model::multiplyingRole(const Kernel &kernel) {
  const Role *found = nullptr;
  for (const Role &role : kernel.roles)
    if (accumulatorOf(role)) {
      if (found)
        return nullptr;
      found = &role;
    }
  return found;
}

int64_t model::rowsOfTile(const Kernel &kernel, const Role &role) {
  return int64_t(accumulatorOf(role)->rows) * warpGridOf(kernel, role).rows;
}

/// A body as a list, loops left out.
static void flatten(const Block &block, std::vector<const Op *> &ops) {
  for (const std::unique_ptr<Op> &op : block.ops) {
    if (op->kind == OpKind::Loop)
      continue;
    ops.push_back(op.get());
    if (op->kind != OpKind::Vote) // which warps hardly ever pass
      flatten(op->body, ops);
  }
}

/// Over the tiles of a CTA: what it carries goes from tile to tile.
static bool isOverTiles(const Op &op) {
  const auto loop = dynCast<LoopOp>(op);
  return loop && !loop->carry().empty();
}

//===-- Sections --------------------------------------------------------------------------------------------------===//

CtaModel::CtaModel(const Kernel &kernel, const Role &role, const GpuRates &gpu, const Shape &shape)
    : kernel(kernel), role(role), gpu(gpu), shape(shape), isServed(kernel.roles.size() > 1) {
  walk(role.body, [&](const Op &op) {
    isServed |= op.kind == OpKind::MmaIssue;
    takesTiles |= isOverTiles(op);
  });
  addSection("once", role.body, nullptr);
  walk(role.body, [&](const Op &op) {
    if (op.kind == OpKind::Loop)
      addSection(op.has(Attr::Name) ? op.text(Attr::Name).str() : "loop", op.body, isOverTiles(op) ? nullptr : &op);
  });
}

void CtaModel::addSection(std::string name, const Block &body, const Op *loop) {
  std::vector<const Op *> ops;
  flatten(body, ops);
  Section section;
  section.name = std::move(name);
  for (const Op *op : ops) {
    const Work work = workOf(kernel, role, *op);
    section.work += work;
    section.clocks += model::clocksOf(work, gpu);
  }
  if (isServed) {
    addCopiesForWaits(section, ops);
    const Chain chain = chainOf(kernel, role, ops, /*repeats=*/loop != nullptr, gpu);
    section.clocks.latency = chain.waiting;
    section.rings = chain.rings;
    section.inTurns = chain.inTurns;
  } else if (loop) {
    section.clocks.latency += kStepClocks + exposedLoads(ops);
  }
  if (!loop)
    section.clocks.latency += sections.empty() ? kPrologueClocks + (isServed ? gpu.bulkLatency : 0) : kTileClocks;
  sections.push_back(std::move(section));
  loops.push_back(loop);
}

/// What other roles ask the copy engine for, where this one waits for it.
void CtaModel::addCopiesForWaits(Section &section, llvm::ArrayRef<const Op *> ops) const {
  for (const Op *op : ops)
    if (const auto wait = dynCast<WaitOp>(*op))
      for (const Op *copy : copiesFor(kernel, role, wait->bar().buffer)) {
        const Work work = workOf(kernel, role, *copy);
        section.work += work;
        section.clocks += model::clocksOf(work, gpu);
      }
}

/// A wait leaves `pending` groups; the newest that it waits for was closed so many commits before, in this turn of
/// the loop or an earlier one. What of the load's time the ops in between do not fill stands still.
double CtaModel::exposedLoads(llvm::ArrayRef<const Op *> body) const {
  double exposed = 0;
  for (auto [at, wait] : llvm::enumerate(body)) {
    if (wait->kind != OpKind::CopyWait)
      continue;
    double filled = 0;
    int64_t newer = 0;
    for (size_t back = 1; filled < kLoadClocks && back <= 16 * body.size(); ++back) {
      const Op &op = *body[(at + 16 * body.size() - back) % body.size()];
      if (op.kind == OpKind::CopyCommit && newer++ == wait->integer(Attr::Pending)) {
        exposed += kLoadClocks - filled;
        break;
      }
      filled += together(model::clocksOf(workOf(kernel, role, op), gpu), 1, role.warps);
    }
  }
  return exposed;
}

//===-- Steps -----------------------------------------------------------------------------------------------------===//

/// What bounds of loops may name in addition to lets and constants, of the values that a launch has.
static std::optional<int64_t> valueOf(RunValue value, const model::Shape &shape, const RowsOfGroup &rows) {
  switch (value) {
  case RunValue::RowBegin:
    return rows.tile;
  case RunValue::GroupRow:
    return rows.inTile;
  case RunValue::SeqQ:
    return shape.seqQ;
  case RunValue::SeqKv:
    return shape.seqKv;
  case RunValue::HeadsPerKv:
    return shape.heads / shape.kvHeads;
  default:
    return std::nullopt;
  }
}

std::optional<int64_t> CtaModel::value(const Expr &expr, const RowsOfGroup &rows) const {
  return expr.evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
    if (const RunValueInfo *const info = findRunValue(name))
      if (const std::optional<int64_t> known = valueOf(info->value, shape, rows))
        return known;
    for (const Let &let : kernel.lets)
      if (let.name == name && !let.source && !let.judged)
        return value(let.value, rows);
    return kernel.hasConstant(name) ? std::optional(kernel.constant(name)) : std::nullopt;
  });
}

std::optional<double> CtaModel::turnsOf(const Op &loop, int64_t rowBegin) const {
  const int64_t groups = std::max(1U, role.warps / warpsOfGroup(kernel)), rows = rowsOfTile(kernel, role) / groups;
  double turns = 0;
  for (int64_t group = 0; group < groups; ++group) {
    const RowsOfGroup of{rowBegin, group * rows};
    const std::optional<int64_t> begin = value(loop.expr(Attr::Begin), of), end = value(loop.expr(Attr::End), of);
    if (!begin || !end)
      return std::nullopt;
    turns += double(std::max<int64_t>(0, *end - *begin)) / double(groups);
  }
  return turns;
}

std::vector<double> CtaModel::stepsOf(int64_t rowBegin) const {
  std::vector<double> steps;
  for (auto [index, loop] : llvm::enumerate(loops)) {
    const std::optional<double> turns = loop ? turnsOf(*loop, rowBegin) : index == 0 && takesTiles ? 0 : 1;
    if (!turns)
      return {};
    steps.push_back(*turns);
  }
  return steps;
}

//===-- Clocks ----------------------------------------------------------------------------------------------------===//

/// A slot is held, left and filled again while the others of its ring are used: all turns but the first wait for that.
double CtaModel::clocksOf(const Section &section, double turns, unsigned resident) const {
  const double turn = together(section.clocks, resident, role.warps, section.inTurns);
  double next = turn;
  for (const RingUse &ring : section.rings)
    next = std::max(next, (ring.held * turn + ring.fill) / ring.stages);
  return turns <= 1 ? turns * turn : turn + (turns - 1) * next;
}

double CtaModel::clocksOf(llvm::ArrayRef<double> steps, unsigned resident) const {
  double clocks = 0;
  for (auto [section, count] : llvm::zip(sections, steps))
    clocks += clocksOf(section, count, resident);
  return clocks;
}

double CtaModel::clocksOnce(unsigned resident) const {
  return takesTiles ? clocksOf(sections.front(), 1, resident) : 0;
}
