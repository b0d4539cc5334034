// fagen: tensors of forms whose values a case gives: a file, or a rule in a word.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/cases/form_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>

using namespace fagen::lab;

namespace {

constexpr double kEndless = INFINITY;

std::vector<fagen_op> size(int64_t which) { return {{FAGEN_OP_VARIABLE, 0, which}}; }

FormPtr formOfTensors() {
  auto form = std::make_shared<FormDefinition>();
  const std::vector<fagen_op> batch = size(FAGEN_VAR_BATCH), keys = size(FAGEN_VAR_SEQ_KV);
  form->name = form->text = "all";
  form->params = {
      {"window", FAGEN_ELEMENT_I32, {}, false, 1, 1 << 30, {}},
      {"bias", FAGEN_ELEMENT_F32, {batch, keys}, false, -kEndless, kEndless, {}},
      {"half", FAGEN_ELEMENT_F16, {keys}, false, -kEndless, kEndless, {}},
      {"doc", FAGEN_ELEMENT_I32, {batch, keys}, true, -8, 100, {}},
      {"kind", FAGEN_ELEMENT_U8, {batch, keys}, false, 0, 255, {}},
  };
  return form;
}

std::vector<double> valuesOf(const std::string &rules, const char *name, uint64_t seed = 1) {
  return withForm(parseCase("2,1,1,1,4,16 " + rules), formOfTensors(), seed)
      .arguments->arguments.tensors.at(name)
      .values;
}

std::string refusalOf(const std::string &rules) {
  try {
    withForm(parseCase("2,1,1,1,4,16 " + rules), formOfTensors(), 1);
    return "";
  } catch (const UserError &error) {
    return error.what();
  }
}

using Values = std::vector<double>;

TEST(TensorRule, Rules) {
  EXPECT_EQ(valuesOf("arg.bias=all:-1e9", "bias"), Values(8, -1e9));
  EXPECT_EQ(valuesOf("arg.bias=all:-inf", "bias"), Values(8, -kEndless));
  EXPECT_EQ(valuesOf("arg.half=all:0.1", "half"), Values(4, 0.0999755859375)); // what f16 holds
  EXPECT_EQ(valuesOf("arg.doc=ramp:-5:2", "doc"), (Values{-5, -3, -1, 1, -5, -3, -1, 1}));
  EXPECT_EQ(valuesOf("arg.doc=ramp:-5:10:1", "doc"), (Values{-5, -4, -3, -2, 5, 6, 7, 8}));
  EXPECT_EQ(valuesOf("arg.doc=runs:3:3:40", "doc"), (Values{3, 3, 3, 43, 3, 3, 3, 43}));
  EXPECT_EQ(valuesOf("arg.doc=runs:3:3:10:1", "doc"), (Values{3, 3, 3, 13, -7, 3, 3, 3}));
}

TEST(TensorRule, SpreadIsOfTheSeed) {
  const Values kinds = valuesOf("arg.kind=spread:3:5", "kind", 7);
  EXPECT_EQ(kinds, valuesOf("arg.kind=spread:3:5", "kind", 7));
  EXPECT_NE(kinds, valuesOf("arg.kind=spread:3:5", "kind", 8));
  EXPECT_EQ(*std::min_element(kinds.begin(), kinds.end()), 3);
  EXPECT_EQ(*std::max_element(kinds.begin(), kinds.end()), 5);
}

TEST(TensorRule, NumbersOfAFile) {
  const std::string path = testing::TempDir() + "fagen-tensor-rule.txt";
  std::ofstream(path) << "1 2 3 4\n5 6 7\t-1e9\n";
  EXPECT_EQ(valuesOf("arg.bias=file:" + path, "bias"), (Values{1, 2, 3, 4, 5, 6, 7, -1e9}));
  EXPECT_EQ(refusalOf("arg.half=file:" + path),
            fmt::format("arg half=file:{}: the file has 8 numbers; the tensor, [4], has 4 elements", path));
  std::ofstream(path) << "1 2 x 4 5 6 7 8";
  EXPECT_EQ(refusalOf("arg.bias=file:" + path), fmt::format("arg bias=file:{}: 'x' is not a number", path));
}

TEST(TensorRule, TheKernelGetsWhatTheReferenceReads) {
  const Case c = withForm(parseCase("2,1,1,1,4,16 layout=padded arg.bias=ramp:-1e9:1:64"), formOfTensors(), 1);
  const FormMemory &memory = c.arguments->tensors.front();
  ASSERT_EQ(memory.name, "bias");
  float last = 0;
  std::memcpy(&last, memory.image.data() + memory.baseBytes + (memory.strides[0] + 3 * memory.strides[1]) * 4, 4);
  EXPECT_EQ(last, c.arguments->arguments.tensors.at("bias").values.back());
}

TEST(TensorRule, CasesAreOneLine) {
  const char *text = "1,2,1,5,7,16 form=all arg.window=3 arg.bias=all:-1e9 arg.doc=runs:0:3:1";
  EXPECT_EQ(formatCase(parseCase(text)), text);
  EXPECT_FALSE(parseCase(text) == parseCase("1,2,1,5,7,16 form=all arg.window=3 arg.bias=all:1 arg.doc=runs:0:3:1"));
}

TEST(TensorRule, Mistakes) {
  EXPECT_EQ(refusalOf("arg.bias=al:1"),
            "arg bias=al:1: unknown rule 'al'; a tensor takes file:PATH, all:X, ramp:X:STEP, "
            "runs:X:LENGTH:STEP or spread:LOW:HIGH");
  EXPECT_EQ(refusalOf("arg.bias=all:x"), "arg bias=all:x: 'x' is not a number");
  EXPECT_EQ(refusalOf("arg.bias=all:nan"), "arg bias=all:nan: 'nan' is not a number");
  EXPECT_EQ(refusalOf("arg.bias=all:1:2"), "arg bias=all:1:2: 'all' has 2 numbers; it takes 1");
  EXPECT_EQ(refusalOf("arg.bias=ramp:1"), "arg bias=ramp:1: 'ramp' has 1 numbers; it takes 2 to 3");
  EXPECT_EQ(refusalOf("arg.bias=runs:1:0:1"), "arg bias=runs:1:0:1: runs have a length of 1 or more, not 0");
  EXPECT_EQ(refusalOf("arg.bias=spread:2:1"), "arg bias=spread:2:1: it takes two finite numbers, the lower one first");
  EXPECT_EQ(refusalOf("arg.bias=file:none.txt"), "arg bias=file:none.txt: cannot read 'none.txt'");
  EXPECT_EQ(refusalOf("arg.kind=ramp:0:1:86"),
            "arg kind=ramp:0:1:86: element [0, 3] is 258; the param's range is 0 to 255");
  EXPECT_EQ(refusalOf("arg.kind=all:0.5"), "arg kind=all:0.5: element [0, 0] is 0.5; the param has integers");
  EXPECT_EQ(refusalOf("arg.half=all:1e6"), "arg half=all:1e6: element [0] is 1000000, which its type does not hold");
  EXPECT_EQ(refusalOf("arg.doc=ramp:5:-1"),
            "arg doc=ramp:5:-1: element [0, 1] is 4 after 5; the param ascends along its last index");
  EXPECT_EQ(refusalOf("arg.doc=4"), "arg doc=4, but the param is a tensor, which takes file:PATH, all:X, ramp:X:STEP, "
                                    "runs:X:LENGTH:STEP or spread:LOW:HIGH");
  EXPECT_EQ(refusalOf("arg.window=all:4"), "arg window=all:4, but the param is a scalar, which takes a number");
  EXPECT_EQ(refusalOf("arg.windw=4"), "form 'all' has no param 'windw'; it has window, bias, half, doc, kind");
  EXPECT_EQ(refusalOf("arg.window=4 arg.window=5"), "arg 'window' is given twice");
}

} // namespace
