// fagen: calls of programs: names, types, sizes from extents, strides, and what is wrong with them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestRecipe.h"

#include <cstring>
#include <functional>
#include <gtest/gtest.h>

using namespace fagen::test;

namespace {

struct Recipes : testing::Test {
  TestRecipe recipe;
  TestTable table{"k"};
  TestDevice device{89};
  TestCall made;
  fagen_choice choice = fagen_choice_init();

  fagen_status query(uint32_t sm = 89) {
    const TestDevice other(sm);
    const fagen_table *tables[] = {table.get()};
    return fagen_query_program(tables, 1, &made.call, sm == 89 ? device : other, &choice);
  }
};

TEST_F(Recipes, SizesFollowFromExtents) {
  table.add(makeRow("attention")).add(recipe.row());
  ASSERT_EQ(fagen_table_check(table.get()), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(query(), FAGEN_OK) << fagen_last_error();
  const fagen_named_tensor &c = made.tensors[3];
  EXPECT_EQ(c.dtype, FAGEN_DTYPE_F16);
  EXPECT_EQ(c.rank, 2u);
  EXPECT_EQ(c.extent[0], 300);
  EXPECT_EQ(c.extent[1], 40);
  EXPECT_EQ(c.stride[0], 40);
  EXPECT_EQ(c.stride[1], 1);
  EXPECT_STREQ(choice.row->variant, "gemm");
  EXPECT_EQ(choice.workspace_bytes, 256u + 3840); // a counter, 900 numbers in whole 256 bytes
  EXPECT_EQ(fagen_choice_zero_bytes(&choice), 256u);
  fagen_choice_info info = fagen_choice_info_init();
  ASSERT_EQ(fagen_choice_get_info(&choice, &info), FAGEN_OK);
  EXPECT_EQ(info.grid, 3u * 40);
  EXPECT_STREQ(info.symbol, "multiply");
}

TEST_F(Recipes, AttentionDoesNotSeePrograms) {
  table.add(recipe.row());
  ASSERT_EQ(fagen_table_check(table.get()), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(pick({table.get()}, makeProblem(), device), "UNSUPPORTED");
  EXPECT_STREQ(fagen_last_error(), "no row for forward f16 head_dim 64, mask none;");
  fagen_problem named = makeProblem();
  named.variant = "gemm";
  EXPECT_EQ(pick({table.get()}, named, device), "INVALID");
}

TEST_F(Recipes, TheNearestTargetIsTaken) {
  fagen_row older = recipe.row();
  older.sm = 80, older.target = "sm_80";
  fagen_row exact = recipe.row();
  exact.sm = exact.first_sm = exact.last_sm = 90, exact.exact = 1, exact.target = "sm_90a";
  table.add(older).add(recipe.row()).add(exact);
  ASSERT_EQ(fagen_table_check(table.get()), FAGEN_OK) << fagen_last_error();
  const std::pair<uint32_t, const char *> expected[] = {{86, "sm_80"}, {89, "sm_89"}, {90, "sm_90a"}};
  for (auto [sm, target] : expected) {
    const TestDevice other(sm);
    const fagen_table *tables[] = {table.get()};
    made.tensors[3].rank = 0;
    ASSERT_EQ(fagen_query_program(tables, 1, &made.call, other, &choice), FAGEN_OK) << fagen_last_error();
    EXPECT_STREQ(choice.row->target, target);
  }
  EXPECT_EQ(query(75), FAGEN_UNSUPPORTED);
  EXPECT_STREQ(fagen_last_error(),
               "program gemm has no code for compute capability 7.5; it is for sm_80, sm_89, sm_90a");
}

TEST_F(Recipes, EveryMistakeIsSaid) {
  table.add(recipe.row());
  static fagen_named_number other = {"M", FAGEN_ARG_I32, 0, 10, 0};
  const struct {
    const char *message;
    std::function<void(TestCall &)> change;
    fagen_status status = FAGEN_INVALID;
  } mistakes[] = {
      {"no program is named 'gem'; did you mean 'gemm'? there is gemm", [](auto &c) { c.call.program = "gem"; }},
      {"no program is named 'softmax'; there is gemm", [](auto &c) { c.call.program = "softmax"; }},
      {"fagen_call.program is NULL", [](auto &c) { c.call.program = nullptr; }},
      {"gemm has no tensor 'bia'; did you mean 'bias'? there are a, b, bias, c",
       [](auto &c) { c.tensors[2].name = "bia"; }},
      {"gemm has no tensor 'parts'; there are a, b, bias, c", [](auto &c) { c.tensors[2].name = "parts"; }},
      {"gemm: tensor 'bias' is missing; it is f32[M, N]",
       [](auto &c) { c.tensors[2] = c.tensors[3], c.call.tensor_count = 3; }},
      {"gemm: tensor 'a' is given twice", [](auto &c) { c.tensors[1].name = "a"; }},
      {"gemm: tensors[0].name is NULL", [](auto &c) { c.tensors[0].name = nullptr; }},
      {"gemm: tensor 'a' has elements of bf16 (dtype 2); it is f16[M, K]",
       [](auto &c) { c.tensors[0].dtype = FAGEN_DTYPE_BF16; }},
      {"gemm: tensor 'a' has 3 dimensions; it is f16[M, K]", [](auto &c) { c.tensors[0].rank = 3; }},
      {"gemm: 'K' is 64 by extent 1 of tensor 'a', and 72 by extent 1 of tensor 'b'",
       [](auto &c) { c.tensors[1].extent[1] = 72; }},
      {"gemm: 'M' is given as 10, and is 300 by extent 0 of tensor 'a'", [](auto &c) { c.call.numbers = &other; }},
      {"gemm: extent 0 of tensor 'a' is -1; it is 0 to 1000000000", [](auto &c) { c.tensors[0].extent[0] = -1; }},
      {"gemm: number 'scale' is missing: it follows from no tensor's extent; give it by name",
       [](auto &c) { c.call.number_count = 0; }},
      {"gemm: kind of number 'scale' is 1; it is FAGEN_ARG_F32 (2)", [](auto &c) { c.number.kind = FAGEN_ARG_I32; }},
      {"gemm: number 'scale' is inf; it must be finite", [](auto &c) { c.number.f32 = INFINITY; }},
      {"gemm has no number 'scal'; did you mean 'scale'? there are M, N, K, scale",
       [](auto &c) { c.number.name = "scal"; }},
      {"gemm: stride 0 of tensor 'a' is 72; the program takes it dense: 64, copy it to be so",
       [](auto &c) { c.tensors[0].stride[0] = 72, c.tensors[0].stride[1] = 1; }},
      {"gemm: stride 1 of tensor 'bias' is 2; its last dimension is dense: 1, copy it to be so",
       [](auto &c) { c.tensors[2].stride[1] = 2; }},
      {"gemm: stride 0 of tensor 'bias' is 45 elements, 180 bytes; it takes multiples of 16",
       [](auto &c) { c.tensors[2].stride[0] = 45; }, FAGEN_MISALIGNED},
      {"gemm: stride 0 of tensor 'bias' is -4; it must not be negative", [](auto &c) { c.tensors[2].stride[0] = -4; }},
      {"gemm: stride 0 of tensor 'c', which is written, is 38: elements would overlap; at least 40 keeps them apart",
       [](auto &c) { c.tensors[3] = {"c", nullptr, FAGEN_DTYPE_F16, 2, {300, 40}, {38, 1}}; }},
      {"gemm cannot have a tensor map of 'bias': a stride is 2^40 bytes or more",
       [](auto &c) { c.tensors[2].stride[0] = int64_t(1) << 38; }, FAGEN_UNSUPPORTED},
      {"gemm: fagen_call.flags is 1; of a program it takes FAGEN_FLAG_PDL and FAGEN_FLAG_EXPLICIT",
       [](auto &c) { c.call.flags = FAGEN_FLAG_LSE; }},
      {"gemm: launch multiply would have 40000000000 CTAs; 0 to 1000000000 are possible",
       [](auto &c) {
         c.tensors[1].extent[0] = 1000000000, c.tensors[0].extent[0] = c.tensors[2].extent[0] = 5120;
         c.tensors[2].extent[1] = 1000000000, c.tensors[2].stride[0] = 1000000000;
       },
       FAGEN_UNSUPPORTED},
  };
  for (const auto &mistake : mistakes) {
    made = TestCall();
    made.call.tensors = made.tensors, made.call.numbers = &made.number;
    mistake.change(made);
    EXPECT_EQ(query(), mistake.status) << mistake.message;
    EXPECT_STREQ(fagen_last_error(), mistake.message);
  }
}

TEST_F(Recipes, BrokenRecipesAreRefused) {
  const struct {
    const char *message;
    std::function<void(TestRecipe &)> change;
  } mistakes[] = {
      {"a tensor of its recipe has no name, text or known element", [](auto &r) { r.tensors[0].element = 1; }},
      {"a tensor of its recipe has not 1 to 5 dimensions, or its alignment is no power of two",
       [](auto &r) { r.tensors[1].rank = 6; }},
      {"its recipe asks for a value of attention's", [](auto &r) { r.m.value = FAGEN_VAR_HEADS; }},
      {"has an unknown variable", [](auto &r) { r.m.value = FAGEN_VAR_NUMBER_0 + 4; }},
      {"a field of its recipe is not aligned, or not within the argument", [](auto &r) { r.fields[0].offset = 32; }},
      {"a field of its recipe is not aligned, or not within the argument", [](auto &r) { r.fields[7].offset = 320; }},
      {"a field of its recipe is of no known kind", [](auto &r) { r.fields[0].kind = 9; }},
      {"a field of its recipe is of no real number", [](auto &r) { r.fields[7].index = 0; }},
      {"a field of its recipe is of no tensor, or of none of its dimensions",
       [](auto &r) { r.fields[5].dimension = 2; }},
      {"a side of a map's box is not 1 to 256 elements", [](auto &r) { r.maps[0].dimensions[1].box = 257; }},
      {"rows of a map's box are no multiples of 16 bytes or longer than its swizzle, or its tensor is not aligned",
       [](auto &r) { r.maps[0].dimensions[0].box = 72; }},
      {"a number of its recipe has an empty range", [](auto &r) { r.numbers[0].low = 2e9; }},
      {"its recipe, or an entry of that, is smaller than this library's", [](auto &r) { r.recipe.map_size = 8; }},
  };
  for (const auto &mistake : mistakes) {
    TestRecipe broken;
    mistake.change(broken);
    broken.ofM.ops = &broken.m;
    TestTable of("k");
    EXPECT_EQ(fagen_table_check(of.add(broken.row()).get()), FAGEN_INVALID) << mistake.message;
    EXPECT_STREQ(fagen_last_error(), (std::string("table k, row 0 (gemm): ") + mistake.message).c_str());
  }
  fagen_row without = recipe.row();
  without.recipe = nullptr;
  EXPECT_EQ(fagen_table_check(table.add(without).get()), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "table k, row 0 (gemm): is a program's, and has no recipe");
}

} // namespace
