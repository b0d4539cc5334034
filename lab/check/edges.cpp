// fagen: problems in which the key tiles that a row's form needs begin and end next to the edges of tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "edges.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace fagen::lab {

namespace {

/// So many tiles of rows and of keys, and some more or less.
struct Size {
  int64_t rowTiles, keyTiles, more;
};

struct Edge {
  Size queries;
  bool isOfLastRow; ///< the row after a tile's last one has this place among the keys, not its first row
  Size place;       ///< beyond key tiles for that tile's rows
  Size sizes[2];    ///< that integers of the form take in turn
};

/// Drawn at random; of some hundreds those that tell the most wrong bounds from right ones, by one token of any shipped
/// form's, for tiles of 128 x 128, 128 x 80, 64 x 128 and 16 x 32.
constexpr Edge kEdges[] = {
    {{1, 0, 1}, true, {0, 0, 1}, {{0, 1, -1}, {0, 0, 1}}},
    {{1, 0, 1}, true, {0, 4, 0}, {{0, 3, 1}, {1, 1, -2}}},
    {{2, 0, 0}, true, {0, 0, 0}, {{1, 1, 0}, {1, 1, 0}}},
    {{2, 0, 0}, true, {0, 3, 1}, {{0, 0, 1}, {1, 1, 1}}},
    {{2, 0, 0}, true, {0, 4, 1}, {{0, 3, 0}, {1, 2, 0}}},
    {{1, 0, 0}, true, {0, 4, 1}, {{0, 3, -1}, {1, 1, 1}}},
    {{2, 0, 0}, true, {0, 0, -1}, {{1, 2, -1}, {0, 0, 2}}},
    {{2, 0, 0}, true, {0, 0, -2}, {{0, 3, 0}, {1, 3, 2}}},
    {{1, 0, 1}, true, {0, 1, 2}, {{0, 2, 0}, {1, 1, 0}}},
    {{1, 0, 0}, false, {0, 2, 0}, {{0, 0, 2}, {0, 0, 3}}},
    {{1, 0, 0}, false, {0, 3, -2}, {{1, 1, -2}, {0, 0, -2}}},
    {{1, 0, 0}, false, {0, 4, -1}, {{0, 3, -2}, {1, 1, 1}}},
    {{1, 0, 0}, false, {0, 5, -1}, {{1, 0, 1}, {0, 0, -1}}},
    {{2, 0, 0}, false, {0, 0, -2}, {{0, 2, 2}, {0, 2, 0}}},
    {{1, 0, 1}, true, {0, 4, -1}, {{1, 0, -1}, {1, 1, -1}}},
    {{1, 0, 1}, true, {0, 4, -1}, {{0, 2, -1}, {0, 2, 2}}},
    {{1, 0, 1}, true, {0, 2, -1}, {{0, 0, 2}, {0, 1, 0}}},
    // Few keys: the first tile of rows sees one key tile of two, or none.
    {{2, 0, 0}, false, {-1, 0, -2}, {{1, 0, 1}, {0, 0, 1}}},
    {{2, 0, 0}, false, {0, 0, 1}, {{1, 1, 0}, {0, 0, 1}}},
    {{2, 0, 0}, false, {0, 0, -2}, {{1, 1, 0}, {0, 0, 1}}},
    // Rows before the first key by a key tile and more, and integers of batches and heads as far below 0.
    {{2, 0, 0}, false, {-1, -1, -2}, {{0, -1, 0}, {0, -1, 0}}},
    {{1, 0, 1}, false, {1, 2, 0}, {{0, 2, 0}, {0, 0, 0}}},
    // Blocks of two rows and a key: a map of few ends before the second tile of rows begins.
    {{3, 0, 0}, false, {0, 2, 1}, {{0, 0, 2}, {0, 0, 1}}},
    {{1, 0, 0}, false, {0, 4, 0}, {{1, 0, 0}, {0, 0, 0}}},
    // A left edge in the midst of two key tiles, and one that is whole.
    {{1, 0, 0}, true, {0, 4, 0}, {{0, 2, -5}, {1, 1, 0}}},
    // Integers at their least, and longer runs. Those of even places are also for forms with tensors of integers.
    {{1, 0, 0}, true, {0, 2, 0}, {{0, 0, 0}, {0, 0, 1}}},
    {{1, 0, 0}, true, {0, 2, 2}, {{0, 3, 1}, {0, 0, 1}}},
    {{1, 0, 1}, true, {0, 2, -1}, {{0, 0, 1}, {0, 0, 1}}},
    {{2, 0, -2}, true, {1, 3, 1}, {{1, 1, 0}, {0, 0, 1}}},
    {{2, 0, -1}, true, {0, 1, 0}, {{1, 2, -1}, {0, 0, 1}}},
    {{1, 0, 1}, true, {1, 3, -2}, {{0, 0, 0}, {0, 0, 1}}},
    {{1, 0, 1}, true, {0, 1, 0}, {{0, 0, 0}, {0, 0, 0}}},
    {{1, 0, 1}, true, {1, 2, 0}, {{0, 0, 2}, {0, 0, 1}}},
    {{1, 0, 7}, true, {0, 1, 0}, {{1, 2, -1}, {0, 0, 1}}},
    {{1, 0, 0}, true, {1, 1, -1}, {{0, 1, 1}, {0, 1, 1}}},
    {{2, 0, 0}, true, {1, 0, 1}, {{0, 1, 1}, {0, 0, 0}}},
    {{2, 0, 0}, true, {1, 0, 1}, {{0, 0, 2}, {0, 0, 1}}},
    {{1, 0, 0}, true, {0, 1, 0}, {{0, 0, 0}, {0, 0, 2}}},
    {{1, 0, 0}, true, {1, 1, -1}, {{1, 2, 0}, {0, 0, 4}}},
    // Whole key tiles and nothing more, with one row of a second tile, and with one row alone.
    {{1, 0, 1}, true, {0, 1, -1}, {{0, 0, 1}, {0, 0, 1}}},
    {{0, 0, 1}, false, {0, 1, -1}, {{0, 0, 1}, {0, 0, 1}}},
};

constexpr size_t kOneColumn = 21; ///< from this number on the first extent of a tensor is the number, and others are 1
constexpr size_t kConstant = 100; ///< from this number on a tensor that ascends has the edge's size everywhere

/// For forms with tensors of integers alone. What is odd or even of a number says how their rules are made.
constexpr struct {
  Edge edge;
  size_t number;
} kTensorEdges[] = {
    // First and last keys of rows: one goes up with the rows and the other in steps, or values of one are drawn.
    {{{2, 0, 10}, false, {0, 1, 1}, {{0, 0, 3}, {0, 1, 8}}}, 0},
    {{{2, 0, 6}, false, {1, 3, 0}, {{0, 0, 3}, {0, 0, 1}}}, 1},
    {{{2, 0, 3}, false, {0, 0, -2}, {{0, 3, 14}, {1, 0, -1}}}, 2},
    {{{1, 0, 1}, false, {0, 2, -1}, {{0, 2, 18}, {0, 0, 0}}}, 3},
    {{{2, 0, 12}, false, {0, 0, -2}, {{0, 3, 8}, {0, 0, 1}}}, 5},
    {{{1, 0, 1}, false, {0, 3, -8}, {{0, 0, 7}, {0, 0, 0}}}, 4},
    // Blocks that end before a tile's last row, after three tiles of keys, and at each row.
    {{{2, 0, -5}, false, {0, 2, 14}, {{1, 0, -1}, {0, 0, 1}}}, 6},
    {{{1, 0, 1}, true, {0, 1, -2}, {{0, 3, 2}, {0, 0, 1}}}, 8},
    {{{2, 0, 0}, false, {0, 2, -2}, {{0, 0, 1}, {0, 0, 1}}}, 10},
    {{{2, 0, 0}, false, {0, 2, 6}, {{0, 0, 1}, {0, 0, 2}}}, 12},
    {{{2, 0, 0}, false, {0, 2, 6}, {{0, 0, 1}, {0, 0, 2}}}, 14},
    {{{1, 0, 1}, false, {0, 2, -1}, {{0, 0, 0}, {0, 1, 8}}}, kConstant},
    {{{1, 0, 1}, false, {0, 2, -2}, {{0, 0, 0}, {0, 1, 8}}}, kConstant},
    // Tiles of rows as long as two of keys: documents of both together.
    {{{1, 0, 0}, true, {0, 4, 1}, {{1, 1, 0}, {0, 0, 1}}}, 7},
    {{{1, 0, 1}, true, {0, 2, 0}, {{0, 0, 3}, {0, 0, 1}}}, 23},
    {{{2, 0, 0}, true, {0, 0, -2}, {{2, 0, -1}, {0, 0, 1}}}, 11},
    // The last key tile lacks a key: blocks of a map as long as such a tile, and as all keys.
    {{{1, 0, 0}, false, {-1, 2, -1}, {{0, 1, 0}, {0, 0, 1}}}, 0},
    {{{1, 0, 0}, false, {-1, 2, -1}, {{0, 3, 0}, {0, 0, 1}}}, 1},
    // One key.
    {{{1, 0, 1}, false, {-1, 0, 0}, {{0, 0, 0}, {0, 0, 1}}}, 2},
};

/// For forms without them. Keys of five and six tiles: CTAs that share them have some tiles each, the first keys and a
/// window among those of one, and steps before the last ones are not all.
constexpr Edge kLongEdges[] = {
    {{2, 0, 0}, true, {0, 4, 1}, {{1, 2, 0}, {0, 0, 2}}},
    {{1, 0, 1}, true, {1, 3, 2}, {{0, 3, -1}, {0, 0, 3}}},
    {{2, 0, -1}, true, {1, 4, 0}, {{0, 1, 6}, {0, 1, 6}}},
    {{1, 0, 0}, true, {0, 4, 2}, {{0, 2, 6}, {0, 0, 1}}},
    {{2, 0, 0}, true, {0, 3, 2}, {{0, 0, 1}, {0, 3, -2}}},
    {{2, 0, 1}, true, {0, 4, -1}, {{0, 0, 2}, {0, 3, -1}}},
    {{3, 0, -4}, true, {1, 3, -2}, {{0, 1, -2}, {0, 3, 16}}},
    {{3, 0, -1}, true, {1, 4, 2}, {{0, 1, 1}, {0, 1, 1}}},
    {{2, 0, 0}, true, {1, 4, 1}, {{0, 3, -6}, {0, 0, 1}}},
    {{2, 0, -5}, true, {1, 3, 2}, {{0, 2, 14}, {0, 0, 1}}},
    {{1, 0, 1}, true, {1, 4, 1}, {{0, 2, 15}, {0, 0, 3}}},
    // Tiles of rows as long as two of keys: a window of two such tiles, a little less or more.
    {{1, 0, 1}, true, {0, 2, -1}, {{1, 1, 2}, {0, 0, 1}}},
    {{1, 0, 1}, true, {0, 0, -1}, {{1, 1, 0}, {0, 0, 1}}},
    {{1, 0, 1}, true, {0, 0, -1}, {{2, 0, -9}, {0, 0, 1}}},
    {{1, 0, 1}, true, {0, 3, -1}, {{2, 0, -1}, {0, 0, 1}}},
    {{1, 0, 1}, true, {0, 4, 1}, {{2, 1, -2}, {0, 0, 1}}},
    {{1, 0, 1}, true, {0, 1, 2}, {{2, 1, 2}, {0, 0, 1}}},
    {{1, 0, 1}, true, {0, 2, -1}, {{1, 1, 0}, {0, 0, 1}}},
    {{2, 0, 0}, true, {0, 6, 2}, {{2, 1, -10}, {0, 0, 1}}},
    {{2, 0, 17}, true, {0, 3, -2}, {{2, 1, -9}, {0, 0, 1}}},
    {{2, 0, -20}, true, {0, 5, 1}, {{2, 1, -6}, {0, 0, 1}}},
};

class EdgeProblems {
public:
  EdgeProblems(const Case &base, const FormDefinition &form, int64_t rows, int64_t keys, int64_t group)
      : base(base), form(form), rows(std::max<int64_t>(1, rows / group)), keys(keys), group(group) {}

  Case at(const Edge &edge, size_t number) const {
    Case c = base;
    c.shape.batch = countOf(FAGEN_VAR_BATCH);
    c.shape.kvHeads = countOf(FAGEN_VAR_KV_HEADS);
    c.shape.heads = group > 1 ? group * c.shape.kvHeads : countOf(FAGEN_VAR_HEADS) * c.shape.kvHeads;
    c.shape.seqQ = std::max<int64_t>(1, count(edge.queries)); // tiles of one row are smaller than what some have less
    const int64_t before = edge.isOfLastRow ? (rows + keys - 1) / keys * keys - rows : 0;
    c.shape.seqKv = std::max<int64_t>(1, c.shape.seqQ + before + count(edge.place));
    size_t index = 0, extent = 0;
    for (const FormParam &param : form.params) {
      if (param.isTensor() || param.isReal() || param.bound)
        continue;
      if (!isExtent(form, param))
        c.numbers[param.name] = within(param, count(edge.sizes[index++ % 2]));
      else if (isExact(number))
        c.numbers[param.name] = within(param, int64_t(number < kOneColumn ? number % 3 : extent++ ? 1 : number));
    }
    size_t tensor = 0;
    for (const FormParam &param : form.params)
      if (param.isTensor() && !param.isReal())
        if (const std::string rule = ruleOf(param, edge, number, tensor++); !rule.empty())
          c.tensors[param.name] = rule;
    return c;
  }

  bool hasTensor() const {
    return std::any_of(form.params.begin(), form.params.end(),
                       [](const FormParam &param) { return param.isTensor() && !param.isReal(); });
  }

private:
  static constexpr int64_t kOfList = 3, kOfRows = 2;

  /// Of every second problem integers of batches and heads are at edges of tiles themselves: then all tiles that a tile
  /// of rows sees are seen whole, and keys are left. Extents of tensors are 0 to 2.
  static bool isExact(size_t number) { return number % 2 != 0; }

  /// Batches or heads: more than one where a tensor has an integer, or some, for each.
  int64_t countOf(int64_t variable) const {
    int64_t most = 1;
    for (const FormParam &param : form.params)
      for (size_t i = 0; i != param.extents.size() && !param.isReal(); ++i)
        if (isOneOf(param.extents[i], {variable}))
          most = std::max(most, i + 1 == param.extents.size() ? kOfList : kOfRows);
    return most;
  }

  int64_t count(const Size &size) const { return size.rowTiles * rows + size.keyTiles * keys + size.more; }

  static double within(const FormParam &param, int64_t value) {
    return std::clamp(double(value), param.low, param.high);
  }

  /// Nothing where values are drawn: the param's range is too small, its indices are neither batches, heads, queries
  /// nor keys, or the edge has no size for runs.
  std::string ruleOf(const FormParam &param, const Edge &edge, size_t number, size_t tensor) const {
    const int64_t size = std::max<int64_t>(1, count(edge.sizes[tensor % 2]));
    const std::vector<fagen_op> &index = param.extents.back();
    if (isCount(index)) {
      // For each batch or head about a key tile more, or all at edges of key tiles.
      const int64_t first = (isExact(number) ? edge.sizes[0].keyTiles * keys : count(edge.sizes[0])) - keys;
      const int64_t step = isExact(number) ? keys : keys - 1, last = first + kOfList * keys;
      const bool fits = within(param, first) == double(first) && within(param, last) == double(last);
      return fits && param.extents.size() == 1 ? fmt::format("ramp:{}:{}", first, step) : "";
    }
    const bool isTruth = param.element == FAGEN_ELEMENT_BIT || param.element == FAGEN_ELEMENT_U8;
    if (!isOneOf(index, {FAGEN_VAR_SEQ_Q, FAGEN_VAR_SEQ_KV}))
      return isTruth ? "spread:0:1" : "";
    const int64_t low = int64_t(within(param, -2)), high = int64_t(within(param, low + 3));
    if (param.isAscending && number >= kConstant)
      return fmt::format("all:{}", count(edge.sizes[tensor % 2]));
    if (param.isAscending)
      return count(edge.sizes[tensor % 2]) != 0 ? runsOf(param, edge, number + tensor, size, low) : "";
    const int64_t columns = std::max<int64_t>(1, count(edge.sizes[1]));
    const bool isMap =
        param.extents.size() > 1 && isOneOf(param.extents.rbegin()[1], {FAGEN_VAR_SEQ_Q, FAGEN_VAR_SEQ_KV});
    return fmt::format("spread:{}:{}:{}{}", low, isTruth ? 1 : high, isMap ? fmt::format("{}:", size) : "", columns);
  }

  std::string runsOf(const FormParam &param, const Edge &edge, size_t number, int64_t size, int64_t low) const {
    const bool saysPlace = number % 2 != 0;
    const int64_t step = saysPlace ? size : 1, first = saysPlace ? int64_t(within(param, 0)) : low;
    const int64_t most = first + step * (kMostKeys * keys / size + 1);
    if (within(param, most) != double(most))
      return "";
    const int64_t later = (number % 4 < 2 ? 1 : -1) * std::max<int64_t>(1, count(edge.sizes[1]));
    const int64_t least = first - step * (kOfList * std::abs(later) / size + 1);
    return fmt::format("runs:{}:{}:{}", first, size, step) +
           (within(param, least) == double(least) && param.extents.size() > 1 ? fmt::format(":{}", later) : "");
  }

  static constexpr int64_t kMostKeys = 16; ///< tiles of them, more than any problem here has

  const Case &base;
  const FormDefinition &form;
  const int64_t rows, keys, group; ///< rows of a head
};

} // namespace

std::vector<Case> edgeCases(const Case &base, const FormDefinition &form, int64_t rows, int64_t keys, int64_t group) {
  const EdgeProblems problems(base, form, rows, keys, group);
  std::vector<Case> cases;
  for (size_t i = 0; i != std::size(kEdges); ++i)
    if (!problems.hasTensor() || i % 2 == 0)
      cases.push_back(problems.at(kEdges[i], i / 2));
  if (problems.hasTensor())
    for (const auto &[edge, number] : kTensorEdges)
      cases.push_back(problems.at(edge, number));
  else
    for (const Edge &edge : kLongEdges)
      cases.push_back(problems.at(edge, 0));
  return cases;
}

} // namespace fagen::lab
