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

lab::FormArguments argumentsOfAll() {
  lab::FormArguments arguments;
  arguments.numbers = {{"cap", 3}, {"window", 3}, {"n", 2}, {"step", 2}, {"c", 4}};
  arguments.tensors["slope"] = filled({4}, slopeOf);
  arguments.tensors["doc"] = filled({2, 9}, [](int64_t i) { return documentOf(i / 9, i % 9); });
  arguments.tensors["sees"] = filled({2, 5, 5}, bitOf);
  arguments.tensors["prefix"] = filled({2}, [](int64_t b) { return double(2 * b + 1); });
  arguments.tensors["byDistance"] = filled({4, 9}, biasOf);
  arguments.tensors["bias"] = filled({2, 4, 5, 9}, biasOf);
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
    const lab::FormProgram program(textsOf(*form));
    forEachElement([&](const FormElement &e) {
      const int64_t p = e.query + 4;
      EXPECT_EQ(program.mask(kShape, arguments, e), expected.mask(e, p))
          << expected.text << " at " << e.query << ", " << e.key;
      EXPECT_NEAR(program.score(kShape, arguments, e), expected.score(e), 1e-15) << expected.text;
      EXPECT_FALSE(program.sink(kShape, arguments, e).has_value());
    });
  }
}

TEST(Form, SinksAreReadByHead) {
  std::string report;
  const auto form = formOfText("form f { param slope: f32[heads]; sink = slope[h]; }", report);
  ASSERT_TRUE(form.has_value()) << report;
  const lab::FormProgram program(textsOf(*form));
  for (int64_t h = 0; h != 4; ++h)
    EXPECT_EQ(program.sink(kShape, argumentsOfAll(), {0, 1, h, 2, 0}), slopeOf(h));
}

} // namespace
