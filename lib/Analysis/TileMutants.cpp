// fagen: shifts each copy and use of a ring and asks the analysis.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/TileMutants.h"

#include "fagen/Analysis/Order.h"
#include "fagen/Analysis/TilesRead.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Queries.h"

#include "TileCodes.h"
#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;
using Change = TileMutant::Change;

llvm::StringRef fagen::toString(Change change) {
  switch (change) {
  case Change::Positions:
    return "positions";
  case Change::Tile:
    return "tile";
  case Change::Both:
    return "both";
  case Change::Guard:
    return "guard";
  }
  return "guard";
}

llvm::StringRef fagen::toString(TileMutant::Verdict verdict) {
  switch (verdict) {
  case TileMutant::Verdict::WrongTile:
    return "wrong tile";
  case TileMutant::Verdict::OutOfOrder:
    return "out of order";
  case TileMutant::Verdict::Same:
    return "same";
  case TileMutant::Verdict::Accepted:
    return "accepted";
  }
  return "accepted";
}

namespace {

class TileMutantJudge {
public:
  explicit TileMutantJudge(Kernel &kernel) : kernel(kernel) {}

  std::vector<TileMutant> run() {
    for (Role &role : kernel.roles) {
      this->role = &role;
      points = std::make_unique<Points>(role);
      changeAll(role.body, "");
    }
    return std::move(mutants);
  }

private:
  /// `variable`: of the innermost loop.
  void changeAll(Block &block, llvm::StringRef variable) {
    for (const std::unique_ptr<Op> &op : block.ops) {
      for (unsigned i = 0; i < op->operands.size(); ++i)
        if (const Buffer *ring = op->operands[i].buffer; ring && ring->isRing && ring->type != ElementType::MBarrier)
          changeBy(*op, i, variable);
      const bool isLoop = op->kind == OpKind::Loop;
      changeAll(op->body, isLoop ? op->text(Attr::Variable) : variable);
    }
  }

  void changeBy(Op &op, unsigned operand, llvm::StringRef variable) {
    const int64_t slots = op.operands[operand].buffer->stages.number();
    llvm::SmallVector<int64_t, 4> shifts = {1, -1};
    if (slots > 1)
      shifts.append({slots, -slots});
    const auto copy = dynCast<CopyIssueOp>(op);
    for (const int64_t by : shifts) {
      judge(op, operand, Change::Positions, by, [&] { shiftPosition(op, operand, by); });
      if (!copy)
        continue;
      if (weighsRows(kernel)) // else it is another program
        judge(op, operand, Change::Tile, by, [&] { shiftTile(op, by); });
      if (!variable.empty() && copy->dst().position.uses(variable))
        judge(op, operand, Change::Both, by,
              [&] { substitute(op, variable, ir::variable(variable.str()) + constant(by)); });
    }
    if (copy && op.has(Attr::When) && copy->when().kind() == ExprKind::Lt)
      for (const int64_t by : {1, -1})
        judge(op, operand, Change::Guard, by,
              [&] { copy->setWhen(lessThan(copy->when().lhs(), copy->when().rhs() + constant(by))); });
  }

  /// A copy goes on to say to the mbarrier of which position its bytes belong.
  static void shiftPosition(Op &op, unsigned operand, int64_t by) {
    Operand &shifted = op.operands[operand];
    shifted.position = shifted.position + constant(by);
    if (op.kind == OpKind::CopyIssue && op.operands[CopyIssueOp<>::kFull].position)
      op.operands[CopyIssueOp<>::kFull].position = op.operands[CopyIssueOp<>::kFull].position + constant(by);
  }

  /// To the rows after, or where steps take columns in turn, to the columns.
  static void shiftTile(Op &op, int64_t by) {
    const CopyIssueOp copy(op);
    const Buffer &ring = *copy.dst().buffer;
    if (op.has(Attr::Column))
      copy.setColumn(copy.column() + constant(by * ring.columns.number()));
    else
      copy.setRow(copy.row() + constant(by * ring.rows.number()));
  }

  void judge(Op &op, unsigned operand, Change change, int64_t by, llvm::function_ref<void()> make) {
    const auto operands = op.operands;
    const auto attributes = op.attributes;
    const std::vector<bool> before = change == Change::Guard ? happens(op) : std::vector<bool>();
    TileMutant mutant;
    mutant.change = change;
    mutant.op = nameOf(op);
    mutant.buffer = op.operands[operand].buffer->name;
    mutant.by = by;
    make();
    if (change == Change::Guard && happens(op) == before)
      mutant.verdict = TileMutant::Verdict::Same;
    else
      ask(mutant);
    op.operands = operands;
    op.attributes = attributes;
    mutants.push_back(std::move(mutant));
  }

  /// Whether the copy does, each time that its role comes to it.
  std::vector<bool> happens(const Op &op) const {
    std::vector<bool> does;
    std::string problem;
    forEachTimeline(kernel, *role, *points, problem, [&](const Timeline &timeline) {
      for (const Event &event : timeline.events)
        if (event.op == &op)
          does.push_back(event.active);
    });
    return does;
  }

  std::string nameOf(const Op &op) const {
    return (kernel.roles.size() > 1 ? role->name + "." : "") + points->nameOf(&op);
  }

  /// What verify-barriers asks, the quicker question first.
  void ask(TileMutant &mutant) {
    const TilesRead tiles = findWrongTiles(kernel);
    mutant.why = tiles.wrong.empty() ? tiles.problem : tiles.wrong.front().message;
    mutant.verdict = TileMutant::Verdict::WrongTile;
    if (!mutant.why.empty())
      return;
    mutant.why = needsOrder(kernel) ? whyOutOfOrder(OrderInfo(kernel)) : whyOpen(HazardInfo(kernel, *role));
    mutant.verdict = mutant.why.empty() ? TileMutant::Verdict::Accepted : TileMutant::Verdict::OutOfOrder;
  }

  static std::string whyOutOfOrder(const OrderInfo &info) {
    if (!info.defects().empty())
      return info.nameOf(info.defects().front().op) + ": " + info.defects().front().message;
    for (const OrderedPair &pair : info.pairs())
      if (!pair.open.empty())
        return info.describe(pair);
    return info.problem();
  }

  static std::string whyOpen(const HazardInfo &info) {
    for (const Hazard &hazard : info.hazards())
      if (!info.isCovered(hazard))
        return info.describe(hazard);
    return info.problem();
  }

  Kernel &kernel;
  Role *role = nullptr;
  std::unique_ptr<Points> points;
  std::vector<TileMutant> mutants;
};

} // namespace

std::vector<TileMutant> fagen::judgeTileMutants(Kernel &kernel) { return TileMutantJudge(kernel).run(); }
