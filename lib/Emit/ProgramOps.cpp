// fagen: ops of kernels with parameters of their own, as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramOps.h"
#include "LoopText.h"

#include "fagen/IR/GridQueries.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Views.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

bool fagen::isByFirstThread(const Op &op) {
  if (const auto fence = dynCast<FenceOp>(op))
    return fence->kind() == FenceKind::MbarrierInit;
  if (opInfo(op.kind).hasBody)
    return llvm::all_of(op.body.ops, [](const std::unique_ptr<Op> &inner) { return isByFirstThread(*inner); });
  const bool isOfRole = op.has(Attr::By) || op.kind == OpKind::FetchTile || op.kind == OpKind::HandTile ||
                        op.kind == OpKind::BulkStore || op.kind == OpKind::BulkCommit || op.kind == OpKind::BulkWait;
  return op.kind == OpKind::MbarrierInit || isBulkCopy(op) || (isOfRole && actorOf(op) == Actor::Role);
}

bool fagen::isLoopOverTiles(const Kernel &kernel, const Op &op) {
  const auto loop = dynCast<LoopOp>(op);
  return loop && expand(kernel, loop->end()) == variable(RunValue::TilesOfCta);
}

std::string fagen::asFactor(const Expr &expr) {
  const bool isCall = expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::CeilDiv ||
                      expr.kind() == ExprKind::Min || expr.kind() == ExprKind::Max;
  return expr.isBinary() && !isCall ? "(" + expr.str() + ")" : expr.str();
}

ProgramOpEmitter::ProgramOpEmitter(const Kernel &kernel, const TileDivisors &divisors, const Role &role,
                                   const ProgramParams &params, const Points &points, IndentedStream &out,
                                   std::vector<OpPlan> &places)
    : OpEmitter(kernel, divisors, points, out, places), ofRole(role), params(params), tile(kernel.freshName("tile")),
      drawn(kernel.freshName("drawn")), next(kernel.freshName("next_number")) {
  auto use = [this](const Expr &expr) { expr.forEachVariable([this](llvm::StringRef name) { used.insert(name); }); };
  auto useMatrix = [&](const Buffer &matrix) {
    llvm::for_each(matrix.shape, use);
    if (matrix.map)
      llvm::for_each(matrix.map->at, use);
  };
  walk(role.body, [&](const Op &op) {
    forEachExpr(op, use);
    if (const Buffer *const matrix = globalOf(op); matrix && !matrix->shape.empty())
      useMatrix(*matrix);
  });
  if (!kernel.grid.listed.empty())
    used.insert(kernel.grid.listed);
  for (const Let &let : llvm::reverse(kernel.lets))
    if (used.contains(let.name)) {
      use(let.value);
      if (let.source)
        llvm::for_each(let.source->at, use);
    }
  for (const GridIndex &index : kernel.grid.indices)
    ofTiles.insert(index.name);
  ofTiles = withFollowers(kernel, std::move(ofTiles));
}

Expr fagen::ofParams(const Kernel &kernel, const Expr &expr, llvm::StringRef params) {
  Expr result = expr;
  for (const std::string &size : kernel.sizes)
    result = result.substitute(size, variable((params + "." + size).str()));
  return result;
}

Expr ProgramOpEmitter::spelled(const Expr &expr) const {
  return ofParams(kernel, expr, "cta.params").substitute(nameOf(RunValue::GroupRow), variable("cta.group_row"));
}

std::string ProgramOpEmitter::expression(const Expr &expr) const { return spelled(expr).str(); }

std::string ProgramOpEmitter::operand(const Operand &operand) const {
  const Buffer &buffer = *operand.buffer;
  if (buffer.space == Space::Fragment)
    return "r." + buffer.name;
  if (!buffer.isRing)
    return "cta.shared." + buffer.name;
  const bool isFixed = buffer.stages == 1 || operand.position.kind() == ExprKind::Constant;
  const std::string slot = buffer.stages == 1 ? "0"
                           : isFixed          ? std::to_string(operand.position.value() % buffer.stages)
                                              : expression(operand.position % buffer.stages.expr());
  return fmt::format("cta.shared.{}[{}]", buffer.name, slot);
}

std::string ProgramOpEmitter::heading(const Op &op) const {
  auto product = [](const auto &of) {
    return fmt::format("{} {} {} {}{}", of.acc().buffer->name, of.accumulate() ? "+=" : "=", of.a().buffer->name,
                       of.b().buffer->name, of.form() == MmaForm::Abt ? "^T" : "");
  };
  if (const auto mma = dynCast<MmaOp>(op))
    return product(*mma);
  if (const auto mma = dynCast<MmaIssueOp>(op))
    return product(*mma);
  return {};
}

std::string ProgramOpEmitter::rowOfWarp() const {
  unsigned rows = 0;
  walk(ofRole.body, [&](const Op &op) {
    for (const Operand &each : op.operands)
      if (each.buffer && each.buffer->space == Space::Fragment)
        rows = std::max(rows, each.buffer->rows.number());
  });
  return fmt::format("(ptx::warp_index() - {}) % {} * {}", ofRole.firstWarp, warpGridOf(kernel, ofRole).rows, rows);
}

std::string ProgramOpEmitter::columnOfWarp() const {
  const WarpGrid grid = warpGridOf(kernel, ofRole);
  unsigned columns = 0;
  forEach<MmaOp>(ofRole.body, [&](MmaOp<const Op> mma) {
    if (mma.form() == MmaForm::Abt)
      columns = mma.acc().buffer->columns;
  });
  return grid.columns == 1 ? "0"
                           : fmt::format("(ptx::warp_index() - {}) / {} * {}", ofRole.firstWarp, grid.rows, columns);
}

// Places in global memory.

/// Dense dimensions follow from the sizes.
std::string ProgramOpEmitter::address(const Buffer &tensor, llvm::ArrayRef<Expr> index) const {
  const unsigned last = index.size() - 1;
  std::string offset;
  for (unsigned i = 0; i < last; ++i) {
    if (tensor.isStrided) {
      offset += fmt::format("{}{} * cta.params.{}_stride[{}]", i == 0 ? "" : " + ", asFactor(spelled(index[i])),
                            tensor.param, i);
      continue;
    }
    const std::string wide = i == 0 ? fmt::format("static_cast<long long>({})", expression(index[i]))
                                    : fmt::format("({} + {})", offset, asFactor(spelled(index[i])));
    offset = fmt::format("{} * {}", wide, asFactor(spelled(tensor.shape[i + 1])));
  }
  const Expr &column = index[last];
  const bool isFirst = column == constant(0);
  return fmt::format("cta.params.{}{}{}", tensor.param, offset.empty() ? "" : " + " + offset,
                     isFirst ? "" : " + " + expression(column));
}

/// By its name, where the kernel has one.
std::string ProgramOpEmitter::vectorBytes() const {
  return byName(kernel, Measure::VectorBytes, vectorBytesOf(kernel)).str();
}

/// As row_of of <fagen/device/ops/matrix.h>.
std::string ProgramOpEmitter::rowsOf(const Buffer &matrix) const {
  const std::string row = kernel.freshName("row");
  return fmt::format("[&](int {}) {{ return {}; }}", row,
                     address(tensorOf(matrix), indexOf(matrix, variable(row), constant(0))));
}

/// The first element of a box, the fastest dimension first.
std::string ProgramOpEmitter::cornerOf(const Op &op) const {
  const Buffer &matrix = *globalOf(op);
  Expr column = firstColumnOf(op);
  if (op.has(Attr::First))
    column = column + constant(op.integer(Attr::First));
  const llvm::SmallVector<Expr, 4> index = indexOf(matrix, firstRowOf(op), column);
  std::string corner;
  for (const Expr &at : llvm::reverse(index))
    corner += (corner.empty() ? "" : ", ") + expression(at);
  return "{" + corner + "}";
}

void ProgramOpEmitter::emitCopy(const Op &op) {
  const CopyIssueOp copy(op);
  const Buffer &matrix = *copy.src().buffer;
  std::optional<IndentedStream::Scope> scope;
  if (copy.when() && !(copy.when().kind() == ExprKind::Constant && copy.when().value() != 0)) {
    line(out, "if ({})", expression(copy.when()));
    scope.emplace(out);
    callStandsHere();
  }
  line(out, "copy_matrix{}<{}, {}>({}, {}, {}, {}, {}, {});", copy.kind() == CopyKind::CpAsync ? "_async" : "",
       32 * ofRole.warps, vectorBytes(), operand(copy.dst()), rowsOf(matrix), expression(firstRowOf(op)),
       expression(matrix.shape[0]), expression(firstColumnOf(op)), expression(matrix.shape[1]));
}

void ProgramOpEmitter::emitStore(const Op &op) {
  const StoreOp store(op);
  const Buffer &matrix = *store.dst().buffer;
  line(out, "store_matrix<{}>({}, {}, {} + warp_row(), {}, {}, {});", vectorBytes(), rowsOf(matrix), operand(store.o()),
       expression(firstRowOf(op)), expression(matrix.shape[0]), expression(firstColumnOf(op)),
       expression(matrix.shape[1]));
}

/// The dimension along which rows of a box follow each other, the fastest being 0.
static unsigned rowOfBox(const Buffer &matrix) {
  return tensorOf(matrix).shape.size() - 1 - boxMapOf(matrix)->rowDimension;
}

void ProgramOpEmitter::emitBulkCopy(const Op &op) {
  const CopyIssueOp copy(op);
  const unsigned row = rowOfBox(*copy.src().buffer);
  line(out, "{}({}, cta.params.{}, {}, {});",
       copy.cluster() ? fmt::format("copy_share_of_boxes<{}, {}>", kernel.grid.cluster, row) : "copy_boxes",
       operand(copy.dst()), params.mapOf(kernel, ofRole, op).str(), cornerOf(op), mbarrier(copy.full()));
}

void ProgramOpEmitter::emitBulkStore(const Op &op) {
  const BulkStoreOp store(op);
  const unsigned row = rowOfBox(*store.dst().buffer);
  const bool isOfGroup = actorOf(op) == Actor::Group;
  if (isOfGroup) {
    line(out, "if (ptx::thread_index() % {} == 0)", 32 * kGroupWarps);
    callStandsHere();
  }
  line(out, "{}store_boxes<{}>({}, {}, cta.params.{}, {});", isOfGroup ? "  " : "", row, operand(store.src()),
       isOfGroup ? "cta.group_row" : "0", params.mapOf(kernel, ofRole, op).str(), cornerOf(op));
}

// Control.

void ProgramOpEmitter::emitLet(const Let &let) {
  const std::string value = let.source
                                ? fmt::format("static_cast<int>(*({}))", address(*let.source->buffer, let.source->at))
                                : expression(let.value);
  line(out, "const int {} = {};{}", let.name, value, let.note.empty() ? "" : " // " + let.note);
}

void ProgramOpEmitter::emitFixedLets() {
  for (const Let &let : kernel.lets)
    if (isUsed(let.name) && !ofTiles.contains(let.name) && !(let.value == variable(RunValue::TilesOfCta)))
      emitLet(let);
}

std::string ProgramOpEmitter::tileCount() const {
  const std::string &listed = kernel.grid.listed;
  return listed.empty() ? "tile_count(cta.params)" : fmt::format("min(tile_count(cta.params), {})", listed);
}

/// Where the order is not that of numbers.
std::string ProgramOpEmitter::tileAt(const std::string &ticket) const {
  return kernel.grid.order == TileOrder::FirstFirst ? ticket : fmt::format("tile_at(cta.params, {})", ticket);
}

void ProgramOpEmitter::emitTile() {
  line(out, "[[maybe_unused]] const int {} = {};", tile, tileAt("ptx::cta_index()"));
  emitPlace();
}

/// The last index is the fastest.
void ProgramOpEmitter::emitPlace() {
  std::string rest = tile;
  for (const GridIndex &index : llvm::reverse(kernel.grid.indices)) {
    const bool isFirst = &index == &kernel.grid.indices.front();
    const std::string extent = asFactor(spelled(index.extent));
    if (isUsed(index.name))
      line(out, "const int {} = {}{};", index.name, rest, isFirst ? "" : " % " + extent);
    rest += " / " + extent;
  }
  for (const Let &let : kernel.lets)
    if (isUsed(let.name) && ofTiles.contains(let.name))
      emitLet(let);
}

/// Ops that stand together and are one thread's stand under one condition.
void ProgramOpEmitter::emitBody(const Block &block) {
  for (auto op = block.ops.begin(); op != block.ops.end();) {
    if (!isByFirstThread(**op)) {
      emitBlock({op->get()});
      ++op;
      continue;
    }
    line(out, "if (is_first) {{");
    {
      auto scope = out.scope();
      std::vector<const Op *> together;
      for (; op != block.ops.end() && isByFirstThread(**op); ++op)
        together.push_back(op->get());
      emitBlock(together);
    }
    line(out, "}}");
  }
}

void ProgramOpEmitter::emitLoop(const Op &op) {
  const LoopOp loop(op);
  if (isLoopOverTiles(kernel, op))
    return emitTiles(op);
  const std::string carry = loop.carry().str();
  if (!carry.empty())
    line(out, "for (int {0} = {1}, {3} = 0; {0} < {2}; {3} += {4}, ++{0}) {{", loop.variable().str(),
         expression(loop.begin()), expression(loop.end()), carry, expression(loop.step()));
  else
    line(out, "{} {{", loopHead(loop.variable(), loop.begin(), loop.end(), false, [&](const Expr &expr) {
           return expression(expr);
         }));
  {
    auto scope = out.scope();
    emitOps(op.body, op);
  }
  line(out, "}}");
}

/// Tiles go to the CTAs in turn, or each CTA goes on with the one that is handed over.
void ProgramOpEmitter::emitTiles(const Op &op) {
  const LoopOp loop(op);
  const std::string carry = loop.carry().str(), turn = loop.variable().str(), first = "ptx::cta_index()";
  const bool isDrawn = kernel.grid.isDrawn, isByTicket = !isDrawn && kernel.grid.order != TileOrder::FirstFirst;
  const std::string counted = isByTicket ? kernel.freshName("ticket") : tile;
  line(out, "for (int {0} = {1}, {2} = 0{3}; {0} < {4}; {5}++{2}) {{", counted, isDrawn ? tileAt(first) : first, turn,
       carry.empty() ? "" : fmt::format(", {} = 0", carry), tileCount(),
       isDrawn ? "" : fmt::format("{} += ptx::cta_count(), ", counted));
  {
    auto scope = out.scope();
    if (isByTicket)
      line(out, "const int {} = {};", tile, tileAt(counted));
    emitPlace();
    emitOps(op.body, op);
    if (!carry.empty())
      line(out, "{} += {};", carry, expression(loop.step()));
    if (isDrawn)
      line(out, "{} = {};", tile, next);
  }
  line(out, "}}");
}

/// One thread draws and hands over, and all others take; what it says is in the order of tiles.
void ProgramOpEmitter::emitTicket(const Op &op) {
  if (const auto fetch = dynCast<FetchTileOp>(op))
    return line(out, "const unsigned {} = draw(cta.params.{}, {});", drawn, fetch->counter().buffer->param,
                tileCount());
  if (const auto take = dynCast<TakeTileOp>(op))
    return line(out, "const int {} = take_tile(cta.shared.{});", next, take->src().buffer->name);
  line(out, "const int {} = {};", next, tileAt(fmt::format("ticket_of({}, {})", drawn, tileCount())));
  callStandsHere();
  line(out, "hand_tile(cta.shared.{}, {});", HandTileOp(op).dst().buffer->name, next);
}

/// Of a loop that one thread runs every op is its.
void ProgramOpEmitter::emitOps(const Block &block, const Op &owner) {
  if (!isByFirstThread(owner))
    return emitBody(block);
  for (const std::unique_ptr<Op> &op : block.ops)
    emitBlock({op.get()});
}

bool ProgramOpEmitter::emitOwn(const Op &op) {
  if (op.kind == OpKind::Loop)
    return emitLoop(op), true;
  if (const auto branch = dynCast<IfOp>(op)) {
    line(out, "if ({}) {{", expression(branch->condition()));
    {
      auto scope = out.scope();
      emitOps(op.body, op);
    }
    line(out, "}}");
    return true;
  }
  if (op.kind == OpKind::CopyIssue)
    return isBulkCopy(op) ? emitBulkCopy(op) : emitCopy(op), true;
  if (op.kind == OpKind::FetchTile || op.kind == OpKind::HandTile || op.kind == OpKind::TakeTile)
    return emitTicket(op), true;
  if (op.kind == OpKind::Store)
    return emitStore(op), true;
  if (op.kind == OpKind::BulkStore)
    return emitBulkStore(op), true;
  if (op.kind == OpKind::BulkCommit && actorOf(op) == Actor::Role)
    return line(out, "ptx::tma_commit();"), true;
  if (const auto wait = dynCast<BulkWaitOp>(op); wait && actorOf(op) == Actor::Role)
    return line(out, "ptx::tma_wait_read<{}>();", wait->pending()), true;
  return false;
}
