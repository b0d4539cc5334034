// fagen: FlashAttention-3's shapes, lengths around a tile, hard inputs, and a tiny mix of all for the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "suites.h"

#include <algorithm>
#include <fmt/format.h>

namespace fagen::lab {

struct Lengths {
  int64_t seqQ, seqKv;
};
struct Heads {
  int64_t heads, kvHeads;
};

constexpr int64_t kLongestOfForm = 1100;

/// Cases of one group, each shape filled up with the group's head dimensions.
class CaseList {
public:
  explicit CaseList(const ProblemGroup &group) : group(group) {}

  Case &add(int64_t batch, Heads heads, Lengths lengths) {
    Case c;
    c.shape = {batch, heads.heads, heads.kvHeads, lengths.seqQ, lengths.seqKv, group.headDimQK, group.headDimV};
    c.dtype = group.dtype;
    c.kv = group.kv;
    c.halfAccum = group.halfAccum;
    c.mask = group.mask;
    c.form = group.form;
    c.lse = group.lse;
    return cases.emplace_back(c);
  }
  std::vector<Case> take() {
    if (!group.form.empty())
      std::erase_if(cases, [](const Case &c) { return std::max(c.shape.seqQ, c.shape.seqKv) > kLongestOfForm; });
    for (size_t i = 0; i < cases.size() && !group.form.empty(); ++i) {
      cases[i].shape.batch = std::min<int64_t>(cases[i].shape.batch, 2);
      cases[i].scalars = i % 3 == 1 ? Scalars::Device : Scalars::Host;
    }
    return std::move(cases);
  }
  const ProblemGroup &group;

private:
  std::vector<Case> cases;
};

/// The (seq_q, seq_kv) pairs, heads and batches of flash-attention's hopper/test_flash_attn.py.
static void addFa3(CaseList &list) {
  static constexpr Lengths kPairs[] = {{1, 1},       {64, 128},    {128, 192},   {256, 256},   {239, 1},
                                       {799, 3},     {113, 203},   {113, 128},   {128, 217},   {113, 211},
                                       {108, 256},   {256, 512},   {384, 256},   {640, 128},   {512, 256},
                                       {1024, 1024}, {1023, 1024}, {1024, 1023}, {4096, 4096}, {4224, 4224}};
  for (Heads heads : {Heads{6, 6}, Heads{6, 2}, Heads{6, 1}})
    for (Lengths pair : kPairs)
      list.add(pair.seqKv <= 2048 ? 9 : 2, heads, pair);
}

/// Lengths one below, at and one above a tile and two tiles.
static void addRagged(CaseList &list) {
  for (auto [rows, keys] : list.group.tiles) {
    for (int64_t q : {rows - 1, rows, rows + 1})
      for (int64_t kv : {keys - 1, keys, keys + 1})
        list.add(2, {4, 2}, {q, kv});
    list.add(2, {4, 2}, {2 * rows + 1, 2 * keys - 1});
    list.add(2, {4, 2}, {2 * rows - 1, 2 * keys + 1});
    list.add(2, {4, 2}, {rows + 1, 3 * keys + 1});
  }
}

static void addHardValues(CaseList &list) {
  for (Inputs inputs : {Inputs::Large, Inputs::Negative, Inputs::Constant})
    for (int64_t kv : {1, 63, 64, 65, 193, 320})
      list.add(2, {4, 2}, {130, kv}).inputs = inputs;
  list.add(2, {4, 2}, {200, 70}); // causal: 130 rows of each head see no key
  list.add(1, {2, 1}, {300, 2});
  list.add(2, {4, 2}, {129, 257}).scale = 0;
  list.add(2, {4, 2}, {129, 257}).scale = 0.5;
  for (Lengths zero : {Lengths{0, 64}, Lengths{130, 0}, Lengths{0, 0}, Lengths{1, 0}})
    list.add(2, {4, 2}, zero);
  list.add(0, {4, 2}, {64, 64});
  list.add(2, {4, 2}, {129, 257}).lse = false;
  list.add(2, {4, 2}, {130, 0}).lse = false;
}

static void addHardLayouts(CaseList &list) {
  for (Layout layout : {Layout::Bshd, Layout::Padded, Layout::Odd, Layout::Offset})
    for (Lengths lengths : {Lengths{130, 193}, Lengths{1, 65}, Lengths{257, 64}})
      list.add(2, {4, 2}, lengths).layout = layout;
  list.add(1, {1, 1}, {130, 193}).layout = Layout::Junk;
  list.add(1, {4, 1}, {1, 1}).layout = Layout::Junk;
  list.add(1, {1, 1}, {1, 65}).layout = Layout::Junk;
  list.add(2, {1, 1}, {65, 1}).layout = Layout::Junk;
  list.add(1, {1, 1}, {33, 0}).layout = Layout::Junk;
  list.add(2, {4, 2}, {130, 193}).layout = Layout::Shared;
  list.add(2, {4, 2}, {130, 193}).layout = Layout::OneRow;
  list.add(2, {2, 1}, {130, 193}).layout = Layout::Far;
}

static void addSmoke(CaseList &list) {
  list.add(1, {2, 2}, {17, 33});
  list.add(1, {4, 2}, {19, 70});
  list.add(2, {2, 1}, {5, 65});
  list.add(1, {1, 1}, {1, 1});
  list.add(1, {2, 1}, {40, 17}); // causal: the first 23 rows see no key
  list.add(1, {2, 1}, {0, 16});
  list.add(1, {2, 1}, {9, 0});
  list.add(1, {1, 1}, {18, 65}).inputs = Inputs::Large;
  list.add(1, {1, 1}, {18, 65}).inputs = Inputs::Negative;
  list.add(1, {2, 1}, {17, 20}).scale = 0;
  list.add(2, {2, 1}, {17, 20}).layout = Layout::Bshd;
  list.add(1, {2, 2}, {9, 21}).layout = Layout::Odd;
  list.add(1, {1, 1}, {9, 21}).layout = Layout::Junk;
  list.add(2, {4, 2}, {9, 21}).layout = Layout::Shared;
  list.add(1, {2, 1}, {9, 21}).lse = false;
  for (auto [rows, keys] : list.group.tiles) {
    list.add(1, {1, 1}, {rows - 1, keys - 1});
    list.add(1, {1, 1}, {rows, keys});
    list.add(1, {1, 1}, {rows + 1, 2 * keys + 1});
    list.add(1, {1, 1}, {rows + 2, 3 * keys});
  }
}

std::vector<std::string> suiteNames() { return {"smoke", "full", "fa3", "ragged", "hard", "steady"}; }

void requireSuite(const std::string &name) {
  std::vector<std::string> names = suiteNames();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UserError(fmt::format("unknown suite '{}'; known: {}", name, fmt::join(names, ", ")));
}

bool hasSteadyCases(const std::string &suite) { return suite == "smoke" || suite == "full" || suite == "steady"; }

std::vector<Case> suiteCases(const std::string &suite, const ProblemGroup &group) {
  requireSuite(suite);
  CaseList list(group);
  bool full = suite == "full";
  if (suite == "smoke")
    addSmoke(list);
  if (full || suite == "fa3")
    addFa3(list);
  if (full || suite == "ragged")
    addRagged(list);
  if (full || suite == "hard") {
    addHardValues(list);
    addHardLayouts(list);
  }
  std::vector<Case> cases = list.take();
  // Tiles of different variants can give the same lengths.
  std::vector<Case> unique;
  for (const Case &c : cases)
    if (std::find(unique.begin(), unique.end(), c) == unique.end())
      unique.push_back(c);
  return unique;
}

} // namespace fagen::lab
