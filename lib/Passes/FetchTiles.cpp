// fagen: pass fetch-tiles: CTAs draw their tiles of query rows from a counter.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With a mask tiles differ in length, so CTAs that take them in turn drift apart. Here whoever is done draws the next
// one. The thread that loads does so when it is about to be: who draws at the beginning of a long tile has the next
// long one, too. It hands the number on through shared memory:
//
//   load   ...                               copies of the turn's tile
//          fetch_tile  next                  before its last ones: the counter is far away
//          ...
//          wait        tile_empty[turn - 1]  by one thread: everybody has read the last number
//          hand_tile   next_tile[turn], next
//          arrive      tile_full[turn]
//   others wait        tile_full[turn]       at the end of the turn
//          take_tile   next, next_tile[turn]
//          barrier     warp                  so that its first lane knows of the others
//          arrive      tile_empty[turn]      one thread of each warp
//
// In kernels with indices of their own the grid asks for it (drawn) and says the order; else options and the mask do.
//
// All roles then work on the same tiles in the same order, for as many turns. verify-barriers proves it from the ops.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/GridQueries.h"
#include "fagen/IR/RunValues.h"
#include "fagen/IR/TextNames.h"
#include "fagen/Spec/Spec.h"
#include "fagen/Target/Target.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

class TileFetcher {
public:
  TileFetcher(Kernel &kernel, Role &load) : kernel(kernel), load(load), users(usersBeside(kernel, &load)) {}

  bool fits(ShapeCheck &shape) const {
    const auto loads = turnsOf(load);
    const bool allTurn = llvm::all_of(users, [](const Role *user) { return turnsOf(*user).has_value(); });
    return shape.needs(loads && allTurn, "a loop over tiles of rows in each role") &&
           shape.needs(!ringsFilledBy(load).empty(), "a ring that role " + load.name + " fills") &&
           shape.needs(!drawsTiles(kernel), "tiles that no counter gives out yet") &&
           shape.needs(firstOf(load.body, OpKind::Fence), "a fence at the head of role " + load.name) &&
           shape.needs(drawPoint((*loads)->body.ops) != (*loads)->body.ops.end(),
                       "a loop that copies in each turn of role " + load.name, (*loads)->location);
  }

  void run() {
    const Let *const tiles = letOf(kernel, turnsOf(load)->end());
    for (Let &let : kernel.lets)
      if (&let == tiles)
        let.note = "fetch-tiles: tiles of query rows that this CTA draws";
    addBuffers();
    initialise(*full, 1);
    unsigned warps = 0;
    for (const Role *user : users)
      warps += user->warps;
    initialise(*empty, warps);
    draw(*turnsOf(load));
    for (Role *user : users)
      take(*turnsOf(*user));
    if (!kernel.grid.indices.empty()) // which say in which order
      kernel.grid.isDrawn = true;
    else if (seesMoreInLaterRows(kernel) || llvm::any_of(users, [&](const Role *user) { return endsLater(*user); }))
      orderTiles();
  }

private:
  /// Whether the keys that rows see end later in later rows. Where they begin later, too, as in a window or a chunk,
  /// the first rows see fewer keys than others do: these are to come last.
  bool endsLater(const Role &role) const {
    const auto mask = findMask(role.body);
    if (!mask)
      return false;
    const Expr end = boundsOf(kernel, *mask, mask->row(), scoresOf(kernel, role, *mask).rows).keyEnd;
    return direction(expand(kernel, end), nameOf(RunValue::RowBegin)) == Direction::NotDecreasing;
  }

  /// The longest tiles first pay where tiles differ; in the plain order fewer heads are worked on at a time. How many
  /// take turns is the target's policy.
  void orderTiles() {
    const TargetPolicy &policy = targetOrFirst(kernel.target).policy;
    const uint64_t cachedBytes = uint64_t(policy.cachedMiB) << 20, mostRows = policy.mostTurnRows;
    uint64_t rowBytes = 0;
    for (const Buffer *ring : ringsFilledBy(load))
      rowBytes += uint64_t(ring->columns) * sizeOf(ring->type);
    const bool isLong = rowBytes >= policy.longRowBytes;
    kernel.grid.order = TileOrder::LongestFirst;
    TurnOrder &turns = kernel.grid.turns.emplace();
    turns.rows = kernel.addConstant("kTurnRows", int64_t(std::min(cachedBytes / rowBytes / (isLong ? 2 : 1), mostRows)),
                                    "rows of K and V of the heads whose tiles take turns at the end: they stay in L2");
    if (isLong)
      turns.tiles = kernel.addConstant("kTurnTiles", policy.longTurnTiles,
                                       "heads of so many tiles all take turns, twice as many at a time");
  }

  void addBuffers() {
    next = &add("next", Space::Fragment, ElementType::U32);
    counter = &add(counterParam(), Space::Global, ElementType::U32);
    if (!kernel.grid.indices.empty()) { // a parameter of the kernel's own; else a part of the workspace
      counter->param = counterParam().str();
      counter->shape = {constant(1)};
    }
    number = &add("next_tile", Space::Shared, ElementType::U32);
    full = &add("tile_full", Space::Shared, ElementType::MBarrier);
    empty = &add("tile_empty", Space::Shared, ElementType::MBarrier);
    number->guard = {.full = full, .filledBy = Actor::Role, .empty = empty, .leftBy = Actor::Warp};
  }

  /// In shared memory one slot, which is used again each turn.
  Buffer &add(llvm::StringRef name, Space space, ElementType type) {
    Buffer buffer;
    buffer.name = kernel.freshName(name);
    buffer.space = space;
    buffer.type = type;
    buffer.rows = buffer.columns = 1;
    buffer.isRing = space == Space::Shared;
    buffer.location = location();
    return kernel.addBuffer(std::move(buffer));
  }

  const Location &location() const { return kernel.options.grid ? kernel.options.grid->location : kernel.location; }

  void initialise(Buffer &bar, unsigned arrivals) {
    auto fence = llvm::find_if(load.body.ops, [](const auto &op) { return op->kind == OpKind::Fence; });
    load.body.ops.insert(fence,
                         makeMbarrierInit({.bar = {&bar, constant(0)}, .arrivals = arrivals, .location = location()}));
  }

  /// The first loop that copies, after what is copied once a tile. Where products are rotated, what is left of V
  /// follows it. By then all but a few steps of the tile are done.
  static Ops::const_iterator drawPoint(const Ops &turn) {
    auto once = llvm::find_if(turn, [](const auto &op) { return op->kind == OpKind::CopyIssue; });
    return std::find_if(once == turn.end() ? turn.begin() : once, turn.end(), [](const auto &op) {
      return op->kind == OpKind::Loop && countOf(op->body, OpKind::CopyIssue) != 0;
    });
  }

  void draw(LoopOp<> turns) const {
    Block &tile = turns->body;
    const Expr turn = variable(turns.variable());
    tile.ops.insert(drawPoint(tile.ops) + 1,
                    makeFetchTile({.next = {next, {}}, .counter = {counter, {}}, .location = location()}));
    tile.ops.push_back(makeWait({.bar = {empty, turn - constant(1)},
                                 .by = Actor::Role,
                                 .location = location(),
                                 .note = "fetch-tiles: everybody has read the last number"}));
    tile.ops.push_back(makeHandTile({.dst = {number, turn}, .next = {next, {}}, .location = location()}));
    tile.ops.push_back(makeArrive({.bar = {full, turn}, .by = Actor::Role, .location = location()}));
  }

  void take(LoopOp<> turns) const {
    Block &tile = turns->body;
    const Expr turn = variable(turns.variable());
    tile.ops.push_back(makeWait({.bar = {full, turn},
                                 .by = Actor::Thread,
                                 .location = location(),
                                 .note = "fetch-tiles: the next tile's number is there"}));
    tile.ops.push_back(makeTakeTile({.next = {next, {}}, .src = {number, turn}, .location = location()}));
    tile.ops.push_back(makeBarrier(
        {.scope = BarrierScope::Warp, .location = location(), .note = "fetch-tiles: all lanes have read it"}));
    tile.ops.push_back(makeArrive({.bar = {empty, turn}, .by = Actor::Warp, .location = location()}));
  }

  Kernel &kernel;
  Role &load;
  const llvm::SmallVector<Role *, 2> users; ///< who work on what it copies
  Buffer *next = nullptr, *counter = nullptr, *number = nullptr, *full = nullptr, *empty = nullptr;
};

} // namespace

bool fagen::fetchTiles(Kernel &kernel, PassContext &context) {
  const auto fillers = fillersOf(kernel);
  if (fillers.empty() || (kernel.grid.isDrawn && drawsTiles(kernel)))
    return false;
  TileFetcher fetcher(kernel, *fillers.front());
  ShapeCheck shape(kernel, context, "fetch-tiles");
  if (!shape.needs(fillers.size() == 1, "one role that copies in bulk: it draws for all") || !fetcher.fits(shape))
    return false;
  fetcher.run();
  return true;
}
