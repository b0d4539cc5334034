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

namespace {

/// Indices of a judgement's reads that are one number for all key tiles, and more than a short sum.
class PlacesOfRows {
public:
  PlacesOfRows(const Kernel &kernel, const TileJudgement &judged) : kernel(kernel), judged(judged) {
    collect(judged.seen);
    collect(judged.whole);
    const std::vector<Expr> found = places;
    llvm::stable_sort(places,
                      [&](const Expr &a, const Expr &b) { return isOfLastRow(found, a) < isOfLastRow(found, b); });
    for (const Expr &place : places)
      names.push_back(freshName(isOfLastRow(found, place) ? "at_last_row" : "at_first_row"));
  }

  Expr named(const Expr &condition) const {
    return condition.rewritten([&](const Expr &node) {
      const auto found = llvm::find(places, node);
      return found == places.end() ? Expr() : variable(names[found - places.begin()]);
    });
  }

  std::vector<Expr> places;
  std::vector<std::string> names;

private:
  void collect(const Expr &expr) {
    for (const Expr &operand : expr.operands())
      collect(operand);
    if (expr.kind() == ExprKind::Read)
      for (const Expr &index : expr.indices())
        add(index);
  }

  void add(const Expr &index) {
    constexpr unsigned kLongDepth = 3;
    const bool isOfRows = index.uses(nameOf(RunValue::RowBegin)) && !index.uses(judged.low) && !index.uses(judged.high);
    if (isOfRows && index.depth() >= kLongDepth && !readsMemory(index) && !llvm::is_contained(places, index))
      places.push_back(index);
  }

  /// Whether it is another one with the tile's last row in place of its first.
  bool isOfLastRow(const std::vector<Expr> &all, const Expr &place) const {
    const Expr first = variable(RunValue::RowBegin), last = first + constant(rowsOfTile(kernel).value_or(1) - 1);
    return llvm::any_of(all, [&](const Expr &other) {
      return !(other == place) && other.substitute(nameOf(RunValue::RowBegin), last) == place;
    });
  }

  std::string freshName(const std::string &wanted) const {
    std::string name = kernel.freshName(wanted);
    for (unsigned i = 1; llvm::is_contained(names, name); ++i)
      name = kernel.freshName(wanted + "_" + std::to_string(i));
    return name;
  }

  const Kernel &kernel;
  const TileJudgement &judged;
};

} // namespace

/// By whole warps. Where one thread makes mbarriers there is no tile yet, and nothing to judge.
void KernelEmitter::emitJudgement(const Let &let) {
  const TileJudgement &judged = *let.judged;
  const PlacesOfRows places(kernel, judged);
  if (const Buffer *sights = kernel.scratchTensor())
    line(out, "const Tensor<int, 4> {} = {}.tensor(params, {});", sights->name, mapOf(*sights), placeOfSights());
  for (const auto &[place, name] : llvm::zip(places.places, places.names))
    line(out, "const int {} = {};", name, letValue(place));
  line(out, "const SeenTiles {} = judge_tiles({}, {}{}, kTileKeys,", let.name, letValue(judged.first),
       turns ? "turn < 0 ? 0 : " : "", letValue(judged.tiles));
  auto scope = out.scope();
  for (const auto &[condition, end] : {std::pair(judged.seen, ","), std::pair(judged.whole, ");")}) {
    auto parameter = [&](const std::string &name) { return condition.uses(name) ? "int " + name : std::string("int"); };
    line(out, "[&]({}, {}) {{ return {}; }}{}", parameter(judged.low), parameter(judged.high),
         letValue(places.named(condition)), end);
  }
}
