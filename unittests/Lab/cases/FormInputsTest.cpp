// fagen: arguments of forms: drawn in range, put in memory by the case's layout, told to the C ABI.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/cases/abi_problem.h"
#include "lab/cases/form_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace fagen::lab;

namespace {

constexpr double kInfinity = INFINITY;

std::vector<fagen_op> variable(int64_t which) { return {{FAGEN_OP_VARIABLE, 0, which}}; }

FormPtr makeForm() {
  auto form = std::make_shared<FormDefinition>();
  form->name = "all";
  form->text = "all(bound=3)";
  form->params = {
      {"window", FAGEN_ELEMENT_I32, {}, false, 1, 1 << 30, {}},
      {"cap", FAGEN_ELEMENT_F32, {}, false, 1, 55, {}},
      {"bound", FAGEN_ELEMENT_I32, {}, false, 0, 8, 3},
      {"doc", FAGEN_ELEMENT_I32, {variable(FAGEN_VAR_BATCH), variable(FAGEN_VAR_SEQ_KV)}, true, 0, 1 << 30, {}},
      {"sees", FAGEN_ELEMENT_BIT, {variable(FAGEN_VAR_BATCH), variable(FAGEN_VAR_SEQ_KV)}, false, 0, 1, {}},
      {"bias",
       FAGEN_ELEMENT_BF16,
       {variable(FAGEN_VAR_HEADS), variable(FAGEN_VAR_FORM_0 + 2)},
       false,
       -kInfinity,
       kInfinity,
       {}},
      {"kind", FAGEN_ELEMENT_U8, {variable(FAGEN_VAR_SEQ_Q)}, false, 0, 255, {}},
  };
  return form;
}

const FormMemory &memoryOf(const FormInputs &inputs, const std::string &name) {
  return *std::find_if(inputs.tensors.begin(), inputs.tensors.end(),
                       [&](const FormMemory &m) { return m.name == name; });
}

/// Element `index` as a kernel would read it.
double readBack(const FormMemory &memory, uint32_t element, const std::vector<int64_t> &index) {
  int64_t offset = 0, bit = 0;
  for (size_t i = 0; i < index.size(); ++i)
    if (element == FAGEN_ELEMENT_BIT && i + 1 == index.size()) {
      offset += index[i] / 32;
      bit = index[i] % 32;
    } else {
      offset += index[i] * memory.strides[i];
    }
  uint32_t word = 0;
  std::memcpy(&word, memory.image.data() + memory.baseBytes + offset * memory.elementBytes, memory.elementBytes);
  EXPECT_TRUE(memory.used[size_t(offset)]);
  if (element == FAGEN_ELEMENT_BIT)
    return word >> bit & 1;
  return element == FAGEN_ELEMENT_BF16 ? double(floatOfBF16(uint16_t(word))) : double(int32_t(word));
}

TEST(FormInputs, MemoryHoldsWhatTheReferenceReads) {
  const FormPtr form = makeForm();
  for (const char *layout : {"bhsd", "bshd", "padded", "odd", "offset", "junk", "shared"}) {
    const Case c = withForm(parseCase(std::string("2,3,3,5,70,16 layout=") + layout), form, 7);
    const FormInputs &inputs = *c.arguments;
    ASSERT_EQ(inputs.tensors.size(), 4u);
    for (const FormParam &param : form->params) {
      if (!param.isTensor())
        continue;
      const FormTensor &tensor = inputs.arguments.tensors.at(param.name);
      const FormMemory &memory = memoryOf(inputs, param.name);
      const int64_t columns = tensor.extents.back();
      for (int64_t i = 0; i < int64_t(tensor.values.size()); ++i) {
        std::vector<int64_t> index = {i / columns, i % columns};
        index.erase(index.begin(), index.end() - int64_t(tensor.extents.size()));
        EXPECT_EQ(readBack(memory, param.element, index), tensor.values[size_t(i)]) << layout << " " << param.name;
      }
    }
  }
}

TEST(FormInputs, LayoutsHaveGapsAndRepeats) {
  const FormPtr form = makeForm();
  auto strides = [&](const char *layout, const char *name) {
    return memoryOf(*withForm(parseCase(std::string("2,3,3,5,70,16 layout=") + layout), form, 7).arguments, name)
        .strides;
  };
  using Strides = std::vector<int64_t>;
  EXPECT_EQ(strides("bhsd", "doc"), (Strides{70, 1}));
  EXPECT_EQ(strides("bhsd", "sees"), (Strides{3, 1}));
  EXPECT_EQ(strides("bshd", "doc"), (Strides{1, 2}));
  EXPECT_EQ(strides("padded", "doc"), (Strides{148, 2}));
  EXPECT_EQ(strides("padded", "sees"), (Strides{11, 1}));
  EXPECT_EQ(strides("shared", "doc"), (Strides{0, 1}));
  const Case shared = withForm(parseCase("2,3,3,5,70,16 layout=shared"), form, 7);
  const std::vector<double> &doc = shared.arguments->arguments.tensors.at("doc").values;
  EXPECT_TRUE(std::equal(doc.begin(), doc.begin() + 70, doc.begin() + 70));
}

TEST(FormInputs, ValuesAreInRangeAndAscend) {
  const FormPtr form = makeForm();
  std::set<double> windows;
  int rising = 0;
  for (uint64_t seed = 1; seed < 60; ++seed) {
    const Case c = withForm(parseCase("2,3,3,5,70,16"), form, seed);
    const FormArguments &arguments = c.arguments->arguments;
    windows.insert(arguments.numbers.at("window"));
    EXPECT_GE(arguments.numbers.at("cap"), 1);
    EXPECT_LE(arguments.numbers.at("cap"), 55);
    EXPECT_EQ(arguments.numbers.at("bound"), 3);
    const std::vector<double> &doc = arguments.tensors.at("doc").values;
    EXPECT_TRUE(std::is_sorted(doc.begin(), doc.begin() + 70));
    EXPECT_TRUE(std::is_sorted(doc.begin() + 70, doc.end()));
    rising += doc[69] > doc[0];
  }
  EXPECT_GT(rising, 50);
  EXPECT_EQ(*windows.begin(), 1);               // the low end
  EXPECT_EQ(*windows.rbegin(), 1 << 30);        // the high end
  EXPECT_LE(*std::prev(windows.end(), 2), 148); // else no more than lengths make interesting
  EXPECT_GT(windows.size(), 10u);
}

/// What a check draws covers a param's range: of one without a range numbers below 0, and the language's ends.
TEST(FormInputs, TensorsOfIntegersCoverTheRange) {
  constexpr double kEnd = 1 << 30;
  auto form = std::make_shared<FormDefinition>();
  const std::vector<fagen_op> heads = variable(FAGEN_VAR_HEADS), keys = variable(FAGEN_VAR_SEQ_KV);
  form->name = form->text = "ranges";
  form->params = {{"any", FAGEN_ELEMENT_I32, {heads, keys}, false, -kEnd, kEnd, {}},
                  {"some", FAGEN_ELEMENT_I32, {heads, keys}, false, -50, 700, {}},
                  {"rising", FAGEN_ELEMENT_I32, {heads, keys}, true, -kEnd, kEnd, {}},
                  {"scored", FAGEN_ELEMENT_I32, {heads, keys}, false, -kEnd, kEnd, {}}};
  form->texts.score = "s @h @k scored[2] f32 +";
  std::map<std::string, std::set<double>> seen;
  int differ = 0, whole = 0;
  for (uint64_t seed = 1; seed != 20; ++seed) {
    const Case c = withForm(parseCase("1,4,4,100,100,16"), form, seed);
    for (const auto &[name, tensor] : c.arguments->arguments.tensors)
      seen[name].insert(tensor.values.begin(), tensor.values.end());
    const std::vector<double> &any = c.arguments->arguments.tensors.at("any").values;
    differ += !std::equal(any.begin(), any.begin() + 100, any.begin() + 100);
    for (int head = 0; head != 4; ++head)
      whole += std::set<double>(any.begin() + head * 100, any.begin() + head * 100 + 64).size() == 1;
  }
  for (const char *name : {"any", "rising"}) {
    EXPECT_EQ(*seen[name].begin(), -kEnd) << name;
    EXPECT_EQ(*seen[name].rbegin(), kEnd) << name;
  }
  EXPECT_TRUE(seen["any"].contains(-1) && seen["any"].contains(1));
  EXPECT_LT(*std::next(seen["any"].begin()), -20); // about as far as lengths
  EXPECT_EQ(*seen["some"].begin(), -50);
  EXPECT_EQ(*seen["some"].rbegin(), 700);
  EXPECT_GE(*seen["scored"].begin(), -8); // a larger one would leave one key of a row
  EXPECT_LE(*seen["scored"].rbegin(), 8);
  EXPECT_EQ(differ, 19);
  EXPECT_GT(whole, 3); // tiles of which a row sees all or nothing
}

/// A map of blocks does not become a gigabyte because there are many keys.
TEST(FormInputs, ExtentsThatAreParamsAreSmall) {
  auto form = std::make_shared<FormDefinition>();
  form->name = form->text = "blocks";
  form->params = {
      {"rows", FAGEN_ELEMENT_I32, {}, false, 0, 1 << 30, {}},
      {"size", FAGEN_ELEMENT_I32, {}, false, 1, 1 << 30, {}},
      {"map", FAGEN_ELEMENT_U8, {variable(FAGEN_VAR_HEADS), variable(FAGEN_VAR_FORM_0)}, false, 0, 255, {}},
  };
  double rows = 0, size = 0;
  for (uint64_t seed = 1; seed != 40; ++seed) {
    const Case c = withForm(parseCase("1,4,4,1000,1000,16"), form, seed);
    rows = std::max(rows, c.arguments->arguments.numbers.at("rows"));
    size = std::max(size, c.arguments->arguments.numbers.at("size"));
  }
  EXPECT_GT(rows, 8);
  EXPECT_LE(rows, 24);
  EXPECT_GT(size, 500);
}

/// Nobody can pack a tensor whose extents stand on the device.
TEST(FormInputs, StridesAreToldWhereExtentsAreOnTheDevice) {
  auto form = std::make_shared<FormDefinition>();
  form->name = form->text = "blocks";
  form->params = {
      {"rows", FAGEN_ELEMENT_I32, {}, false, 1, 9, {}},
      {"columns", FAGEN_ELEMENT_I32, {}, false, 7, 7, {}},
      {"first", FAGEN_ELEMENT_U8, {variable(FAGEN_VAR_FORM_0), variable(FAGEN_VAR_HEADS)}, false, 0, 1, {}},
      {"last", FAGEN_ELEMENT_U8, {variable(FAGEN_VAR_HEADS), variable(FAGEN_VAR_FORM_0 + 1)}, false, 0, 1, {}},
  };
  auto stridesOf = [&](const char *text, size_t arg) {
    return withForm(parseCase(text), form, 1).arguments->args.at(arg).stride[0];
  };
  EXPECT_EQ(stridesOf("1,4,4,50,50,16", 3), 0);
  EXPECT_EQ(stridesOf("1,4,4,50,50,16 scalars=device", 2), 0); // its first extent is not asked for
  EXPECT_EQ(stridesOf("1,4,4,50,50,16 scalars=device", 3), 7);
}

TEST(FormInputs, TheAbiIsToldNumbersAndStrides) {
  const FormPtr form = makeForm();
  const Case c = withForm(parseCase("2,3,3,5,70,16 layout=padded arg.window=9 arg.cap=50"), form, 1);
  const fagen_problem problem = describeProblem(c, Placements(c));
  EXPECT_STREQ(problem.form, "all");
  EXPECT_EQ(problem.mask, 0u);
  ASSERT_EQ(problem.arg_count, 7u);
  EXPECT_STREQ(problem.args[0].name, "window");
  EXPECT_EQ(problem.args[0].kind, uint32_t(FAGEN_ARG_I32));
  EXPECT_EQ(problem.args[0].i32, 9);
  EXPECT_EQ(problem.args[1].f32, 50);
  EXPECT_EQ(problem.args[2].i32, 3);
  EXPECT_STREQ(problem.args[3].name, "doc");
  EXPECT_EQ(problem.args[3].kind, uint32_t(FAGEN_ARG_TENSOR));
  EXPECT_EQ(problem.args[3].stride[0], 148);
  EXPECT_EQ(problem.args[3].data, nullptr);
  // On the device a scalar's number is hidden, but a bound one's: it has to be the row's.
  const Case onDevice = withForm(parseCase("2,3,3,5,70,16 scalars=device"), form, 1);
  EXPECT_EQ(onDevice.arguments->tensors.size(), 6u);
  EXPECT_NE(onDevice.arguments->args[0].data, nullptr);
  EXPECT_EQ(onDevice.arguments->args[2].data, nullptr);
}

TEST(FormInputs, WrongNumbersAreRefused) {
  auto messageOf = [](const char *text) -> std::string {
    try {
      withForm(parseCase(text), makeForm(), 1);
      return "";
    } catch (const UserError &error) {
      return error.what();
    }
  };
  EXPECT_EQ(messageOf("2,3,3,5,70,16 arg.window=0"), "arg window=0 is not in the param's range, 1 to 1073741824");
  EXPECT_EQ(messageOf("2,3,3,5,70,16 arg.window=1.5"), "arg window=1.5 is not an integer, as the param is");
  EXPECT_EQ(messageOf("2,3,3,5,70,16 arg.bound=4"), "arg bound=4, but all(bound=3) binds it to 3");
  EXPECT_EQ(messageOf("2,3,3,5,70,16 arg.window=x"), "arg is 'window=x', not NAME=NUMBER: window=1024, cap=50");
}

TEST(FormInputs, CasesOfFormsAreOneLine) {
  const char *text = "1,2,1,5,7,16 form=local(window=128) arg.cap=50 arg.window=128 scalars=device";
  EXPECT_EQ(formatCase(parseCase(text)), text);
  EXPECT_EQ(maskText(parseCase(text)), "local(window=128)");
}

} // namespace
