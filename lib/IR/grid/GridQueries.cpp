// fagen: what a kernel's tiles are counted by, attention's like those of others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/GridQueries.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/RunValues.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

llvm::StringRef ir::wordOf(const CtaGrid &grid) {
  if (grid.unit != CtaGrid::Tiles)
    return grid.unit == CtaGrid::Rows ? "rows" : "key_tiles";
  if (grid.split)
    return grid.split->countsKeys ? "split_keys" : "splits";
  if (grid.hasClusters())
    return "clusters";
  return grid.isPersistent ? "persistent" : "tiles";
}

unsigned ir::numberOf(const CtaGrid &grid) {
  return grid.split ? grid.split->number : grid.hasClusters() ? grid.cluster : 0;
}

/// Attention's schema. CTAs of a cluster have neighbouring tiles of one head: the last one may lie after its rows.
static std::vector<GridIndex> indicesOfAttention(const Kernel &kernel) {
  const unsigned tile = rowsOfTile(kernel).value_or(0);
  if (tile == 0)
    return {};
  const bool packs = kernel.packsHeads();
  const Expr rows = packs ? variable(RunValue::SeqQ) * variable(RunValue::HeadsPerKv) : variable(RunValue::SeqQ);
  const Expr ofCluster = ceilDiv(rows, constant(int64_t(tile) * kernel.grid.cluster));
  return {
      {nameOf(RunValue::BatchIndex).str(), variable(RunValue::Batch)},
      {nameOf(packs ? RunValue::KvHead : RunValue::Head).str(), variable(packs ? RunValue::KvHeads : RunValue::Heads)},
      {"tile", kernel.grid.hasClusters() ? ofCluster * constant(kernel.grid.cluster) : ofCluster}};
}

std::vector<GridIndex> ir::indicesOf(const Kernel &kernel) {
  const bool isAttention = kernel.grid.indices.empty() && kernel.sizes.empty();
  return isAttention ? indicesOfAttention(kernel) : kernel.grid.indices;
}

Expr ir::tilesOf(const Kernel &kernel) {
  Expr tiles;
  for (const GridIndex &index : indicesOf(kernel))
    tiles = tiles ? tiles * index.extent : index.extent;
  return tiles ? tiles : constant(1);
}

llvm::StringRef ir::fastestOf(const Kernel &kernel) {
  return kernel.grid.indices.empty() ? nameOf(RunValue::RowBegin) : llvm::StringRef(kernel.grid.indices.back().name);
}

llvm::StringSet<> ir::withFollowers(const Kernel &kernel, llvm::StringSet<> names) {
  for (const Let &let : kernel.lets)
    if ((let.value && usesAny(let.value, names)) ||
        (let.source && llvm::any_of(let.source->at, [&](const Expr &at) { return usesAny(at, names); })))
      names.insert(let.name);
  return names;
}

bool ir::drawsTiles(const Kernel &kernel) {
  bool found = false;
  for (const Role &role : kernel.roles)
    forEach<FetchTileOp>(role.body, [&](FetchTileOp<const Op>) { found = true; });
  return found;
}
