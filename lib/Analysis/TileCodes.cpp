// fagen: looks up what ops do with tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TileCodes.h"

#include "fagen/Analysis/Access.h"
#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Steering.h"
#include "fagen/IR/Views.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

bool fagen::weighsRows(const Kernel &kernel) {
  bool hasPowers = false;
  llvm::DenseSet<const Buffer *> scored, weighed;
  for (const Role &role : kernel.roles) {
    const auto fed = fedProducts(role.body);
    walk(role.body, [&](const Op &op) {
      hasPowers |= isPowers(op);
      const bool isFed = fed.contains(&op);
      for (unsigned i = 1; i < op.operands.size() && asProduct(op) && !isFed; ++i)
        scored.insert(op.operands[i].buffer);
      if (isFed)
        weighed.insert(op.operands[2].buffer);
    });
  }
  const bool areOthers = llvm::none_of(weighed, [&](const Buffer *buffer) { return scored.contains(buffer); });
  return hasPowers && areOthers && !kernel.hasOwnParams();
}

TileCodes::TileCodes(const Kernel &kernel) : kernel(kernel), arePlacesAsked(weighsRows(kernel)) {
  llvm::DenseMap<const Buffer *, const Role *> touchedBy;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      for (const Operand &operand : op.operands)
        if (const Role *other = touchedBy.try_emplace(operand.buffer, &role).first->second; other != &role)
          isHanded[operand.buffer] = true;
    });
  for (const Role &role : kernel.roles)
    if (const auto turns = turnsOf(role))
      for (const std::unique_ptr<Op> &op : (*turns)->body.ops)
        ofTurns.insert(op.get());
  addBuffers();
}

void TileCodes::addBuffers() {
  const SharedMap map(kernel);
  llvm::SmallVector<std::pair<uint64_t, uint64_t>, 32> bytes; // of each slot; none of fragments
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers) {
    if (buffer->space == Space::Global || buffer->type == ElementType::MBarrier)
      continue;
    firstSlot[buffer.get()] = bytes.size();
    const bool isShared = buffer->space == Space::Shared;
    isHanded[buffer.get()] &= isShared; // each warp has fragments of its own
    anyIsHanded |= isHanded[buffer.get()];
    for (unsigned slot = 0; slot < buffer->stages; ++slot) {
      const uint64_t base = isShared ? map.baseOf(buffer.get(), slot) : 0;
      bytes.push_back({base, base + (isShared ? buffer->stageBytes() : 0)});
    }
  }
  slotCount = bytes.size();
  findOverlaps(bytes);
}

void TileCodes::findOverlaps(llvm::ArrayRef<std::pair<uint64_t, uint64_t>> bytes) {
  overlaps.resize(bytes.size());
  for (unsigned a = 0; a < bytes.size(); ++a)
    for (unsigned b = 0; b < a; ++b)
      if (bytes[a].first < bytes[b].second && bytes[b].first < bytes[a].second) {
        overlaps[a].push_back(b);
        overlaps[b].push_back(a);
      }
}

void TileCodes::encode(llvm::ArrayRef<const Role *> roles, llvm::ArrayRef<Points> numberings, ExprValues &values) {
  for (const Let *let : steeringLets(kernel, roles).lets)
    steering.insert(let->name);
  for (const Points &points : numberings) {
    std::vector<TileCode> &ofRole = codes.emplace_back(points.size());
    for (unsigned point = 0; point < points.size(); ++point)
      if (const Op *op = points[point].op)
        ofRole[point] = encode(*op, values);
  }
}

/// The row that a copy begins with, counted as masks count keys: where splits share them, from the split's first one.
static Expr rowOf(const Kernel &kernel, const Op &op) {
  const Expr row = op.expr(Attr::Row);
  const bool countsAllKeys = globalOf(op) && rowEndOf(op).uses(nameOf(RunValue::SeqKv));
  return kernel.grid.split && countsAllKeys ? row - variable(RunValue::SplitBegin) : row;
}

TileCode TileCodes::encode(const Op &op, ExprValues &values) {
  TileCode code;
  for (unsigned i = 0; i < op.operands.size(); ++i) {
    OperandCode &operand = code.operands.emplace_back();
    const Buffer *buffer = op.operands[i].buffer;
    const auto first = firstSlot.find(buffer);
    if (!buffer || first == firstSlot.end())
      continue;
    const Effect effect = effectOn(op, i);
    operand = {buffer, first->second, effect != Effect::Write, effect != Effect::Read, isHanded.lookup(buffer)};
    code.hasTiles = true;
  }
  if (const auto copy = dynCast<CopyIssueOp>(op))
    code.isForSteps = copy->dst().buffer->isRing && !ofTurns.contains(&op);
  if (!code.hasTiles || !arePlacesAsked)
    return code; // what a program multiplies is its own business
  auto say = [&](const Expr &expr, PlaceCode &place, int &source) {
    place = PlaceCode(withoutLets(kernel, expr, steering), values);
    source = int(sources.size());
    sources.push_back({&op, expr});
  };
  const bool isOfMatrix = op.kind == OpKind::CopyIssue || op.kind == OpKind::Store || op.kind == OpKind::BulkStore;
  if (op.has(Attr::Row))
    say(rowOf(kernel, op), code.row, code.rowSource);
  if (op.has(Attr::Key))
    say(op.expr(Attr::Key), code.column, code.columnSource);
  else if (op.has(Attr::Column))
    say(op.expr(Attr::Column), code.column, code.columnSource);
  else if (isOfMatrix)
    say(constant(op.has(Attr::First) ? op.integer(Attr::First) : 0), code.column, code.columnSource);
  return code;
}

std::string TileCodes::textOf(const Coordinate &coordinate, llvm::function_ref<std::string(const Op *)> nameOf) const {
  const auto &[op, expr] = sources[coordinate.source];
  std::string text = expr.str();
  const bool isSaid = expr.kind() == ExprKind::Constant && expr.value() == coordinate.value;
  if (isNumberOfTile(coordinate.value) && !isSaid)
    text = std::to_string(coordinate.value) + ", " + text;
  return text + " of " + nameOf(op);
}
