// fagen: forms that others have, as the language writes them, against the same by hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FormOfText.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

using namespace fagen;
using lab::FormElement;

namespace {

constexpr lab::Shape kShape = {2, 4, 2, 5, 9, 0, 0};

/// Each tensor has other values at each place.
lab::FormTensor filled(std::vector<int64_t> extents, const std::function<double(int64_t)> &value) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  lab::FormTensor tensor{std::move(extents), {}};
  for (int64_t i = 0; i != count; ++i)
    tensor.values.push_back(value(i));
  return tensor;
}

double slopeOf(int64_t h) { return 0.5 / double(h + 1); }
double documentOf(int64_t b, int64_t k) { return double((k + b) / 3); }
double biasOf(int64_t i) { return double(i * 7 % 11) - 5; }
bool bitOf(int64_t i) { return i * 5 % 3 == 1; }

double kindOf(int64_t i) { return double(i * 2 % 3); }
/// Of a query's row and column on a canvas three wide and high: the middle of its neighbourhood.
int64_t middle(int64_t x) { return std::min<int64_t>(std::max<int64_t>(x, 1), 1); }

lab::FormArguments argumentsOfAll() {
  lab::FormArguments arguments;
  arguments.numbers = {{"cap", 3}, {"window", 3}, {"n", 2}, {"step", 2}, {"c", 4}, {"ranks", 2}, {"rank", 1}};
  arguments.tensors["slope"] = filled({4}, slopeOf);
  arguments.tensors["doc"] = filled({2, 9}, [](int64_t i) { return documentOf(i / 9, i % 9); });
  arguments.tensors["sees"] = filled({2, 5, 5}, bitOf);
  arguments.tensors["prefix"] = filled({2}, [](int64_t b) { return double(2 * b + 1); });
  arguments.tensors["byDistance"] = filled({4, 9}, biasOf);
  arguments.tensors["bias"] = filled({2, 4, 5, 9}, biasOf);
  arguments.tensors["ofBatch"] = filled({2}, biasOf);
  arguments.tensors["ofQuery"] = filled({5}, biasOf);
  arguments.tensors["docQ"] = filled({2, 5}, [](int64_t i) { return documentOf(i / 5, i % 5); });
  arguments.tensors["kind"] = filled({2, 9}, kindOf);
  arguments.tensors["seesAll"] = filled({2, 4, 5, 9}, bitOf);
  arguments.tensors["at"] = filled({2}, [](int64_t b) { return double(b + 4); });
  arguments.tensors["length"] = filled({2}, [](int64_t b) { return double(b + 2); });
  arguments.tensors["pos"] = filled({2}, [](int64_t b) { return double(5 * b + 6); });
  arguments.tensors["map"] = filled({2, 4, 2, 3}, bitOf);
  return arguments;
}

struct Expected {
  std::string text;
  std::function<double(const FormElement &)> score;
  std::function<bool(const FormElement &, int64_t p)> mask;
};

double keep(const FormElement &e) { return e.score; }
bool isCausal(const FormElement &e, int64_t p) { return e.key <= p; }
bool seesAll(const FormElement &, int64_t) { return true; }

const Expected kForms[] = {
    {"param cap: f32 in [1, 55]; param window: i32 in [1, 1073741824]; score = cap * tanh(s / cap); "
     "mask = k <= p && p - k < window;",
     [](const FormElement &e) { return 3 * std::tanh(e.score / 3); },
     [](const FormElement &e, int64_t p) { return e.key <= p && e.key > p - 3; }},
    {"param slope: f32[heads]; score = s + slope[h] * f32(k - p); mask = k <= p;",
     [](const FormElement &e) { return e.score - slopeOf(e.head) * double(e.query + 4 - e.key); }, isCausal},
    {"param doc: i32[batch, seq_kv] ascending; mask = k <= p && doc[b, k] == doc[b, p];", keep,
     [](const FormElement &e, int64_t p) {
       return e.key <= p && documentOf(e.batch, e.key) == documentOf(e.batch, p);
     }},
    {"param sees: bit[batch, seq_q, seq_q]; let d = k - (seq_kv - seq_q); mask = d < 0 || sees[b, q, d];", keep,
     [](const FormElement &e, int64_t) { return e.key < 4 || bitOf((e.batch * 5 + e.query) * 5 + (e.key - 4)); }},
    {"param prefix: i32[batch]; mask = k < prefix[b] || k <= p;", keep,
     [](const FormElement &e, int64_t p) { return e.key < 2 * e.batch + 1 || e.key <= p; }},
    {"param byDistance: f32[heads, 9]; score = s + byDistance[h, clamp(k - p, -4, 4) + 4];",
     [](const FormElement &e) {
       const int64_t distance = std::min<int64_t>(4, std::max<int64_t>(-4, e.key - e.query - 4));
       return e.score + biasOf(e.head * 9 + distance + 4);
     },
     seesAll},
    {"param slope: f32[heads]; score = s * slope[h];", [](const FormElement &e) { return e.score * slopeOf(e.head); },
     seesAll},
    {"param bias: f16[batch, heads, seq_q, seq_kv]; score = s + bias[b, h, q, k];",
     [](const FormElement &e) { return e.score + biasOf(((e.batch * 4 + e.head) * 5 + e.query) * 9 + e.key); },
     seesAll},
    {"param n: i32 in [0, 64]; param window: i32 in [1, 64]; mask = k <= p && (k < n || p - k < window);", keep,
     [](const FormElement &e, int64_t p) { return e.key <= p && (e.key < 2 || p - e.key <= 2); }},
    {"param step: i32 in [1, 64]; mask = k <= p && floor_mod(p - k, step) == 0;", keep,
     [](const FormElement &e, int64_t p) { return e.key <= p && ((p - e.key) & 1) == 0; }},
    {"param c: i32 in [1, 1024]; mask = k <= p && floor_div(k, c) == floor_div(p, c);", keep,
     [](const FormElement &e, int64_t p) { return e.key <= p && e.key / 4 == p / 4; }},
    {"param map: bit[batch, heads, 2, 3]; mask = map[b, h, floor_div(q, 4), floor_div(k, 4)];", keep,
     [](const FormElement &e, int64_t) { return bitOf(((e.batch * 4 + e.head) * 2 + e.query / 4) * 3 + e.key / 4); }},
    // Those of attention-gym and of FlashAttention-4's tests.
    {"score = s + f32(q - k);", [](const FormElement &e) { return e.score + double(e.query) - double(e.key); },
     seesAll},
    {"score = s * 2;", [](const FormElement &e) { return 2 * e.score; }, seesAll},
    {"param slope: f32[heads]; score = s - slope[h] * f32(abs(k - p));",
     [](const FormElement &e) { return e.score - slopeOf(e.head) * double(std::abs(e.key - e.query - 4)); }, seesAll},
    {"param ofBatch: f16[batch]; score = s + ofBatch[b];",
     [](const FormElement &e) { return e.score + biasOf(e.batch); }, seesAll},
    {"param slope: f32[heads]; param ofQuery: bf16[seq_q]; score = s + slope[h] + ofQuery[q];",
     [](const FormElement &e) { return e.score + slopeOf(e.head) + biasOf(e.query); }, seesAll},
    {"param cap: f32 in [1, 55]; param slope: f32[heads]; score = cap * tanh((s + slope[h] * f32(k - p)) / cap);",
     [](const FormElement &e) { return 3 * std::tanh((e.score - slopeOf(e.head) * double(e.query + 4 - e.key)) / 3); },
     seesAll},
    {"param byDistance: f32[heads, 9]; score = s + byDistance[h, k - 100] + byDistance[h + 50, 100];",
     [](const FormElement &e) { return e.score + biasOf(e.head * 9) + biasOf(3 * 9 + 8); }, seesAll},
    {"mask = floor_div(q, 3) == floor_div(k, 3);", keep,
     [](const FormElement &e, int64_t) { return e.query / 3 == e.key / 3; }},
    {"param c: i32 in [1, 64]; mask = floor_div(p, c) >= floor_div(k, c);", keep,
     [](const FormElement &e, int64_t p) { return p / 4 >= e.key / 4; }},
    {"mask = floor_mod(q, 4) >= floor_mod(k, 4);", keep,
     [](const FormElement &e, int64_t) { return e.query % 4 >= e.key % 4; }},
    {"mask = ((q ^ k) & 1) == 0;", keep, [](const FormElement &e, int64_t) { return (e.query + e.key) % 2 == 0; }},
    {"param window: i32 in [1, 64]; mask = abs(p - k) <= window;", keep,
     [](const FormElement &e, int64_t p) { return p - 3 <= e.key && e.key <= p + 3; }},
    {"param window: i32 in [1, 64]; param step: i32 in [1, 64]; "
     "mask = abs(p - k) <= window * step && floor_mod(p - k, step) == 0;",
     keep, [](const FormElement &e, int64_t p) { return std::abs(p - e.key) <= 6 && (p + e.key) % 2 == 0; }},
    {"param docQ: i32[batch, seq_q] ascending; param doc: i32[batch, seq_kv] ascending; mask = docQ[b, q] == doc[b, "
     "k];",
     keep, [](const FormElement &e, int64_t) { return documentOf(e.batch, e.query) == documentOf(e.batch, e.key); }},
    {"param kind: u8[batch, seq_kv]; mask = k <= p || kind[b, k] == 1 && kind[b, p] == 1;", keep,
     [](const FormElement &e, int64_t p) {
       return e.key <= p || (kindOf(e.batch * 9 + e.key) == 1 && kindOf(e.batch * 9 + p) == 1);
     }},
    {"param seesAll: bit[batch, heads, seq_q, seq_kv]; mask = seesAll[b, h, q, k];", keep,
     [](const FormElement &e, int64_t) { return bitOf(((e.batch * 4 + e.head) * 5 + e.query) * 9 + e.key); }},
    {"param at: i32[batch] in [0, 4096]; param length: i32[batch] in [0, 4096]; let first = at[b]; "
     "let last = first + length[b]; mask = k <= p || first <= p && p < last && first <= k && k < last;",
     keep,
     [](const FormElement &e, int64_t p) {
       const int64_t first = e.batch + 4, last = first + e.batch + 2;
       return e.key <= p || (p >= first && p < last && e.key >= first && e.key < last);
     }},
    {"let x = clamp(floor_div(p, 3), 1, 1); let y = clamp(floor_mod(p, 3), 1, 1); "
     "mask = abs(x - floor_div(k, 3)) <= 1 && abs(y - floor_mod(k, 3)) <= 1;",
     keep,
     [](const FormElement &e, int64_t p) {
       return std::abs(middle(p / 3) - e.key / 3) <= 1 && std::abs(middle(p % 3) - e.key % 3) <= 1;
     }},
    {"param ranks: i32 in [1, 64]; param rank: i32 in [0, 63]; param pos: i32[batch] in [0, 1073741824]; "
     "mask = k <= floor_div(pos[b] - rank, ranks);",
     keep, [](const FormElement &e, int64_t) { return e.key * 2 + 1 <= 5 * e.batch + 6; }},
};

void forEachElement(const std::function<void(const FormElement &)> &visit) {
  for (int64_t b = 0; b != kShape.batch; ++b)
    for (int64_t h = 0; h != kShape.heads; ++h)
      for (int64_t q = 0; q != kShape.seqQ; ++q)
        for (int64_t k = 0; k != kShape.seqKv; ++k)
          visit({double(k * 3 % 7) - 2.5, b, h, q, k});
}

TEST(Form, FormsThatOthersHaveAreThoseByHand) {
  const lab::FormArguments arguments = argumentsOfAll();
  for (const Expected &expected : kForms) {
    std::string report;
    const std::optional<form::Form> form = formOfText("form f { " + expected.text + " }", report);
    ASSERT_TRUE(form.has_value()) << report;
    EXPECT_EQ(report, "") << expected.text;
    lab::BoundForm bound = lab::FormProgram(textsOf(*form)).bind(kShape, arguments);
    forEachElement([&](const FormElement &e) {
      const int64_t p = e.query + 4;
      EXPECT_EQ(bound.mask(e), expected.mask(e, p)) << expected.text << " at " << e.query << ", " << e.key;
      EXPECT_NEAR(bound.score(e), expected.score(e), 1e-15) << expected.text;
      EXPECT_FALSE(bound.sink(e).has_value());
    });
  }
}

TEST(Form, SinksAreReadByHead) {
  std::string report;
  const auto form = formOfText("form gpt_oss { param window: i32 in [1, 64]; param slope: f32[heads]; "
                               "mask = k <= p && p - k < window; sink = slope[h]; }",
                               report);
  ASSERT_TRUE(form.has_value()) << report;
  const lab::FormArguments arguments = argumentsOfAll();
  lab::BoundForm bound = lab::FormProgram(textsOf(*form)).bind(kShape, arguments);
  for (int64_t h = 0; h != 4; ++h)
    EXPECT_EQ(bound.sink({0, 1, h, 2, 0}), slopeOf(h));
}

} // namespace
