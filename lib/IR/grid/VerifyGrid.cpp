// fagen: the IR verifier: how tiles go to CTAs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../VerifierState.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/GridQueries.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Queries.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::Twine;

namespace {

class GridVerifier {
public:
  explicit GridVerifier(VerifierState &state) : state(state), kernel(state.kernel), grid(kernel.grid) {}

  void check() {
    if (grid.split && grid.split->countsKeys && grid.split->number == 0)
      defect("grid split_keys 0; a split has at least one key");
    if (grid.cluster == 0 || grid.cluster > kMaxCluster)
      defect("grid clusters " + Twine(grid.cluster) + "; a cluster has 2 to " + Twine(kMaxCluster) + " CTAs");
    if (grid.turns && (grid.hasClusters() || grid.turns->rows == 0))
      defect("grid " + wordOf(grid) + " longest_first " + Twine(grid.turns->rows) +
             "; CTAs of one cluster have neighbouring tiles, and runs that take turns have at least one row");
    if (kernel.hasOwnParams())
      checkIndexed();
    else
      checkAttention();
  }

private:
  void defect(const Twine &message) { state.defect(kernel.location, message); }

  /// Its order follows from its mask, and its ops say whether tiles are drawn.
  void checkAttention() {
    if (grid.turns && !grid.isPersistent)
      defect("grid " + wordOf(grid) + " longest_first " + Twine(grid.turns->rows) +
             "; of attention's tiles only persistent CTAs draw tickets");
    if (grid.order == TileOrder::LastFirst || grid.isDrawn || !grid.listed.empty() ||
        (grid.turns && grid.turns->rowsOfRun) || (grid.hasClusters() && !grid.isPersistent))
      defect("the grid counts attention's tiles, which have no indices; tiles in clusters, drawn, listed, last_first "
             "and longest_first ... of ... take indices: (m in ceil_div(M, 64), ...)");
  }

  /// Only persistent CTAs take several tiles.
  void checkTurns() {
    const llvm::StringRef count = nameOf(RunValue::TilesOfCta);
    auto check = [&](const Expr &expr, const std::string &who) {
      if (!grid.isPersistent && expr && expr.uses(count))
        defect(who + " names " + count +
               ", how many tiles a CTA takes; of grid tiles each takes one: say grid persistent");
    };
    for (const Let &let : kernel.lets)
      check(let.value, "let " + let.name);
    for (const Role &role : kernel.roles)
      walk(role.body, [&](const Op &op) {
        forEachExpr(op, [&](const Expr &expr) { check(expr, opInfo(op.kind).name.str() + " of role " + role.name); });
      });
  }

  void checkIndexed() {
    if (grid.unit != CtaGrid::Tiles || grid.split)
      return defect("grid " + wordOf(grid) +
                    " counts by attention's tiles; a kernel with parameters of its own has grid tiles or persistent, "
                    "and an index for what shares a tile");
    if (grid.turns && !grid.turns->rowsOfRun)
      defect("longest_first " + Twine(grid.turns->rows) +
             " does not say how many rows a run of tiles has: longest_first " + Twine(grid.turns->rows) + " of S");
    if (grid.isDrawn && (!grid.isPersistent || grid.hasClusters()))
      defect("a drawn grid is persistent and has no clusters: each CTA draws a tile when it is done with one");
    checkTurns();
    checkClusters();
    checkListed();
    if (kernel.phase >= Phase::LaidOut || drawsTiles(kernel))
      checkTickets();
  }

  /// A cluster is whole, and its tiles are of one run.
  void checkClusters() {
    if (!grid.hasClusters())
      return;
    if (grid.indices.empty() || !isMultiple(expand(kernel, grid.indices.back().extent), grid.cluster))
      defect("clusters of " + Twine(grid.cluster) + " CTAs have tiles that differ in the last index: its extent is a " +
             "multiple of " + Twine(grid.cluster) + ", as in (m in ceil_div(M, 256) * " + Twine(grid.cluster) + ")");
  }

  void checkListed() {
    if (grid.listed.empty())
      return;
    llvm::StringSet<> indices;
    for (const GridIndex &index : grid.indices)
      indices.insert(index.name);
    const bool isLet = llvm::any_of(kernel.lets, [&](const Let &let) { return let.name == grid.listed; });
    if (!isLet || withFollowers(kernel, indices).contains(grid.listed))
      defect("grid listed " + grid.listed + "; that is no let, or one that changes from tile to tile");
    if (!grid.isPersistent || grid.hasClusters() || grid.order != TileOrder::FirstFirst)
      defect("grid listed " + grid.listed +
             "; CTAs that take tiles of a list are persistent, in no clusters, and take them in its order");
  }

  // Who draws, and who is told. From the layouts on no pass adds it.

  void checkTickets() {
    const Role *drawing = nullptr;
    for (const Role &role : kernel.roles) {
      const unsigned draws = count(role.body, OpKind::FetchTile), hands = count(role.body, OpKind::HandTile),
                     takes = count(role.body, OpKind::TakeTile);
      if (draws + hands + takes != 0 && !grid.isDrawn)
        return defect("role " + role.name + " draws tiles, hands or takes them; the grid is not drawn");
      if (!grid.isDrawn || (draws + hands + takes == 0 && !turnsOf(role)))
        continue;
      const bool isDrawing = draws == 1 && hands == 1 && takes == 0, isTold = takes == 1 && draws + hands == 0;
      if ((!isDrawing && !isTold) || !standInTurns(role))
        defect("role " + role.name + " has " + Twine(draws) + " fetch_tile, " + Twine(hands) + " hand_tile and " +
               Twine(takes) +
               " take_tile; of a drawn grid each role has, in its loop over tiles, the first two once, "
               "or the last once");
      else if (isDrawing && drawing)
        defect("roles " + drawing->name + " and " + role.name + " both draw tiles; one does for all");
      drawing = isDrawing ? &role : drawing;
    }
    if (grid.isDrawn && !drawing)
      defect("the grid is drawn, and no role draws: fetch-tiles adds it to roles of which one copies in bulk");
  }

  static unsigned count(const Block &body, OpKind kind) {
    unsigned found = 0;
    walk(body, [&](const Op &op) { found += op.kind == kind; });
    return found;
  }

  static bool isTicket(const Op &op) {
    return op.kind == OpKind::FetchTile || op.kind == OpKind::HandTile || op.kind == OpKind::TakeTile;
  }

  /// Once in each turn, the draw before what is handed over.
  static bool standInTurns(const Role &role) {
    const auto turns = turnsOf(role);
    unsigned all = 0, own = 0;
    bool hasDrawn = false, isInOrder = true;
    walk(role.body, [&](const Op &op) { all += isTicket(op); });
    if (turns)
      for (const std::unique_ptr<Op> &op : (*turns)->body.ops) {
        own += isTicket(*op);
        hasDrawn |= op->kind == OpKind::FetchTile;
        isInOrder &= op->kind != OpKind::HandTile || hasDrawn;
      }
    return all == own && isInOrder;
  }

  VerifierState &state;
  const Kernel &kernel;
  const CtaGrid &grid;
};

} // namespace

void ir::verifyGrid(VerifierState &state) { GridVerifier(state).check(); }
