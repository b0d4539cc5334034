// fagen: pass stage-output: results leave through shared memory, while the next tile is worked on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Q gets a second slot, so that the next tile's Q comes while this one is used. After a tile's last product nobody
// reads its slot, and O has no more columns than Q: each group of four warps writes its rows of O over its own rows of
// Q, whole matrices at once, and one of its threads issues a bulk store.
//
//   turn t     first step
//              bulk_wait; arrive q_empty[t]     the store of turn t - 1 has read its slot: Q of turn t + 1 may come
//              other steps
//              stage_output; fence async_proxy; barrier of the group; bulk_store; bulk_commit
//   at last    bulk_wait
//
// The store leaves out rows after the last one of the tensor. Where rows beyond a tile's last one are another tile's,
// as in ragged batches, a box that would reach them does not leave; threads store what the tile has:
//
//              if whole: bulk_store; bulk_commit
//              if not: store
//
// The store and needs neither addresses nor shuffles of the threads. A group waits
// for no other: its products read no rows of Q but its own.
//
// Where Q has no second slot, half of O's columns have a place of their own, and leave one after the other:
//
//   turn t     all steps
//              bulk_wait; barrier of the group  the store before has read the place
//              stage_output; fence async_proxy; barrier of the group; bulk_store; bulk_commit
//              the same with the other columns
//   at last    bulk_wait

#include "fagen/IR/Queries.h"
#include "fagen/IR/Views.h"
#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>

using namespace fagen;
using namespace fagen::ir;

namespace {

/// A store of a tile's rows; values of rows, one for each, go to memory as they are.
bool isOfMatrix(const Op &op) { return op.kind == OpKind::Store && !storesValues(op); }

/// What both ways have in common.
class Stager {
protected:
  explicit Stager(Kernel &kernel, Role &math, int64_t barrier = kGroupBarrier)
      : kernel(kernel), math(math), barrier(barrier), whole(kernel.freshName("whole")) {}

  static void appendWait(Ops &ops, const Location &location = {}) {
    ops.push_back(makeBulkWait({.pending = 0, .by = Actor::Group, .location = location}));
  }

  /// The columns of the store from `first` on leave through `place`; without that, all of them.
  void stage(StoreOp<const Op> store, Ops &ops, const Operand &place, std::optional<int64_t> first = {}) const {
    const Location &location = store->location;
    ops.push_back(makeStageOutput({.dst = place, .o = store.o(), .first = first, .location = location}));
    ops.push_back(makeFence({.kind = FenceKind::AsyncProxy, .location = location}));
    appendBarrier(ops, location, "stage-output: the rows of the group are there");
    auto box = makeBulkStore({.dst = store.dst(),
                              .src = place,
                              .row = store.row(),
                              .limit = store.limit(),
                              .by = Actor::Group,
                              .first = first,
                              .column = store.column(),
                              .location = location});
    Ops leaving;
    const Expr isInside = conditionOf(*box, *place.buffer);
    leaving.push_back(std::move(box));
    leaving.push_back(makeBulkCommit({.by = Actor::Group, .location = location}));
    if (!isInside)
      return append(ops, std::move(leaving));
    appendIf(ops, isInside, std::move(leaving), location, "stage-output: the whole tile");
    if (first.value_or(0))
      return;
    Ops stored;
    stored.push_back(clone(*store));
    appendIf(ops, equal(isInside, constant(0)), std::move(stored), location, "stage-output: a part of a tile");
  }

  /// When the box may leave; null if always. A let says whether the matrix has the whole tile.
  Expr conditionOf(const Op &box, const Buffer &tile) const {
    const Buffer &matrix = *globalOf(box);
    if (matrix.shape.empty() || !boxMapOf(matrixOf(box)) || boxEndsWithMatrix(box, tile))
      return {};
    const Expr inside = isBoxInside(box, tile);
    auto known = llvm::find_if(kernel.lets, [&](const Let &let) { return let.value == inside; });
    if (known != kernel.lets.end())
      return variable(known->name);
    std::string name = whole;
    while (llvm::any_of(kernel.lets, [&](const Let &let) { return let.name == name; }))
      name += "_too";
    kernel.lets.push_back({name, inside, "1: the matrix has the whole tile"});
    return variable(name);
  }

  static void appendIf(Ops &ops, const Expr &condition, Ops body, const Location &location, llvm::StringRef note) {
    auto branch = makeIf({.condition = condition, .location = location, .note = note.str()});
    branch->body.ops = std::move(body);
    ops.push_back(std::move(branch));
  }

  static void append(Ops &ops, Ops more) { llvm::move(more, std::back_inserter(ops)); }

  void appendBarrier(Ops &ops, const Location &location, llvm::StringRef note) const {
    const int64_t groups = math.warps / kGroupWarps;
    ops.push_back(makeBarrier({.scope = BarrierScope::Named,
                               .id = barrier,
                               .firstWarp = math.firstWarp,
                               .warps = math.warps,
                               .groups = groups > 1 ? std::optional(groups) : std::nullopt,
                               .location = location,
                               .note = note.str()}));
  }

  Kernel &kernel;
  Role &math;
  const int64_t barrier;   ///< the number of the groups' first one
  const std::string whole; ///< of the let of a store that a part of a tile may be left to
};

/// Through the slot of Q that was read.
class SlotStager : Stager {
public:
  SlotStager(Kernel &kernel, Role &load, Role &math)
      : Stager(kernel, math), load(load), q(sharedLeftOperand(math)), qFull(q ? fullOf(*q) : nullptr),
        qEmpty(q ? emptyOf(*q) : nullptr), slots(kernel.options.querySlots->value) {}

  bool fits(ShapeCheck &shape) const {
    constexpr unsigned kMostSlots = 8;
    return shape.needs(q && qFull && qEmpty && !q->isRing,
                       "products of one guarded tile of rows, which has one slot") &&
           shape.needs(slots > 1 && slots <= kMostSlots, "query_slots from 2 to " + llvm::Twine(kMostSlots));
  }

  void run() {
    for (Buffer *buffer : {q, qFull}) {
      buffer->isRing = true;
      buffer->stages = slots;
    }
    q->guard->leftBy = Actor::Group;
    q->guard->lag = slots - 1;
    for (Role *role : {&load, &math})
      if (const auto turns = turnsOf(*role))
        placeInSlots((*turns)->body, variable(turns->variable()));
    initialise();
    stageTiles(*turnsOf(math));
    appendWait(math.body.ops);
  }

private:
  /// Q of a turn lies in the turn's slot.
  void placeInSlots(Block &block, const Expr &turn) {
    for (std::unique_ptr<Op> &op : block.ops) {
      placeInSlots(op->body, turn);
      for (Operand &operand : op->operands)
        if (operand.buffer == q)
          operand.position = turn;
    }
  }

  /// An mbarrier for each slot, and an arrival of each group.
  void initialise() {
    Ops ops;
    for (std::unique_ptr<Op> &op : load.body.ops) {
      const auto init = dynCast<MbarrierInitOp>(*op);
      ops.push_back(std::move(op));
      if (init && init->bar().buffer == qEmpty)
        init->setArrivals(math.warps / kGroupWarps);
      if (init && init->bar().buffer == qFull)
        for (unsigned slot = 1; slot < slots; ++slot)
          ops.push_back(makeMbarrierInit(
              {.bar = {qFull, constant(slot)}, .arrivals = init->arrivals(), .location = (*init)->location}));
    }
    load.body.ops = std::move(ops);
  }

  void stageTiles(LoopOp<> turns) {
    Block &tiles = turns->body;
    const Expr turn = variable(turns.variable());
    Ops ops;
    bool isReleased = false;
    for (std::unique_ptr<Op> &op : tiles.ops) {
      const bool isLoop = op->kind == OpKind::Loop;
      if (isOfMatrix(*op))
        stage(StoreOp(std::as_const(*op)), ops, {q, turn});
      else if (!isArrivalAt(*op, qEmpty))
        ops.push_back(std::move(op));
      if (isLoop && !std::exchange(isReleased, true))
        release(ops, turn);
    }
    tiles.ops = std::move(ops);
  }

  void release(Ops &ops, const Expr &turn) const {
    appendWait(ops, qEmpty->location);
    ops.push_back(makeArrive({.bar = {qEmpty, turn},
                              .by = Actor::Group,
                              .location = qEmpty->location,
                              .note = "stage-output: the last tile's results have left the slot of the next Q"}));
  }

  Role &load;
  Buffer *const q, *const qFull, *const qEmpty;
  const Count slots;
};

/// Slice by slice of the columns, through a place of their own.
class SliceStager : Stager {
public:
  SliceStager(Kernel &kernel, Role &math)
      : Stager(kernel, math, barrierOf(kernel, math)), columns(kernel.options.stagedColumns->value) {}

  bool fits(ShapeCheck &shape) const {
    const auto turns = turnsOf(math);
    const Op *const store = turns ? firstOf((*turns)->body, isOfMatrix) : nullptr;
    return shape.needs(countOf(math.body, OpKind::StageOutput) == 0, "results that nobody stages yet") &&
           shape.needs(store, "a store in each turn of role " + math.name) &&
           shape.needs(rightOperandInto(math, StoreOp(*store).o().buffer),
                       "products that the store's rows come from") &&
           shape.needs(columns > 0 && columns <= StoreOp(*store).o().buffer->columns,
                       "staged_columns from 1 to the columns of the store", store->location);
  }

  void run() {
    Block &tiles = (*turnsOf(math))->body;
    auto store = llvm::find_if(tiles.ops, [](const auto &op) { return isOfMatrix(*op); });
    const StoreOp whole(std::as_const(**store));
    Buffer *const out = &addOut(*rightOperandInto(math, whole.o().buffer), whole);
    Ops slices;
    for (unsigned first = 0; first < whole.o().buffer->columns; first += columns) {
      appendWait(slices, whole->location);
      appendBarrier(slices, whole->location, "stage-output: the store before has read them");
      stage(whole, slices, {out, {}}, first);
    }
    store = tiles.ops.erase(store);
    insert(tiles.ops, store, std::move(slices));
    appendWait(math.body.ops);
  }

private:
  /// The number that groups have, where no other role meets there.
  static int64_t barrierOf(const Kernel &kernel, const Role &math) {
    bool isTaken = false;
    for (const Role &role : kernel.roles)
      forEach<BarrierOp>(role.body, [&](BarrierOp<const Op> barrier) {
        isTaken |= &role != &math && barrier.scope() == BarrierScope::Named;
      });
    return isTaken ? firstFreeBarrier(kernel) : kGroupBarrier;
  }

  /// Next to the rings of K and V: bulk copies want tiles where a swizzle pattern begins.
  Buffer &addOut(const Buffer &v, StoreOp<const Op> whole) const {
    auto place = llvm::find_if(kernel.buffers, [&](const auto &buffer) { return buffer.get() == &v; });
    auto buffer = std::make_unique<Buffer>();
    buffer->name = kernel.freshName("out");
    buffer->space = Space::Shared;
    buffer->type = whole.dst().buffer->type;
    buffer->rows = productOf(kernel, rowWarps(), whole.o().buffer->rows);
    buffer->columns = columns;
    buffer->location = v.location;
    return **kernel.buffers.insert(place + 1, std::move(buffer));
  }

  /// Side by side over the rows.
  Count rowWarps() const {
    const unsigned rows = warpGridOf(kernel, math).rows;
    return math.grid ? Count(rows) : Count(rows, byName(kernel, Measure::RowWarps, rows));
  }

  const Count columns;
};

} // namespace

static bool stageInSlots(Kernel &kernel, llvm::ArrayRef<Role *> fillers, llvm::ArrayRef<Role *> stagers,
                         ShapeCheck &shape) {
  if (!shape.needs(fillers.size() == 1 && stagers.size() == 1,
                   "one role that copies and one that multiplies: Q's slots are left for the one by the other"))
    return false;
  SlotStager stager(kernel, *fillers.front(), *stagers.front());
  if (!stager.fits(shape))
    return false;
  stager.run();
  return true;
}

static bool stageInSlices(Kernel &kernel, llvm::ArrayRef<Role *> stagers, ShapeCheck &shape) {
  for (Role *role : stagers)
    if (!SliceStager(kernel, *role).fits(shape))
      return false;
  for (Role *role : stagers)
    SliceStager(kernel, *role).run();
  return true;
}

bool fagen::stageOutput(Kernel &kernel, PassContext &context) {
  const auto fillers = fillersOf(kernel), stagers = multipliersBeside(kernel, fillers);
  if (fillers.empty() || !(kernel.options.querySlots || kernel.options.stagedColumns))
    return false;
  ShapeCheck shape(kernel, context, "stage-output");
  if (!shape.needs(!stagers.empty(), "products that the store's rows come from") || !turnsOf(*stagers.front()))
    return false;
  if (kernel.options.querySlots)
    return stageInSlots(kernel, fillers, stagers, shape);
  return stageInSlices(kernel, stagers, shape);
}
