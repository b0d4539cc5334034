// fagen: kernels that compute a form in f32 as they should pass the check; those that take liberties fail it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ModelKernel.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace fagen;
using namespace fagen::lab;

namespace {

const std::string kGemma2 = "form gemma2 { param cap: f32 in [1, 55]; param window: i32 in [1, 1073741824]; "
                            "score = cap * tanh(s / cap); mask = k <= p && p - k < window; }";
const std::string kAlibi = "form alibi { param slope: f32[heads]; score = s + slope[h] * f32(k - p); mask = k <= p; }";

float tanhOfExp(float x) { return 1 - 2 / (1 + std::exp(2 * x)); }

/// Softcaps whose tanh is this.
ModelKernel softcap(const Case &c, const std::function<float(float)> &tanh) {
  ModelKernel kernel = ModelKernel::of(c.arguments->form, c);
  const auto cap = float(c.arguments->arguments.numbers.at("cap"));
  kernel.score = [=](const FormElement &e) { return cap * tanh(float(e.score) * (1 / cap)); };
  return kernel;
}

TEST(WrongKernels, TanhMayBeAsFarOffAsItsKindSays) {
  for (const char *inputs : {"normal", "large"}) {
    const Case c = caseOfForm(kGemma2, std::string("1,2,1,40,70,32 arg.cap=50 arg.window=33 inputs=") + inputs);
    EXPECT_EQ(softcap(c, tanhOfExp).failures(c), "") << inputs;
    const auto instruction = [](float x) { return std::tanh(x) + 7e-6f; };
    EXPECT_EQ(softcap(c, instruction).failures(c, {Products::Scalar, Tanh::Approx}), "") << inputs;
    EXPECT_EQ(softcap(c, instruction).failures(c), "lse") << inputs;
    const auto inHalf = [](float x) { return floatOfF16(f16OfFloat(std::tanh(x))); };
    EXPECT_NE(softcap(c, inHalf).failures(c, {Products::Scalar, Tanh::Approx}), "") << inputs;
  }
}

/// The slope of keys alone is another LSE; of keys and queries apart it loses bits far from the beginning.
TEST(WrongKernels, PositionsAreSubtractedAsIntegers) {
  const auto alibi = [](const Case &c, const std::function<float(float, int64_t, int64_t)> &add) {
    ModelKernel kernel = ModelKernel::of(c.arguments->form, c);
    const FormTensor &slopes = c.arguments->arguments.tensors.at("slope");
    kernel.score = [&slopes, add, c](const FormElement &e) {
      const auto slope = float(slopes.values[size_t(e.head)]);
      return float(e.score) + add(slope, e.key, e.query + c.shape.seqKv - c.shape.seqQ);
    };
    return kernel;
  };
  const auto right = [](float slope, int64_t k, int64_t p) { return slope * float(k - p); };
  const auto ofKeys = [](float slope, int64_t k, int64_t) { return slope * float(k); };
  const auto apart = [](float slope, int64_t k, int64_t p) { return slope * float(k) - slope * float(p); };
  const Case brief = caseOfForm(kAlibi, "2,2,2,5,60,16"), far = caseOfForm(kAlibi, "1,2,2,2,131072,8", 3);
  EXPECT_EQ(alibi(brief, right).failures(brief), "");
  EXPECT_NE(alibi(brief, ofKeys).failures(brief), "");
  EXPECT_EQ(alibi(far, right).failures(far), "");
  EXPECT_NE(alibi(far, apart).failures(far), "");
}

/// A comparison of scores that rounding may decide: such rows are not judged, and a case of nothing else fails.
TEST(WrongKernels, RowsThatRoundingDecidesAreSetAside) {
  const std::string cut = "form cut { param t: f32; score = s > t ? s : -inf; }";
  const Case apart = caseOfForm(cut, "1,2,2,20,30,16 arg.t=0.25");
  EXPECT_EQ(ModelKernel::of(apart.arguments->form, apart).failures(apart), "");
  const Case same = caseOfForm(cut, "1,1,1,4,8,16 scale=0 arg.t=0");
  EXPECT_NE(ModelKernel::of(same.arguments->form, same).failures(same).find("undecided"), std::string::npos);
  ModelKernel leaves = ModelKernel::of(apart.arguments->form, apart);
  leaves.score = [](const FormElement &e) { return float(e.score); };
  EXPECT_NE(leaves.failures(apart), "");
}

/// Scores of any size: the softmax of f32 arithmetic is right, that of real numbers is not where all keys have one
/// large bias, and neither are terms of products that are rounded before they are subtracted.
TEST(WrongKernels, LargeScoresAreThoseOfF32) {
  // Some rows have low alone.
  const std::string masks = "form f { param low: f32; param high: f32; score = s + (k >= 19 && k <= p ? high : low); }";
  for (const char *values : {"arg.low=-1e9 arg.high=0", "arg.low=-1e9 arg.high=-1e9", "arg.low=-1e10 arg.high=1e10",
                             "arg.low=-3.4028234e38 arg.high=0", "arg.low=-2.3819763e38 arg.high=1e5",
                             "arg.low=3.4028234e38 arg.high=3.4028234e38"}) {
    const Case c = caseOfForm(masks, std::string("1,2,1,20,30,16 ") + values);
    ModelKernel kernel = ModelKernel::of(c.arguments->form, c);
    EXPECT_EQ(kernel.failures(c), "") << values;
    EXPECT_EQ(kernel.failures(c, {Products::TensorCores}), "") << values;
    kernel.multipliesFirst = true;
    EXPECT_NE(kernel.failures(c), "") << values;
  }
  const Case same = caseOfForm(masks, "1,2,1,20,30,16 arg.low=-1e9 arg.high=-1e9");
  ModelKernel kernel = ModelKernel::of(same.arguments->form, same);
  kernel.score = [](const FormElement &e) { return float(e.score); };
  EXPECT_NE(kernel.failures(same).find("error"), std::string::npos) << "O is the average of V";
}

/// A form with one thing wrong, by text; what it is told apart on.
struct Mutant {
  const char *form, *right, *wrong, *testCase;
};

constexpr const char *kT5 = "param bias: f32[heads, 9]; score = s + bias[h, clamp(k - p, -4, 4) + 4];";
constexpr const char *kLocal = "param window: i32 in [1, 64]; mask = k <= p && p - k < window;";
const Mutant kMutants[] = {
    {kLocal, "p - k < window", "p - k <= window", "1,1,1,20,20,16 arg.window=5"},
    {kLocal, "k <= p", "k < p", "1,1,1,20,20,16 arg.window=5"},
    {kLocal, "p - k < window", "p - k < window + 1", "1,1,1,20,20,16 arg.window=5"},
    {kLocal, "p - k < window", "p - k < window - 1", "1,1,1,20,20,16 arg.window=5"},
    {kLocal, "k <= p && p - k", "k <= q && q - k", "1,1,1,10,20,16 arg.window=5"},
    {kLocal, "&&", "||", "1,1,1,20,20,16 arg.window=5"},
    {kT5, "k - p", "k - q", "1,1,1,10,20,16"},
    {kT5, "-4, 4", "-3, 4", "1,1,1,10,20,16"},
    {"param n: i32 in [0, 64]; mask = k < n || k <= p;", "||", "&&", "1,1,1,20,20,16 arg.n=5"},
    {"param doc: i32[batch, seq_kv] ascending; mask = k <= p && doc[b, k] == doc[b, p];", "doc[b, p]", "doc[b, p - 1]",
     "2,1,1,30,30,16"},
    {"param c: i32 in [1, 64]; mask = floor_div(k, c) == floor_div(p, c);", "floor_div(p, c)", "floor_div(p + 1, c)",
     "1,1,1,20,20,16 arg.c=4"},
};

TEST(WrongKernels, EachMutantOfAFormFailsACase) {
  for (const Mutant &mutant : kMutants) {
    std::string text = mutant.form;
    const size_t at = text.find(mutant.right);
    ASSERT_NE(at, std::string::npos) << mutant.right;
    const Case c = caseOfForm("form f { " + text + " }", mutant.testCase);
    EXPECT_EQ(ModelKernel::of(c.arguments->form, c).failures(c), "") << text;
    text.replace(at, std::string(mutant.right).size(), mutant.wrong);
    const Case changed = caseOfForm("form f { " + text + " }", mutant.testCase);
    ASSERT_TRUE(changed.arguments) << text;
    EXPECT_NE(ModelKernel::of(changed.arguments->form, c).failures(c), "") << text;
  }
}

/// An index beyond an extent is that of the nearest element, not of another row.
TEST(WrongKernels, IndicesAreClamped) {
  const Case c = caseOfForm("form f { param bias: f32[heads, 9]; score = s + bias[h, clamp(k - p, -90, 90) + 4]; }",
                            "1,4,2,20,20,16");
  ModelKernel kernel = ModelKernel::of(c.arguments->form, c);
  EXPECT_EQ(kernel.failures(c), "");
  const std::vector<double> &bias = c.arguments->arguments.tensors.at("bias").values;
  kernel.score = [&bias](const FormElement &e) {
    const int64_t flat = e.head * 9 + e.key - e.query + 4;
    return float(e.score + bias[size_t(std::clamp<int64_t>(flat, 0, 35))]);
  };
  EXPECT_NE(kernel.failures(c), "");
}

TEST(WrongKernels, ASinkIsAddedOnceAndLseIsNatural) {
  const Case c = caseOfForm("form f { param sinks: f32[heads]; sink = sinks[h]; mask = k <= p; }", "1,4,2,20,15,16");
  const ModelKernel right = ModelKernel::of(c.arguments->form, c);
  EXPECT_EQ(right.failures(c), "");
  ModelKernel twice = right, none = right, log2 = right;
  twice.sinks = 2; // each of two splits
  none.sink = [](const FormElement &) { return std::nullopt; };
  log2.lseFactor = 1.44269504f;
  EXPECT_NE(twice.failures(c), "");
  EXPECT_NE(none.failures(c), "");
  EXPECT_EQ(log2.failures(c), "lse");
  // Where the sink takes nearly all, O is less than f16 has digits for; a wrong O is still seen.
  const Case little =
      caseOfForm("form f { param sinks: f32[heads]; sink = sinks[h]; }", "1,1,1,18,65,16 inputs=negative");
  EXPECT_EQ(ModelKernel::of(little.arguments->form, little).failures(little), "");
  ModelKernel without = ModelKernel::of(little.arguments->form, little);
  without.sink = none.sink;
  EXPECT_NE(without.failures(little), "");
}

/// Weights of keys below f32's normal numbers are 0; larger ones are not.
TEST(WrongKernels, WeightsMayUnderflowBesideASink) {
  const std::string form = "form f { param level: f32; sink = level; }";
  const auto joined = [&](const Case &c, float leastWeight) {
    ModelKernel kernel = ModelKernel::of(c.arguments->form, c);
    kernel.sinkJoinsLast = true;
    kernel.leastWeight = leastWeight;
    return kernel.failures(c);
  };
  for (const char *level : {"-20", "-28", "-32", "-36"}) { // scores lie around -120
    const Case c = caseOfForm(form, std::string("1,1,1,18,65,32 dtype=bf16 inputs=negative arg.level=") + level);
    EXPECT_EQ(joined(c, 0x1p-126f), "") << level;
  }
  const Case larger = caseOfForm(form, "1,1,1,18,65,32 dtype=bf16 inputs=negative arg.level=-40");
  EXPECT_EQ(joined(larger, 0x1p-126f), "");
  EXPECT_EQ(joined(larger, 0x1p-100f), "error cosine");
}

/// Keys with one score have one weight, which rounds alike for all: 33.1 to 33 in bf16, while the sum keeps 33.1. Of a
/// form with a score O may be off by as much as that, and no more.
TEST(WrongKernels, EqualScoresRoundAlike) {
  const Case c = caseOfForm("form f { score = -max(s, -3.5); }", "1,2,2,40,70,32 dtype=bf16 inputs=rising");
  ModelKernel kernel = ModelKernel::of(c.arguments->form, c);
  EXPECT_EQ(kernel.failures(c), "");
  kernel.shift = 0;
  EXPECT_EQ(kernel.failures(c), "");
  kernel.oFactor = 0.997f;
  EXPECT_EQ(kernel.failures(c), "cosine");
}

/// O of a row that sees one key is V times a share that rounding left, and rounds as V's neighbours do: both errors
/// have one sign.
TEST(WrongKernels, OneKeysWeightAndOutputRoundAlike) {
  const Case c = caseOfForm("form f { score = f32(k) + 1.39; mask = k < 1; }", "1,2,2,40,70,32 dtype=bf16");
  ModelKernel kernel = ModelKernel::of(c.arguments->form, c);
  kernel.shift = 0;
  EXPECT_EQ(kernel.failures(c), "");
  kernel.oFactor = 0.993f;
  EXPECT_EQ(kernel.failures(c), "cosine");
}

} // namespace
