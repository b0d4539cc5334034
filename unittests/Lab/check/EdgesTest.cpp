// fagen: edge cases tell bounds of key tiles from wrong ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/check/edges.h"
#include "lab/cases/form_inputs.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace fagen::lab;

namespace {

constexpr double kLargest = 1 << 30;

FormDefinition formOf(std::vector<FormParam> params) {
  FormDefinition form;
  form.name = form.text = "any";
  form.params = std::move(params);
  return form;
}
FormParam scalar(const char *name, double low = 0, double high = kLargest) {
  return {name, FAGEN_ELEMENT_I32, {}, false, low, high, {}};
}
std::vector<fagen_op> one(int64_t which) { return {{FAGEN_OP_VARIABLE, 0, which}}; }

int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }
int64_t ceilDiv(int64_t a, int64_t b) { return -floorDiv(-a, b); }

/// How far each bound of a tile of rows is off.
struct Wrong {
  int64_t first = 0, last = 0, wholeFrom = 0, wholeTo = 0;
};
struct Problem {
  int64_t rows, keys, seqQ, seqKv, left, right; ///< keys from p - left to p + right are seen
};

bool sees(const Problem &p, int64_t query, int64_t key) {
  const int64_t place = query + p.seqKv - p.seqQ;
  return key < p.seqKv && key >= place - p.left && key <= place + p.right;
}

/// Whether a kernel with such bounds leaves out a key tile that a row of some tile sees, or does not mask one that
/// some row sees in part.
bool isHarmful(const Problem &p, const Wrong &wrong) {
  for (int64_t begin = 0; begin < p.seqQ; begin += p.rows) {
    const int64_t place = begin + p.seqKv - p.seqQ, end = place + p.rows - 1;
    const int64_t from = floorDiv(std::max<int64_t>(0, place - p.left + wrong.first), p.keys);
    const int64_t to = ceilDiv(std::clamp<int64_t>(end + p.right + 1 + wrong.last, 0, p.seqKv), p.keys);
    const int64_t wholeFrom = ceilDiv(std::max<int64_t>(0, end - p.left + wrong.wholeFrom), p.keys);
    const int64_t wholeTo = floorDiv(std::clamp<int64_t>(place + p.right + 1 + wrong.wholeTo, 0, p.seqKv), p.keys);
    for (int64_t tile = 0; tile * p.keys < p.seqKv; ++tile) {
      bool some = false, all = true;
      for (int64_t query = begin; query < std::min(begin + p.rows, p.seqQ); ++query)
        for (int64_t key = tile * p.keys; key < (tile + 1) * p.keys; ++key)
          (sees(p, query, key) ? some : all) = sees(p, query, key);
      const bool isVisited = from <= tile && tile < to;
      if ((some && !isVisited) || (isVisited && wholeFrom <= tile && tile < wholeTo && !all))
        return true;
    }
  }
  return false;
}

/// Of a form with a bound at the left, and one with both.
bool isNoticed(int64_t rows, int64_t keys, const FormDefinition &form, const Wrong &wrong) {
  const std::vector<Case> cases = edgeCases(parseCase("1,1,1,1,1,64"), form, rows, keys, 1);
  return std::any_of(cases.begin(), cases.end(), [&](const Case &c) {
    const bool hasRight = c.numbers.contains("right");
    return isHarmful({rows, keys, c.shape.seqQ, c.shape.seqKv, int64_t(c.numbers.at("left")),
                      hasRight ? int64_t(c.numbers.at("right")) : 0},
                     wrong);
  });
}

TEST(Edges, BoundsThatAreOffByOneAreTold) {
  const FormDefinition window = formOf({scalar("left")}), local = formOf({scalar("left"), scalar("right")});
  for (auto [rows, keys] : {std::pair{16, 32}, {64, 64}, {64, 128}, {128, 64}, {128, 80}, {128, 128}, {192, 128}})
    for (const FormDefinition *form : {&window, &local}) {
      EXPECT_FALSE(isNoticed(rows, keys, *form, {})) << rows << " x " << keys;
      EXPECT_TRUE(isNoticed(rows, keys, *form, {.first = 1})) << rows << " x " << keys;
      EXPECT_TRUE(isNoticed(rows, keys, *form, {.last = -1})) << rows << " x " << keys;
      EXPECT_TRUE(isNoticed(rows, keys, *form, {.wholeFrom = -1})) << rows << " x " << keys;
      EXPECT_TRUE(isNoticed(rows, keys, *form, {.wholeTo = 1})) << rows << " x " << keys;
    }
}

TEST(Edges, NumbersAreInRangeAndBoundOnesStay) {
  FormDefinition form = formOf({scalar("small", -5, 9), scalar("bound", 0, 99), scalar("rows", 0, 99)});
  form.params[1].bound = 7;
  form.params.push_back({"map", FAGEN_ELEMENT_U8, {one(FAGEN_VAR_FORM_0 + 2)}, false, 0, 255, {}});
  for (const Case &c : edgeCases(parseCase("1,1,1,1,1,64"), form, 128, 128, 1)) {
    EXPECT_GE(c.numbers.at("small"), -5);
    EXPECT_LE(c.numbers.at("small"), 9);
    EXPECT_FALSE(c.numbers.contains("bound"));
    EXPECT_TRUE(!c.numbers.contains("rows") || c.numbers.at("rows") <= 2 || c.numbers.at("rows") == 23); // an extent
    EXPECT_EQ(c.tensors.at("map"), "spread:0:1"); // by neither batch, head, query nor key
  }
}

TEST(Edges, LengthsAreAtLeastOne) {
  for (auto [rows, keys] : {std::pair{1, 32}, {1, 96}, {2, 16}})
    for (const Case &c : edgeCases(parseCase("1,1,1,1,1,64"), formOf({scalar("left")}), rows, keys, 1)) {
      EXPECT_GE(c.shape.seqQ, 1) << formatCase(c);
      EXPECT_GE(c.shape.seqKv, 1) << formatCase(c);
    }
}

/// Tiles of several heads have fewer rows of each.
TEST(Edges, HeadsOfAGroupShareATile) {
  const FormDefinition window = formOf({scalar("left")});
  const std::vector<Case> cases = edgeCases(parseCase("1,1,1,1,1,64"), window, 128, 128, 2),
                          ofOne = edgeCases(parseCase("1,1,1,1,1,64"), window, 64, 128, 1);
  ASSERT_EQ(cases.size(), ofOne.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases[i].shape.heads, 2 * cases[i].shape.kvHeads);
    EXPECT_EQ(cases[i].shape.seqQ, ofOne[i].shape.seqQ);
  }
}

/// A tile that a form calls whole may have a key too many for its first row, or for the tensors.
TEST(Edges, WholeTilesOfTensorsLackAKey) {
  const FormDefinition form = formOf(
      {{"first", FAGEN_ELEMENT_I32, {one(FAGEN_VAR_BATCH), one(FAGEN_VAR_SEQ_KV)}, true, -kLargest, kLargest, {}}});
  for (auto [rows, keys] : {std::pair{16, 32}, {16, 64}, {64, 32}, {128, 128}}) {
    bool ofTheFirstRow = false, ofTheTensors = false;
    for (const Case &c : edgeCases(parseCase("1,1,1,1,1,64"), form, rows, keys, 1)) {
      const bool isOneDocument = c.tensors.contains("first") && c.tensors.at("first").starts_with("all:0");
      ofTheFirstRow |= isOneDocument && (c.shape.seqKv - c.shape.seqQ) % keys == keys - 2;
      ofTheTensors |= c.shape.seqKv % keys == keys - 1;
    }
    EXPECT_TRUE(ofTheFirstRow && ofTheTensors) << rows << " x " << keys;
  }
}

/// Each rule can be carried out, and gives values of several heads, batches and places.
TEST(Edges, TensorsHaveRules) {
  auto form = std::make_shared<FormDefinition>(formOf({
      {"prefix", FAGEN_ELEMENT_I32, {one(FAGEN_VAR_BATCH)}, false, -kLargest, kLargest, {}},
      {"first", FAGEN_ELEMENT_I32, {one(FAGEN_VAR_BATCH), one(FAGEN_VAR_SEQ_KV)}, true, -kLargest, kLargest, {}},
      {"ids", FAGEN_ELEMENT_I32, {one(FAGEN_VAR_BATCH), one(FAGEN_VAR_SEQ_KV)}, false, -kLargest, kLargest, {}},
      {"sees", FAGEN_ELEMENT_BIT, {one(FAGEN_VAR_SEQ_Q), one(FAGEN_VAR_SEQ_KV)}, false, 0, 1, {}},
  }));
  std::set<double> prefixes, ids;
  bool saysPlace = false, saysNumber = false, endsAtEdge = false, differs = false;
  int withoutRule = 0;
  for (const Case &c : edgeCases(parseCase("1,1,1,1,1,64"), *form, 64, 32, 1)) {
    const bool hasRule = c.tensors.contains("first"); // else its values are drawn
    ASSERT_EQ(c.tensors.size(), hasRule ? 4u : 3u) << formatCase(c);
    withoutRule += !hasRule;
    EXPECT_EQ(parseCase(formatCase(c)), c);
    const Case drawn = withForm(c, form, 1);
    const auto &tensors = drawn.arguments->arguments.tensors;
    EXPECT_EQ(c.shape.batch, 3);
    prefixes.insert(tensors.at("prefix").values.begin(), tensors.at("prefix").values.end());
    ids.insert(tensors.at("ids").values.begin(), tensors.at("ids").values.end());
    const std::vector<double> &first = tensors.at("first").values;
    differs |= first.front() != first[first.size() - size_t(c.shape.seqKv)];
    saysPlace |= first.back() > 32 && first.front() == 0;
    saysNumber |= first.front() < 0;
    // The first tile of rows sees whole tiles alone, and not all.
    const double prefix = tensors.at("prefix").values.back();
    const int64_t last = std::min<int64_t>(64, c.shape.seqQ) + c.shape.seqKv - c.shape.seqQ;
    endsAtEdge |= int64_t(prefix) % 32 == 0 && prefix >= double(last) && prefix < double(c.shape.seqKv);
  }
  EXPECT_TRUE(endsAtEdge);
  EXPECT_TRUE(differs); // by batch
  EXPECT_GT(withoutRule, 0);
  EXPECT_LT(*prefixes.begin(), -32);
  EXPECT_GT(prefixes.size(), 10u);
  EXPECT_LT(*ids.begin(), 0);
  EXPECT_TRUE(saysPlace);
  EXPECT_TRUE(saysNumber);
}

} // namespace
