// fagen: the judgement of key tiles, as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   const int at_first_row = ...; // the place that is read for the tile's first row
//   const int at_last_row = ...;
//   const SeenTiles seen = judge_tiles(first, tiles, kTileKeys,
//     [&](int low, int high) { return ...; }, // whether some row may see one of these keys
//     [&](int low, int high) { return ...; }); // whether every row sees all of them
//
// Conditions read tensors at the same few places again and again: those that the rows alone decide have names.

#include "../KernelEmitter.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/RunValues.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

/// Indices of reads that are one number for all key tiles, and more than a short sum, each once.
static void collectPlaces(const TileJudgement &judged, const Expr &expr, std::vector<Expr> &places) {
  constexpr unsigned kLongDepth = 3;
  for (const Expr &operand : expr.operands())
    collectPlaces(judged, operand, places);
  if (expr.kind() != ExprKind::Read)
    return;
  for (const Expr &index : expr.indices())
    if (index.uses(nameOf(RunValue::RowBegin)) && !index.uses(judged.low) && !index.uses(judged.high) &&
        index.depth() >= kLongDepth && !readsMemory(index) && !llvm::is_contained(places, index))
      places.push_back(index);
}

/// Those of a judgement with names; one that is another with the tile's last row in place of its first comes later.
static std::vector<std::pair<std::string, Expr>> namedPlaces(const Kernel &kernel, const TileJudgement &judged) {
  const Expr first = variable(RunValue::RowBegin), last = first + constant(rowsOfTile(kernel).value_or(1) - 1);
  std::vector<Expr> places;
  collectPlaces(judged, judged.seen, places);
  collectPlaces(judged, judged.whole, places);
  auto isOfLastRow = [&](const Expr &place) {
    return llvm::any_of(places, [&](const Expr &other) {
      return !(other == place) && other.substitute(nameOf(RunValue::RowBegin), last) == place;
    });
  };
  std::vector<std::pair<std::string, Expr>> named;
  for (const auto &[isLast, wanted] : {std::pair(false, "at_first_row"), std::pair(true, "at_last_row")})
    for (const Expr &place : places) {
      if (isOfLastRow(place) != isLast)
        continue;
      std::string name = kernel.freshName(wanted);
      for (unsigned i = 1; llvm::is_contained(llvm::make_first_range(named), name); ++i)
        name = kernel.freshName(fmt::format("{}_{}", wanted, i));
      named.push_back({std::move(name), place});
    }
  return named;
}

/// By whole warps. Where one thread makes mbarriers there is no tile yet, and nothing to judge.
void KernelEmitter::emitJudgement(const Let &let) {
  const TileJudgement &judged = *let.judged;
  const auto places = namedPlaces(kernel, judged);
  auto withNames = [&](const Expr &condition) {
    return condition.rewritten([&](const Expr &node) {
      const auto found = llvm::find_if(places, [&](const auto &place) { return place.second == node; });
      return found == places.end() ? Expr() : variable(found->first);
    });
  };
  if (const Buffer *sights = kernel.scratchTensor())
    line(out, "const Tensor<int, 4> {} = {}.tensor(params, {});", sights->name, mapOf(*sights), placeOfSights());
  for (const auto &[name, place] : places)
    line(out, "const int {} = {};", name, letValue(place));
  line(out, "const SeenTiles {} = judge_tiles({}, {}{}, kTileKeys,", let.name, letValue(judged.first),
       turns ? "turn < 0 ? 0 : " : "", letValue(judged.tiles));
  auto scope = out.scope();
  for (const auto &[condition, end] : {std::pair(judged.seen, ","), std::pair(judged.whole, ");")}) {
    auto parameter = [&](const std::string &name) { return condition.uses(name) ? "int " + name : std::string("int"); };
    line(out, "[&]({}, {}) {{ return {}; }}{}", parameter(judged.low), parameter(judged.high),
         letValue(withNames(condition)), end);
  }
}
