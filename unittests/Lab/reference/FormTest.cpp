// fagen: the interpreter of forms' programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/reference/form.h"

#include "lab/reference/criteria.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace fagen;

namespace {

constexpr lab::Shape kShape = {2, 4, 2, 5, 9, 0, 0};

/// At query 3 and key 1 of head 3 in batch 1.
double valueOf(const char *text) {
  lab::FormTexts texts;
  texts.lets = {{"d", "@k @p -"}};
  texts.score = text;
  return lab::FormProgram(texts).bind(kShape, {}).score({0.75, 1, 3, 3, 1});
}

TEST(FormProgram, OperatorsAreThoseOfTheLanguage) {
  const std::pair<const char *, double> expected[] = {
      {"@s neg", -0.75},
      {"@b @h @hk + +", 5},
      {"@q @k @p + +", 11},
      {"=d", -6},
      {"-7 2 floor_div", -4},
      {"-7 2 floor_mod", 1},
      {"-7 -2 floor_mod", -1},
      {"7 -2 floor_div", -4},
      {"-7 1 >>", -4},
      {"-7 1 <<", -14},
      {"-8 12 &", 8},
      {"5 3 ^ 8 |", 14},
      {"-1.75 i32", -1},
      {"1.5 100000000000 * i32", 2147483647},
      {"3 f32 2 /", 1.5},
      {"2 2 <= !", 0},
      {"1 0 && 1 ||", 1},
      {"0 3 4 ?:", 4},
      {"1 3 4 ?:", 3},
      {"-2 abs 1 max 5 min", 2},
      {"8 log2 2 exp2 +", 7},
      {"1 exp log 4 sqrt +", 3},
      {"@heads @kv_heads @seq_q @seq_kv @batch + + + +", 22},
  };
  for (const auto &[text, value] : expected)
    EXPECT_EQ(valueOf(text), value) << text;
  EXPECT_EQ(valueOf("-inf"), -INFINITY);
  EXPECT_EQ(valueOf("0 0 / i32"), 0);
}

TEST(FormProgram, TextsThatAreNoProgramsAreRefused) {
  auto messageOf = [](const char *text) -> std::string {
    lab::FormTexts texts;
    texts.score = text;
    try {
      return lab::FormProgram(texts).bind(kShape, {}).score({}) == 0 ? "zero" : "";
    } catch (const std::exception &error) {
      return error.what();
    }
  };
  EXPECT_EQ(messageOf("@s"), "zero");
  EXPECT_EQ(messageOf("@s +"), "'+' of a form's program '@s +' lacks operands");
  EXPECT_EQ(messageOf("@s @s"), "a form's program '@s @s' leaves 2 values, not one");
  EXPECT_EQ(messageOf("@s tahn"), "unknown word 'tahn' in a form's program");
  EXPECT_EQ(messageOf("@x"), "unknown place '@x' in a form's program");
  EXPECT_EQ(messageOf("$n"), "the form's param 'n' is not given");
  EXPECT_EQ(messageOf("0 n[1]"), "the form's param 'n' is not given");
}

TEST(FormProgram, ReadsOutsideAreTheNearestInside) {
  lab::FormTexts texts;
  texts.score = "@q 100 - t[1] @q 100 + t[1] - 0 none[1] +";
  lab::FormArguments arguments;
  arguments.tensors["t"] = {{3}, {10, 20, 40}};
  arguments.tensors["none"] = {{0}, {}};
  EXPECT_EQ(lab::FormProgram(texts).bind(kShape, arguments).score({}), -30);
}

/// What an instruction may be off is no less than what an H200 was.
TEST(FormErrors, TanhIsAsConformanceFound) {
  std::ifstream file(FAGEN_CONFORMANCE_EVIDENCE);
  const nlohmann::json evidence = nlohmann::json::parse(file)["conformance"];
  int found = 0;
  for (const auto &entry : evidence["functions"])
    if (entry["name"] == "tanh")
      for (const auto &result : entry["results"]) {
        EXPECT_LE(result["max_absolute"].get<double>(), lab::kTanhErrors[size_t(lab::Tanh::Approx)]);
        ++found;
      }
  EXPECT_GT(found, 0);
  EXPECT_EQ(lab::tanhOf("exp"), lab::Tanh::Exact);
  EXPECT_EQ(lab::tanhOf("approx"), lab::Tanh::Approx);
  EXPECT_EQ(lab::tanhOf(""), lab::Tanh::Approx);
}

/// Errors by hand: of a product, of a softcap, of a choice that rounding makes.
TEST(FormErrors, AreThoseByHand) {
  auto errorOf = [](const char *text, double score, double rounding) {
    lab::FormTexts texts;
    texts.score = text;
    return lab::FormProgram(texts).bind(kShape, {}).scoreWithError({score, 0, 0, 0, 0}, rounding);
  };
  const double r = 0x1p-23;
  lab::FormValue value = errorOf("@s 3.0 *", 2, 1e-6);
  EXPECT_EQ(value.value, 6);
  EXPECT_DOUBLE_EQ(value.rounding, 3e-6 + 6 * r);
  EXPECT_EQ(value.score, 3);
  value = errorOf("50.0 @s 50.0 / tanh *", 0, 0);
  EXPECT_EQ(value.tanh, 50);
  EXPECT_EQ(value.score, 1);
  value = errorOf("@s 1000.0 + 1000.0 -", 1, 0);
  EXPECT_DOUBLE_EQ(value.rounding, 1001 * r + r);
  value = errorOf("@s 1000000000.0 -", 31, 1e-6); // f32 has values 64 apart there
  EXPECT_EQ(value.value, -1e9);
  EXPECT_EQ(value.rounding, 0);
  EXPECT_EQ(value.score, 0);
  value = errorOf("@s 1000000000.0 -", 33, 1e-6);
  EXPECT_EQ(value.value, -1e9 + 64);
  EXPECT_EQ(value.rounding, 0);
  value = errorOf("@s 1000000000.0 -", 32.0000001, 1e-6); // either of two
  EXPECT_DOUBLE_EQ(value.rounding, 1e-6 + (1e9 - 32.0000001) * r);
  value = errorOf("@k f32 1000000000.0 -", 0, 0); // kernels add keys in another order
  EXPECT_GT(value.rounding, 1e9 * r);
  value = errorOf("@s 3.0e38 - 3.0e38 -", 1, 0);
  EXPECT_EQ(value.value, -INFINITY);
  EXPECT_EQ(value.rounding, 0);
  EXPECT_TRUE(std::isinf(errorOf("@s 1.0 > @s -inf ?:", 1, 1e-6).rounding));
  EXPECT_EQ(errorOf("@s 1.0 > @s -inf ?:", 1.1, 1e-6).rounding, 1e-6);
  EXPECT_DOUBLE_EQ(errorOf("@s 1.0 > 2.0 2.5 ?:", 1, 1e-6).rounding, 0.5);
  // Integers are exact; kernels add those of a thread's keys in f32.
  EXPECT_EQ(errorOf("@p 70000 * f32 @s +", 1, 0).rounding, r * (1 + 4 * 70000.0));
  EXPECT_EQ(errorOf("@k @p - 70000 * f32 @s +", 1, 0).rounding, r * (4 * 70000.0 - 1) + r * 256);
  EXPECT_EQ(errorOf("", 7, 1e-6).rounding, 0);
}

} // namespace
