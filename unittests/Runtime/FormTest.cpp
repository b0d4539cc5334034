// fagen: problems with a form: which rows they reach, what is wrong with their args, what kernels get of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestForms.h"

#include "arguments.h"
#include "forms/forms.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>

using namespace fagen;
using namespace fagen::test;

namespace {

/// gemma2, gemma2 of window 128, plain and causal rows; and a table of forms with tensors.
struct FormTest : testing::Test {
  TestTable table{"k", {"main", "small"}}, tensors{"t"};
  TestDevice device{89};

  FormTest() {
    table.forms({makeForm("gemma2", "gemma2", kCapWindow), makeForm("gemma2", "gemma2(window = 128)", kCapBound)});
    table.add(makeRow("plain")).add(formRow("any", 0)).add(formRow("w128", 1));
    tensors.forms({makeForm("doc", "doc", kTensors, 2)}).add(formRow("doc", 0));
  }
  std::string pickOf(const fagen_problem &problem) { return pick({table.get(), tensors.get()}, problem, device); }
};

TEST_F(FormTest, TheTableIsRight) {
  EXPECT_EQ(fagen_table_check(table.get()), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(fagen_table_check(tensors.get()), FAGEN_OK) << fagen_last_error();
}

TEST_F(FormTest, RowsOfTheFormAreReached) {
  const std::vector<fagen_arg> args = {real("cap", 50), number("window", 64)};
  EXPECT_EQ(pickOf(formProblem("gemma2", args)), "any");
  EXPECT_EQ(pickOf(makeProblem()), "plain");
}

TEST_F(FormTest, BoundValuesComeFirstWhereTheyAreTheCallers) {
  std::vector<fagen_arg> args = {number("window", 128), real("cap", 50)};
  EXPECT_EQ(pickOf(formProblem("gemma2", args)), "w128");
  args[0].i32 = 129;
  EXPECT_EQ(pickOf(formProblem("gemma2", args)), "any");
  args[0].i32 = 128;
  static const int32_t onDevice = 128;
  args[0].data = &onDevice; // read at the launch: no bound value is known to equal it
  EXPECT_EQ(pickOf(formProblem("gemma2", args)), "any");
}

TEST_F(FormTest, BoundRealsAreComparedAsF32) {
  TestTable bound("b");
  std::vector<fagen_form_param> params = kCapWindow;
  params[0].offset = FAGEN_PARAM_BOUND;
  params[0].bound = 1.1;
  bound.forms({makeForm("gemma2", "gemma2(cap = 1.1)", params)}).add(formRow("bound", 0));
  std::vector<fagen_arg> args = {real("cap", double(1.1f)), number("window", 1)};
  EXPECT_EQ(pick({bound.get()}, formProblem("gemma2", args), device), "bound");
  args[0].f32 = 1.2;
  EXPECT_EQ(pick({bound.get()}, formProblem("gemma2", args), device), "UNSUPPORTED");
  EXPECT_STREQ(fagen_last_error(),
               "no row for forward f16 head_dim 64, form gemma2(cap = 1.2, window = 1); nearest: forward f16 head_dim "
               "64, form gemma2(cap = 1.1) (bound)");
}

TEST_F(FormTest, LargeIntegersAreComparedExactly) {
  TestTable bound("b");
  std::vector<fagen_form_param> params = kCapBound;
  params[1].high = params[1].bound = 16777217; // no f32 is
  bound.forms({makeForm("gemma2", "gemma2(window = 16777217)", params)}).add(formRow("bound", 0));
  std::vector<fagen_arg> args = {real("cap", 2), number("window", 16777216)};
  EXPECT_EQ(pick({bound.get()}, formProblem("gemma2", args), device), "UNSUPPORTED");
  args[1].i32 = 16777217;
  EXPECT_EQ(pick({bound.get()}, formProblem("gemma2", args), device), "bound");
}

TEST_F(FormTest, NamesAndKeysMeetInEachTableByItsOwnNumbers) {
  TestTable other("o");
  other.forms({makeForm("doc", "doc", kTensors, 2), makeForm("gemma2", "gemma2(window = 128)", kCapBound),
               makeForm("gemma2", "gemma2", kCapWindow)});
  other.add(formRow("other_w128", 1)).add(formRow("other_any", 2));
  const std::vector<fagen_arg> args = {real("cap", 50), number("window", 128)};
  const fagen_problem problem = formProblem("gemma2", args);
  EXPECT_EQ(pick({other.get()}, problem, device), "other_w128");
  EXPECT_EQ(pick({table.get(), other.get()}, problem, device), "w128");
  EXPECT_EQ(pick({tensors.get(), other.get(), table.get()}, problem, device), "other_w128");
  fagen_problem named = problem;
  named.variant = "other_any";
  EXPECT_EQ(pick({table.get(), other.get()}, named, device), "other_any");
  named.variant = "plain"; // of no form
  EXPECT_EQ(pick({table.get(), other.get()}, named, device), "UNSUPPORTED");
}

TEST_F(FormTest, OfTwoFormsOfANameTheOneThatTakesTheArgsIsMeant) {
  TestTable other("o");
  const std::vector<fagen_form_param> capOnly = {scalarParam("cap", FAGEN_ELEMENT_F32, 0, 1, 55)};
  other.forms({makeForm("gemma2", "gemma2", capOnly, 77)}).add(formRow("cap_only", 0));
  const std::vector<fagen_arg> both = {real("cap", 50), number("window", 64)}, one = {real("cap", 50)};
  EXPECT_EQ(pick({other.get(), table.get()}, formProblem("gemma2", both), device), "any");
  EXPECT_EQ(pick({table.get(), other.get()}, formProblem("gemma2", one), device), "cap_only");
  const std::vector<fagen_arg> none;
  EXPECT_EQ(pick({table.get(), other.get()}, formProblem("gemma2", none), device), "INVALID");
  EXPECT_STREQ(fagen_last_error(), "form gemma2: no arg 'cap'; its params are cap (f32), window (i32)");
}

TEST_F(FormTest, SelectSeesTheNumberOfTheTable) {
  fagen_row small = formRow("small", 0);
  small.schedule = 1;
  table.add(small);
  table.select("form == gemma2", 1,
               {{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_MASK}, {FAGEN_OP_CONSTANT, 0, 3}, {FAGEN_OP_EQ, 0, 0}});
  table.select("otherwise", 0);
  const std::vector<fagen_arg> args = {real("cap", 50), number("window", 64)};
  EXPECT_EQ(pickOf(formProblem("gemma2", args)), "small");
  EXPECT_EQ(pickOf(makeProblem()), "plain");
}

struct Refusal {
  const char *what;
  std::function<void(fagen_problem &, std::vector<fagen_arg> &)> change;
  const char *text;
};

TEST_F(FormTest, WrongArgsHaveOneMessageEach) {
  const Refusal refusals[] = {
      {"mask too", [](auto &p, auto &) { p.mask = FAGEN_MASK_CAUSAL; },
       "form is 'gemma2' and mask is 2 (causal); a form says what is seen: leave mask 0"},
      {"no form", [](auto &p, auto &) { p.form = nullptr; }, "arg_count is 2 without a form; name it in form"},
      {"no args", [](auto &p, auto &) { p.args = nullptr; }, "args is NULL and arg_count is 2"},
      {"unnamed", [](auto &, auto &a) { a[1].name = nullptr; }, "form gemma2: args[1].name is NULL"},
      {"unknown", [](auto &, auto &a) { a[1].name = "windw"; },
       "form gemma2: it has no param 'windw'; its params are cap (f32), window (i32)"},
      {"missing", [](auto &p, auto &) { p.arg_count = 1; },
       "form gemma2: no arg 'window'; its params are cap (f32), window (i32)"},
      {"twice", [](auto &, auto &a) { a[1].name = "cap"; }, "form gemma2: arg 'cap' is given twice"},
      {"kind", [](auto &, auto &a) { a[0].kind = FAGEN_ARG_I32; },
       "form gemma2: arg 'cap' has kind 1; the param is a number of f32: FAGEN_ARG_F32 (2)"},
      {"no kind", [](auto &, auto &a) { a[1].kind = 0; },
       "form gemma2: arg 'window' has kind 0; the param is a number of i32: FAGEN_ARG_I32 (1)"},
      {"below", [](auto &, auto &a) { a[1].i32 = 0; }, "form gemma2: arg 'window' is 0; it must be 1 to 4096"},
      {"above", [](auto &, auto &a) { a[1].i32 = 4097; }, "form gemma2: arg 'window' is 4097; it must be 1 to 4096"},
      {"far above", [](auto &, auto &a) { a[1].i32 = int64_t(1) << 40; },
       "form gemma2: arg 'window' is 1099511627776; it must be 1 to 4096"},
      {"least", [](auto &, auto &a) { a[1].i32 = INT64_MIN; },
       "form gemma2: arg 'window' is -9223372036854775808; it must be 1 to 4096"},
      {"reserved", [](auto &, auto &a) { a[0].reserved = 5; }, "form gemma2: reserved of arg 'cap' is 5; it must be 0"},
      {"real", [](auto &, auto &a) { a[0].f32 = 55.5; }, "form gemma2: arg 'cap' is 55.5; it must be 1 to 55"},
      {"NaN", [](auto &, auto &a) { a[0].f32 = NAN; }, "form gemma2: arg 'cap' is nan; it must be 1 to 55"},
  };
  for (const Refusal &refusal : refusals) {
    std::vector<fagen_arg> args = {real("cap", 50), number("window", 64)};
    fagen_problem problem = formProblem("gemma2", args);
    refusal.change(problem, args);
    EXPECT_EQ(pickOf(problem), "INVALID") << refusal.what;
    EXPECT_STREQ(fagen_last_error(), refusal.text);
  }
}

TEST_F(FormTest, ScalarsOnTheDeviceAreAligned) {
  std::vector<fagen_arg> args = {real("cap", 50), number("window", 0)};
  args[1].data = reinterpret_cast<const void *>(uintptr_t(0x1002));
  EXPECT_EQ(pickOf(formProblem("gemma2", args)), "MISALIGNED");
  EXPECT_STREQ(fagen_last_error(), "form gemma2: data of arg 'window' is 0x1002; i32 needs 4-byte alignment");
}

TEST_F(FormTest, RangesWithoutAnEnd) {
  const double infinity = std::numeric_limits<double>::infinity();
  struct {
    double low, high, value;
    const char *text;
  } cases[] = {{0, infinity, -1, "form f: arg 'x' is -1; it must be 0 or more"},
               {-infinity, 0, 1, "form f: arg 'x' is 1; it must be 0 or less"},
               {-infinity, infinity, infinity, "form f: arg 'x' is inf; it must be finite"},
               {-infinity, infinity, 1e300, "form f: arg 'x' is 1e+300; it must be finite"}};
  for (const auto &one : cases) {
    const std::vector<fagen_form_param> params = {scalarParam("x", FAGEN_ELEMENT_F32, 0, one.low, one.high)};
    TestTable any("a");
    any.forms({makeForm("f", "f", params)}).add(formRow("row", 0));
    std::vector<fagen_arg> args = {real("x", one.value)};
    EXPECT_EQ(pick({any.get()}, formProblem("f", args), device), "INVALID");
    EXPECT_STREQ(fagen_last_error(), one.text);
    args[0].f32 = one.low > -1 ? 3e38 : -3e38;
    EXPECT_EQ(pick({any.get()}, formProblem("f", args), device), "row");
  }
}

TEST_F(FormTest, FormsThatNoTableHas) {
  const std::vector<fagen_arg> args;
  EXPECT_EQ(pickOf(formProblem("gemma3", args)), "UNSUPPORTED");
  EXPECT_STREQ(fagen_last_error(), "no table has a form 'gemma3'; they have gemma2, doc");
  TestTable plain("p");
  plain.add(makeRow("row"));
  EXPECT_EQ(pick({plain.get()}, formProblem("gemma2", args), device), "UNSUPPORTED");
  EXPECT_STREQ(fagen_last_error(), "no table has a form 'gemma2'; they have none");
}

TEST_F(FormTest, WrongTensorsHaveOneMessageEach) {
  const Refusal refusals[] = {
      {"kind", [](auto &, auto &a) { a[1].kind = FAGEN_ARG_F32; },
       "form doc: arg 'a' has kind 2; the param is a tensor of f32: FAGEN_ARG_TENSOR (3)"},
      {"negative", [](auto &, auto &a) { a[1].stride[0] = -5, a[1].stride[1] = 1; },
       "form doc: stride[0] of arg 'a' is -5; it must not be negative"},
      {"too many", [](auto &, auto &a) { a[1].stride[2] = 1; },
       "form doc: stride[2] of arg 'a' is 1; the param has 2 extents"},
      {"bits", [](auto &, auto &a) { a[2].stride[0] = 8192, a[2].stride[1] = 16, a[2].stride[2] = 2; },
       "form doc: stride[2] of arg 'sees' is 2; the last extent of bits is dense: 1"},
      {"bits repeated", [](auto &, auto &a) { a[2].stride[0] = 8192, a[2].stride[1] = 16; },
       "form doc: stride[2] of arg 'sees' is 0; the last extent of bits is dense: 1"},
      {"reach", [](auto &, auto &a) { a[1].stride[0] = int64_t(1) << 52, a[1].stride[1] = 1; },
       "form doc: the strides of arg 'a' reach beyond 2^52 bytes"},
      {"overflow", [](auto &, auto &a) { a[1].stride[0] = INT64_MAX, a[1].stride[1] = 1; },
       "form doc: the strides of arg 'a' reach beyond 2^52 bytes"},
      {"extent", [](auto &, auto &a) { a[0].data = reinterpret_cast<const void *>(uintptr_t(0x100)); },
       "form doc: arg 'a' has no strides, and its extent 1 is the param 'n', which is on the device: give its strides"},
  };
  for (const Refusal &refusal : refusals) {
    std::vector<fagen_arg> args = {number("n", 3), tensor("a"), tensor("sees"), tensor("half")};
    fagen_problem problem = formProblem("doc", args);
    EXPECT_EQ(pickOf(problem), "doc") << fagen_last_error();
    refusal.change(problem, args);
    EXPECT_EQ(pickOf(problem), "INVALID") << refusal.what;
    EXPECT_STREQ(fagen_last_error(), refusal.text);
  }
}

/// The form's part of the kernels' argument, as 8-byte words; empty where it is refused.
std::vector<uint64_t> wordsOf(const fagen_table *table, const fagen_problem &problem, const fagen_device *device,
                              const std::vector<fagen_arg> &run = {}) {
  fagen_choice choice = fagen_choice_init();
  if (fagen_query(&table, 1, &problem, device, &choice))
    return {};
  fagen_tensors tensors = fagen_tensors_init();
  tensors.args = run.data();
  tensors.arg_count = uint32_t(run.size());
  LaunchArgument argument;
  EXPECT_EQ(reinterpret_cast<unsigned char *>(&argument) + sizeof(device::MappedAttentionParams), argument.form);
  if (setForm(choice, tensors, argument))
    return {};
  std::vector<uint64_t> words(formOf(*choice.table, choice.row->mask)->bytes / 8);
  EXPECT_EQ(argumentBytes(choice), sizeof(device::MappedAttentionParams) + words.size() * 8);
  memcpy(words.data(), argument.form, words.size() * 8);
  return words;
}

uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TEST_F(FormTest, NumbersArePackedInTheirPlaces) {
  std::vector<fagen_arg> args = {number("window", 64), real("cap", 50)};
  EXPECT_EQ(wordsOf(table.get(), formProblem("gemma2", args), device), (std::vector<uint64_t>{0, bitsOf(50), 0, 64}));
  args[0].i32 = 128; // bound: not there
  EXPECT_EQ(wordsOf(table.get(), formProblem("gemma2", args), device), (std::vector<uint64_t>{0, bitsOf(50)}));
  args[0].data = reinterpret_cast<const void *>(uintptr_t(0x40));
  EXPECT_EQ(wordsOf(table.get(), formProblem("gemma2", args), device), (std::vector<uint64_t>{0, bitsOf(50), 0x40, 0}));
}

TEST_F(FormTest, StridesArePackedOnes) {
  const std::vector<fagen_arg> args = {number("n", 3), tensor("a", 0x100), tensor("sees", 0x200),
                                       tensor("half", 0x302)};
  fagen_problem problem = formProblem("doc", args);
  problem.batch = 2;
  problem.seq_kv = 513; // 17 words a row
  EXPECT_EQ(wordsOf(tensors.get(), problem, device),
            (std::vector<uint64_t>{0, 3, 0x100, 3, 1, 0x200, 512 * 17, 17, 1, 0x302, 1}));
}

TEST_F(FormTest, StridesOfTheCaller) {
  std::vector<fagen_arg> args = {number("n", 3), tensor("a", 0x100, {0, 7}), tensor("sees", 0x200, {99, 18, 1}),
                                 tensor("half", 0x302, {123})};
  const fagen_problem problem = formProblem("doc", args);
  // One batch: its strides are not used. A 0 repeats.
  EXPECT_EQ(wordsOf(tensors.get(), problem, device),
            (std::vector<uint64_t>{0, 3, 0x100, 0, 7, 0x200, 0, 18, 1, 0x302, 0}));
  args[0].data = reinterpret_cast<const void *>(uintptr_t(0x80)); // the extent is not known: all strides are kept
  EXPECT_EQ(wordsOf(tensors.get(), problem, device),
            (std::vector<uint64_t>{0x80, 0, 0x100, 0, 7, 0x200, 0, 18, 1, 0x302, 0}));
}

TEST_F(FormTest, ExplicitStridesOfZeroRepeat) {
  const std::vector<fagen_arg> args = {number("n", 3), tensor("a", 0x100), tensor("sees", 0x200, {0, 0, 1}),
                                       tensor("half", 0x302)};
  fagen_problem problem = formProblem("doc", args);
  problem.flags = FAGEN_FLAG_EXPLICIT;
  problem.kv_heads = 8;
  problem.head_dim_v = 64;
  problem.lse_stride[1] = 512;
  problem.o_stride[1] = 512 * 64;
  problem.o_stride[2] = 64;
  EXPECT_EQ(wordsOf(tensors.get(), problem, device),
            (std::vector<uint64_t>{0, 3, 0x100, 0, 0, 0x200, 0, 0, 1, 0x302, 0}));
}

TEST_F(FormTest, RunsBringTheirPointers) {
  const std::vector<fagen_arg> args = {number("n", 3), tensor("a"), tensor("sees", 0x200), tensor("half")};
  const fagen_problem problem = formProblem("doc", args);
  const std::vector<fagen_arg> run = {tensor("half", 0x402), tensor("a", 0x100), tensor("n", 0x80)};
  EXPECT_EQ(wordsOf(tensors.get(), problem, device, run),
            (std::vector<uint64_t>{0x80, 3, 0x100, 3, 1, 0x200, 512 * 16, 16, 1, 0x402, 1}));
}

TEST_F(FormTest, EmptyTensorsNeedNoData) {
  const std::vector<fagen_arg> args = {number("n", 0), tensor("a"), tensor("sees", 0x200), tensor("half", 0x300)};
  const std::vector<uint64_t> words = wordsOf(tensors.get(), formProblem("doc", args), device);
  ASSERT_EQ(words.size(), 11u) << fagen_last_error();
  EXPECT_NE(words[2], 0u);
}

TEST_F(FormTest, WrongPointersOfARun) {
  const std::vector<fagen_arg> args = {number("n", 3), tensor("a"), tensor("sees", 0x200), tensor("half", 0x300)};
  const fagen_problem problem = formProblem("doc", args);
  struct {
    std::vector<fagen_arg> run;
    const char *text;
  } cases[] = {
      {{}, "form doc: arg 'a' has no data; give it in fagen_tensors.args or fagen_problem.args"},
      {{tensor("a")}, "form doc: arg 'a' has no data; give it in fagen_tensors.args or fagen_problem.args"},
      {{tensor("a", 0x102)}, "form doc: data of arg 'a' is 0x102; f32 needs 4-byte alignment"},
      {{tensor("b", 0x100)},
       "form doc: it has no param 'b'; its params are n (i32), a (f32, 2 extents), sees (bit, 3 "
       "extents), half (bf16, 1 extent)"},
      {{tensor(nullptr, 0x100)}, "form doc: args[0].name is NULL"},
  };
  for (const auto &one : cases) {
    EXPECT_TRUE(wordsOf(tensors.get(), problem, device, one.run).empty());
    EXPECT_STREQ(fagen_last_error(), one.text);
  }
  const std::vector<fagen_arg> bound = {real("cap", 50), number("window", 128)};
  EXPECT_TRUE(wordsOf(table.get(), formProblem("gemma2", bound), device, {tensor("window", 0x100)}).empty());
  EXPECT_STREQ(fagen_last_error(), "form gemma2: arg 'window' has data, and the row is for one value of it: give it "
                                   "data in fagen_problem, too");
}

TEST_F(FormTest, RunsWithoutAFormHaveNoArgs) {
  const fagen_table *one = table.get();
  const fagen_problem problem = makeProblem();
  fagen_choice choice = fagen_choice_init();
  ASSERT_EQ(fagen_query(&one, 1, &problem, device, &choice), FAGEN_OK);
  const fagen_arg args[] = {tensor("a", 0x100)};
  fagen_tensors run = fagen_tensors_init();
  run.q = run.k = run.v = run.o = reinterpret_cast<void *>(uintptr_t(0x100));
  run.arg_count = 1;
  EXPECT_EQ(fagen_run(&choice, &run, nullptr, 0, nullptr), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "args is NULL and arg_count is 1");
  run.args = args;
  EXPECT_EQ(fagen_run(&choice, &run, nullptr, 0, nullptr), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "arg_count is 1, and the problem has no form");
}

TEST_F(FormTest, ExplainNamesFormAndBoundValues) {
  const std::vector<fagen_arg> args = {real("cap", 50), number("window", 64)};
  const fagen_problem problem = formProblem("gemma2", args);
  const fagen_table *one = table.get();
  std::string text(fagen_explain(&one, 1, &problem, device, nullptr, 0) + 1, '\0');
  fagen_explain(&one, 1, &problem, device, text.data(), text.size());
  text.pop_back();
  EXPECT_EQ(text, "problem  forward f16 head_dim 64, form gemma2(cap = 50, window = 64); batch 1, heads 8, kv_heads 8, "
                  "seq_q 512, seq_kv 512\n"
                  "device   described sm_89, 58 SMs (sm_89)\n"
                  "picked   any (sm_89): select line 'otherwise' of k; exact target\n"
                  "select   k, gemma2: otherwise : main: true\n"
                  "not      w128 (sm_89): is for gemma2(window = 128); the problem has window = 64\n");
}

TEST_F(FormTest, ExplainOfABoundRow) {
  const std::vector<fagen_arg> args = {real("cap", 50), number("window", 128)};
  const fagen_problem problem = formProblem("gemma2", args);
  const fagen_table *one = table.get();
  std::string text(fagen_explain(&one, 1, &problem, device, nullptr, 0) + 1, '\0');
  fagen_explain(&one, 1, &problem, device, text.data(), text.size());
  EXPECT_NE(text.find("picked   w128 (sm_89): select line 'otherwise' of k"), std::string::npos) << text;
  EXPECT_NE(text.find("not      any (sm_89): fits, but w128 is for gemma2(window = 128)\n"), std::string::npos) << text;
}

TEST_F(FormTest, ExplainSaysWhatIsWrongWithArgs) {
  const std::vector<fagen_arg> args = {real("cap", 50)};
  const fagen_problem problem = formProblem("gemma2", args);
  const fagen_table *one = table.get();
  std::string text(fagen_explain(&one, 1, &problem, device, nullptr, 0) + 1, '\0');
  fagen_explain(&one, 1, &problem, device, text.data(), text.size());
  EXPECT_NE(text.find("INVALID: form gemma2: no arg 'window'"), std::string::npos) << text;
}

TEST(FormTable, ChecksFindMistakes) {
  std::vector<fagen_form_param> params = kTensors;
  fagen_form forms[] = {makeForm("doc", "doc", params), makeForm("gemma2", "gemma2", kCapWindow, 2)};
  auto refuses = [&](auto change, const char *reason) {
    const std::vector<fagen_form_param> goodParams = params;
    const fagen_form good = forms[0];
    TestTable table("k");
    fagen_row row = formRow("row", 1);
    change(forms[0], params, row);
    table.forms({forms[0], forms[1]}).add(row);
    EXPECT_EQ(fagen_table_check(table.get()), FAGEN_INVALID) << reason;
    EXPECT_NE(strstr(fagen_last_error(), reason), nullptr) << fagen_last_error();
    params = goodParams;
    forms[0] = good;
  };
  refuses([](auto &form, auto &, auto &) { form.name = nullptr; }, "table k, form 0 (doc): name or text is NULL");
  refuses([](auto &form, auto &, auto &) { form.bytes = 200; }, "more than 192 bytes");
  refuses([](auto &form, auto &, auto &) { form.param_size = 8; }, "params of fewer bytes");
  refuses([](auto &form, auto &, auto &) { form.bytes = 80; }, "not at a multiple of 8 within the form's bytes");
  refuses([](auto &, auto &p, auto &) { p[0].offset = 4; }, "not at a multiple of 8");
  refuses([](auto &, auto &p, auto &) { p[0].offset = 16; }, "two params have one name or one place");
  refuses([](auto &, auto &p, auto &) { p[1].name = "n"; }, "two params have one name or one place");
  refuses([](auto &, auto &p, auto &) { p[0].element = FAGEN_ELEMENT_BF16; }, "a scalar is neither i32 nor f32");
  refuses([](auto &, auto &p, auto &) { p[1].element = 7; }, "unknown element");
  refuses([](auto &, auto &p, auto &) { p[1].rank = 5; }, "more than 4 extents");
  refuses([](auto &, auto &p, auto &) { p[0].low = 101; }, "an empty range");
  refuses([](auto &, auto &p, auto &) { p[1].offset = FAGEN_PARAM_BOUND; }, "a tensor is bound");
  refuses([](auto &, auto &p, auto &) { p[0].offset = FAGEN_PARAM_BOUND, p[0].bound = 101; }, "out of its range");
  refuses([](auto &, auto &p, auto &) { p[1].extents[0].size = 0; }, "does not end with one value");
  static constexpr fagen_op kFar[] = {{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_FORM_0 + 4}};
  refuses([](auto &, auto &p, auto &) { p[1].extents[0] = {kFar, 1, 0}; }, "has an unknown variable");
  refuses([](auto &form, auto &, auto &) { form = makeForm("gemma2", "gemma2", kCapWindow, 2); },
          "table k, form 1 (gemma2): stands in the table twice");
  refuses([](auto &, auto &, auto &row) { row.mask = FAGEN_MASK_FORM_0 + 2; },
          "its mask is neither none nor causal nor a form of the table");
  TestTable many("k");
  many.forms(std::vector<fagen_form>(62, forms[0])).add(makeRow("row"));
  EXPECT_EQ(fagen_table_check(many.get()), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "table k has 62 forms; at most 61 are possible");
}

TEST(FormTable, StructsMayBeLarger) {
  struct LargerParam {
    fagen_form_param param;
    uint64_t later;
  };
  struct LargerForm {
    fagen_form form;
    uint64_t later;
  };
  const LargerParam params[] = {{kCapWindow[0], 1}, {kCapWindow[1], 2}};
  LargerForm forms[] = {{makeForm("first", "first", kCapWindow, 9), 1}, {makeForm("gemma2", "gemma2", kCapWindow), 2}};
  for (LargerForm &one : forms) {
    one.form.params = &params[0].param;
    one.form.param_size = sizeof(LargerParam);
  }
  TestTable base("k");
  base.add(formRow("row", 1));
  fagen_table table = *base.get();
  table.forms = &forms[0].form;
  table.form_count = 2;
  table.form_size = sizeof(LargerForm);
  EXPECT_EQ(fagen_table_check(&table), FAGEN_OK) << fagen_last_error();
  TestDevice device(89);
  const std::vector<fagen_arg> args = {real("cap", 50), number("window", 64)};
  EXPECT_EQ(pick({&table}, formProblem("gemma2", args), device), "row");
}

} // namespace
