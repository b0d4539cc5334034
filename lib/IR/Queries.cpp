// fagen: the structure of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Queries.h"

#include "fagen/IR/Verifier.h"

#include "fagen/IR/LibraryConstants.h"
#include "fagen/IR/Views.h"

#include "llvm/ADT/STLExtras.h"

#include <fagen/device/tile/layout.h>

using namespace fagen;
using namespace fagen::ir;

static bool isCopyOf(const Op &op, CopyKind kind) {
  const auto copy = dynCast<CopyIssueOp>(op);
  return copy && copy->kind() == kind;
}

bool ir::isBulkCopy(const Op &op) { return isCopyOf(op, CopyKind::Bulk); }

bool ir::isThreadAsyncCopy(const Op &op) { return isCopyOf(op, CopyKind::CpAsync); }

bool ir::isCopyTo(const Op &op, const Buffer *buffer) {
  const auto copy = dynCast<CopyIssueOp>(op);
  return copy && copy->dst().buffer == buffer;
}

bool ir::isArrivalAt(const Op &op, const Buffer *bar) {
  const auto arrive = dynCast<ArriveOp>(op);
  return arrive && arrive->bar().buffer == bar;
}

bool ir::isWaitAt(const Op &op, const Buffer *bar) {
  const auto wait = dynCast<WaitOp>(op);
  return wait && wait->bar().buffer == bar;
}

Buffer *ir::fullOf(const Buffer &buffer) { return buffer.guard ? buffer.guard->full : nullptr; }

Buffer *ir::emptyOf(const Buffer &buffer) { return buffer.guard ? buffer.guard->empty : nullptr; }

Actor ir::actorOf(const Op &op) { return op.has(Attr::By) ? parse<Actor>(op.text(Attr::By)) : Actor::Role; }

int64_t ir::firstFreeBarrier(const Kernel &kernel) {
  int64_t free = 1;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      if (op.has(Attr::Id))
        free = std::max(free, op.integer(Attr::Id) + (op.has(Attr::Groups) ? op.integer(Attr::Groups) : 1));
    });
  return free;
}

WarpGrid fagen::ir::warpGridOf(const Kernel &kernel, const Role &role) {
  if (role.grid)
    return *role.grid;
  const unsigned columns = unsigned(measureOf(kernel, Measure::KeyWarps).value_or(1)),
                 rows = unsigned(measureOf(kernel, Measure::RowWarps).value_or(role.warps));
  return {rows * columns <= role.warps ? rows : std::max(role.warps / columns, 1u), columns};
}

unsigned ir::vectorBytesOf(const Kernel &kernel) {
  constexpr unsigned kWidest = 16;
  return unsigned(measureOf(kernel, Measure::VectorBytes).value_or(kWidest));
}

void ir::tellPart(Op &part, llvm::StringRef what) {
  if (part.has(Attr::About))
    part.set(Attr::About, (part.text(Attr::About) + what).str());
}

/// Whether it is a fragment of a tile, which no number that roles hand each other is.
static bool isRows(const Buffer *buffer) {
  return buffer && buffer->space == Space::Fragment && buffer->type != ElementType::U32;
}

std::optional<unsigned> ir::rowsOfWarp(const Kernel &kernel) {
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (isRows(buffer.get()))
      return buffer->rows;
  return std::nullopt;
}

/// Of an op of the role; nothing where it says nothing of them.
static std::optional<unsigned> rowsOfAllWarps(const Kernel &kernel, const Role &role, const Op &op) {
  if (op.kind == OpKind::Combine) // a row each
    return role.warps;
  for (const Operand &operand : op.operands)
    if (isRows(operand.buffer))
      return operand.buffer->rows * warpGridOf(kernel, role).rows;
  if (const auto product = dynCast<MmaOp>(op))
    return product->acc().buffer->rows;
  return std::nullopt;
}

std::optional<unsigned> ir::rowsOfTile(const Kernel &kernel) {
  std::optional<unsigned> rows;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      if (!rows)
        rows = rowsOfAllWarps(kernel, role, op);
    });
  return rows;
}

/// Whether an op of another role names the buffer.
static bool isOfOthers(const Kernel &kernel, const Role &role, const Buffer *buffer) {
  bool found = false;
  for (const Role &other : kernel.roles)
    if (&other != &role)
      walk(other.body, [&](const Op &op) {
        found |= llvm::any_of(op.operands, [&](const Operand &operand) { return operand.buffer == buffer; });
      });
  return found;
}

llvm::SmallVector<Role *, 2> ir::fillersOf(Kernel &kernel) {
  llvm::SmallVector<Role *, 2> fillers;
  for (Role &role : kernel.roles) {
    bool copies = false;
    walk(std::as_const(role.body), [&](const Op &op) {
      copies |= isBulkCopy(op) || (isThreadAsyncCopy(op) && isOfOthers(kernel, role, CopyIssueOp(op).dst().buffer));
    });
    if (copies && kernel.roles.size() > 1)
      fillers.push_back(&role);
  }
  return fillers;
}

llvm::SmallVector<Role *, 2> ir::usersBeside(Kernel &kernel, llvm::ArrayRef<Role *> fillers) {
  llvm::SmallVector<Role *, 2> users;
  for (Role &role : kernel.roles)
    if (!llvm::is_contained(fillers, &role))
      users.push_back(&role);
  return users;
}

llvm::SmallVector<Role *, 2> ir::multipliersBeside(Kernel &kernel, llvm::ArrayRef<Role *> fillers) {
  llvm::SmallVector<Role *, 2> users = usersBeside(kernel, fillers);
  llvm::erase_if(users, [](const Role *role) {
    bool multiplies = false;
    walk(role->body, [&](const Op &op) { multiplies |= op.kind == OpKind::Mma || op.kind == OpKind::MmaIssue; });
    return !multiplies;
  });
  return users;
}

Ops::iterator ir::headBarrier(Block &body) {
  return llvm::find_if(body.ops, [](const std::unique_ptr<Op> &op) {
    const auto barrier = dynCast<BarrierOp>(*op);
    return barrier && barrier->scope() == BarrierScope::Cta;
  });
}

llvm::SmallVector<Buffer *, 4> ir::ringsFilledBy(const Role &role) {
  llvm::SmallVector<Buffer *, 4> rings;
  forEach<CopyIssueOp>(role.body, [&](CopyIssueOp<const Op> copy) {
    Buffer *const dst = copy.dst().buffer;
    if (dst->isRing && !llvm::is_contained(rings, dst))
      rings.push_back(dst);
  });
  return rings;
}

bool ir::awaitsLaunches(const Kernel &kernel) {
  return llvm::any_of(kernel.roles.front().body.ops, [](const auto &op) { return op->kind == OpKind::AwaitLaunches; });
}

bool ir::readsAtItsHead(const Kernel &kernel) {
  return !kernel.scalars.empty() ||
         llvm::any_of(kernel.lets, [](const Let &let) { return let.source || let.judged || readsMemory(let.value); });
}

bool ir::awaitsLaunchesAtItsHead(const Kernel &kernel) {
  const auto &ops = kernel.roles.front().body.ops;
  return !ops.empty() && ops.front()->kind == OpKind::AwaitLaunches;
}

llvm::DenseSet<const Op *> ir::fencedOps(const Role &role) {
  llvm::DenseSet<const Op *> fenced;
  forEach<VoteOp>(role.body, [&](VoteOp<const Op> vote) {
    if (vote.fenced())
      walk(vote->body, [&](const Op &op) { fenced.insert(&op); });
  });
  return fenced;
}

Buffer *ir::sharedLeftOperand(const Role &role) {
  llvm::SmallVector<Buffer *, 2> found;
  walk(role.body, [&](const Op &op) {
    const auto product = dynCast<MmaIssueOp>(op);
    if (product && product->a().buffer->space == Space::Shared && !llvm::is_contained(found, product->a().buffer))
      found.push_back(product->a().buffer);
  });
  return found.size() == 1 ? found.front() : nullptr;
}

llvm::SmallVector<Operand, 1> ir::columnsInRegisters(const Op &op) {
  llvm::SmallVector<Operand, 1> columns;
  for (const Operand &operand : llvm::ArrayRef(op.operands).drop_front(MmaIssueOp<>::kB + 1))
    if (operand.buffer)
      columns.push_back(operand);
  return columns;
}

Buffer *ir::rightOperandInto(const Role &role, const Buffer *accumulator) {
  Buffer *found = nullptr;
  forEach<MmaIssueOp>(role.body, [&](MmaIssueOp<const Op> product) {
    if (product.acc().buffer == accumulator)
      found = product.b().buffer;
  });
  return found;
}

/// By how many steps the position lags the loop's; 0 where that is not known.
static int64_t lagBehind(LoopOp<const Op> loop, const Expr &position) {
  if (!position)
    return 0;
  const std::optional<Interval> apart = difference(variable(loop.variable()), position);
  return apart && apart->low == apart->high ? apart->low : 0;
}

int64_t ir::lagOf(const Kernel &kernel, const Buffer *ring) {
  int64_t most = 0;
  for (const Role &role : kernel.roles)
    forEach<LoopOp>(role.body, [&](LoopOp<const Op> loop) {
      for (const std::unique_ptr<Op> &op : loop->body.ops)
        if (const auto product = dynCast<MmaIssueOp>(std::as_const(*op)); product && product->b().buffer == ring)
          most = std::max(most, lagBehind(loop, product->b().position));
    });
  return most;
}

const Let *ir::letOf(const Kernel &kernel, const Expr &expr) {
  if (!expr || expr.kind() != ExprKind::Variable)
    return nullptr;
  const auto let = llvm::find_if(kernel.lets, [&](const Let &let) { return let.name == expr.name(); });
  return let == kernel.lets.end() ? nullptr : &*let;
}

const Let *ir::letWith(const Kernel &kernel, const Expr &value) {
  const Expr wanted = expand(kernel, value);
  const auto let =
      llvm::find_if(kernel.lets, [&](const Let &let) { return let.value && expand(kernel, let.value) == wanted; });
  return let == kernel.lets.end() ? nullptr : &*let;
}

Expr ir::letOfRead(Kernel &kernel, const Expr &read) {
  Buffer *const tensor = kernel.buffer(read.operands().front().name().drop_front());
  const llvm::ArrayRef<Expr> at = read.indices();
  auto place = kernel.lets.begin();
  for (auto let = kernel.lets.begin(); let != kernel.lets.end(); ++let) {
    if (let->source && let->source->buffer == tensor && llvm::equal(let->source->at, at))
      return let->value;
    if (read.uses(let->name))
      place = std::next(let);
  }
  Let let;
  let.name = kernel.freshName("own_" + tensor->name);
  let.value = variable(let.name);
  const Interval values = tensor->values.value_or(Interval{-kMaxReadValue, kMaxReadValue});
  let.source = GlobalElement{tensor, {at.begin(), at.end()}, values.low, values.high};
  const Expr value = let.value;
  kernel.lets.insert(place, std::move(let));
  return value;
}

std::optional<LoopOp<>> ir::turnsOf(Role &role) {
  for (std::unique_ptr<Op> &op : role.body.ops)
    if (const auto loop = dynCast<LoopOp>(*op); loop && !loop->carry().empty())
      return loop;
  return std::nullopt;
}

std::optional<LoopOp<const Op>> ir::turnsOf(const Role &role) {
  const auto turns = turnsOf(const_cast<Role &>(role));
  return turns ? std::optional(LoopOp<const Op>(**turns)) : std::nullopt;
}

Op *ir::lastLoop(Block &block) {
  const auto loop =
      llvm::find_if(llvm::reverse(block.ops), [](const std::unique_ptr<Op> &op) { return op->kind == OpKind::Loop; });
  return loop == block.ops.rend() ? nullptr : loop->get();
}

MaskBounds ir::boundsOf(const Kernel &kernel, ConstMask mask, const Expr &rowBegin, int64_t rows) {
  return analyzeMask(mask.predicate(), nameOf(RunValue::ElementRow), nameOf(RunValue::ElementKey), rowBegin, rows,
                     &kernel);
}

std::optional<int64_t> ir::constantOf(const Kernel &kernel, const Expr &expr) {
  return expr.evaluate([&](llvm::StringRef name) {
    return kernel.hasConstant(name) ? std::optional(kernel.constant(name)) : libraryConstant(name);
  });
}

Count ir::countOf(const Kernel &kernel, const Expr &written) {
  const std::optional<int64_t> value = constantOf(kernel, written);
  assert(value && *value >= 0 && "a count is an expression of constants");
  return Count(unsigned(*value), written);
}

ir::TileShape ir::scoresOf(const Kernel &kernel, const Role &role, ConstMask mask) {
  const Buffer &s = *mask.s().buffer; // of a warp, where it is a fragment
  const WarpGrid warps = s.space == Space::Fragment ? warpGridOf(kernel, role) : WarpGrid{1, 1};
  return {int64_t(s.rows) * warps.rows, int64_t(s.columns) * warps.columns};
}

/// What the op moves to or from global memory.
static const Buffer &otherSideOf(const Op &op, const Operand &global) {
  for (const Operand &operand : op.operands)
    if (operand.buffer && operand.buffer->space != Space::Global && operand.buffer->type != ElementType::MBarrier)
      return *operand.buffer;
  return *global.buffer;
}

TileShape ir::reachOf(const Kernel &kernel, const Role &role, const Op &op, const Operand &global) {
  const WarpGrid grid = warpGridOf(kernel, role);
  if (op.kind == OpKind::StoreNumber)
    return {1, 1};
  if (op.kind == OpKind::MergeParts)
    return {1, Matrix(global).isVector() ? 1 : constantOf(kernel, Matrix(global).columns()).value_or(1)};
  if (const auto transpose = dynCast<TransposeOp>(op)) {
    const int64_t rows = constantOf(kernel, Matrix(transpose->dst()).rows()).value_or(1), columns = transpose->tile();
    return &global == &transpose->src() ? TileShape{columns, rows} : TileShape{rows, columns};
  }
  const Buffer &tile = otherSideOf(op, global);
  const auto combine = dynCast<CombineLastOp>(op);
  if (combine || op.kind == OpKind::StoreMerged || op.kind == OpKind::StoreMergedSplit) {
    const bool isOfParts = combine ? &global == &combine->parts() : op.kind == OpKind::StoreMergedSplit;
    return {int64_t(tile.rows / grid.columns),
            int64_t(tile.columns) - device::kPartialExtra + (isOfParts ? device::kSplitExtra : 0)};
  }
  return {int64_t(tile.rows) * (tile.space == Space::Fragment ? grid.rows : 1), int64_t(tile.columns)};
}

Expr ir::keysOf(const Kernel &kernel, ConstMask mask) {
  const Expr key = mask.key();
  if (key.kind() != ExprKind::Mul || !constantOf(kernel, key.rhs()))
    return {};
  return key.rhs();
}

Expr ir::tilesSeenWhole(const MaskBounds &bounds, const Expr &keys) {
  return floorDiv(max(bounds.fullEnd, constant(0)), keys);
}

Expr ir::tilesSeen(const MaskBounds &bounds, const Expr &keys) {
  return ceilDiv(max(bounds.keyEnd, constant(0)), keys);
}

std::optional<ConstMask> ir::findMask(const Block &block) {
  std::optional<ConstMask> found;
  forEachMask(block, [&](ConstMask mask) { found = mask; });
  return found;
}
