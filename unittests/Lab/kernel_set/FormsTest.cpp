// fagen: forms of a kernel set: read from table and manifest, chosen by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/kernel_set/forms.h"
#include "../FakeSet.h"

#include <gmock/gmock.h>

using namespace fagen::lab;
using testing::HasSubstr;

namespace {

using Json = nlohmann::json;

/// gemma2, with any window, and with one of 128: a row each.
class FormSet : public testing::Test {
protected:
  FormSet() {
    const Json cap = {{"name", "cap"}, {"element", "f32"}, {"offset", 0}, {"low", 1}, {"high", 55}};
    const Json free = {{"name", "window"}, {"element", "i32"}, {"offset", 16}, {"low", 1}, {"high", 4096}, {"mask", 1}};
    const Json bound = {{"name", "window"}, {"element", "i32"}, {"low", 1},
                        {"high", 4096},     {"mask", 1},        {"bound", 128}};
    const Json slope = {{"name", "slope"}, {"element", "bf16"}, {"offset", 32}, {"extents", {{"heads"}, {"window"}}}};
    Json form = {{"name", "gemma2"},
                 {"text", "gemma2"},
                 {"hash", "0123456789abcdef"},
                 {"params", {cap, free, slope}},
                 {"bytes", 56},
                 {"lets", Json::array({Json::array({"d", "@k @p -"})})},
                 {"score", "$cap @s $cap / tanh *"},
                 {"mask", "=d 0 <="}};
    files.manifest["forms"] = {form, form};
    files.manifest["forms"][1].update(
        {{"text", "gemma2(window = 128)"}, {"bytes", 40}, {"params", {cap, bound, slope}}});
    files.manifest["forms"][1]["params"][2]["offset"] = 16;
    for (int i : {0, 1})
      files.manifest["rows"][i].update({{"mask", files.manifest["forms"][i]["text"]}, {"form", i}});
    sets.push_back(files.load());
  }

  FakeSet files;
  std::vector<std::unique_ptr<KernelSet>> sets;
};

TEST_F(FormSet, IsReadFromTableAndManifest) {
  ASSERT_EQ(sets[0]->forms().size(), 2u);
  const FormDefinition &form = *sets[0]->forms()[0], &bound = *sets[0]->forms()[1];
  EXPECT_EQ(form.name, "gemma2");
  EXPECT_EQ(bound.text, "gemma2(window=128)");
  EXPECT_EQ(form.texts.score, "$cap @s $cap / tanh *");
  EXPECT_EQ(form.texts.mask, "=d 0 <=");
  EXPECT_EQ(form.texts.sink, "");
  ASSERT_EQ(form.texts.lets.size(), 1u);
  EXPECT_EQ(form.texts.reals, (std::set<std::string>{"cap", "slope"}));
  EXPECT_EQ(form.params[0].high, 55);
  EXPECT_FALSE(form.params[1].bound);
  EXPECT_EQ(bound.params[1].bound, 128);
  EXPECT_EQ(extentOf(form.params[2].extents[1], form, {}, {{"window", 9}}), 9);
  for (const fagen_row *row : sets[0]->rows())
    EXPECT_EQ(caseOfRow(*sets[0], *row).form, sets[0]->form(*row)->text);
}

TEST_F(FormSet, IsChosenByNameOrText) {
  EXPECT_EQ(chooseMask(sets, "causal").mask, Mask::Causal);
  EXPECT_EQ(chooseMask(sets, "gemma2").form->text, "gemma2"); // the one that takes any window
  EXPECT_EQ(chooseMask(sets, "gemma2(window = 128)").form->text, "gemma2(window=128)");
  try {
    chooseMask(sets, "gema2");
    ADD_FAILURE();
  } catch (const UserError &error) {
    EXPECT_STREQ(error.what(), "unknown mask or form 'gema2'; the kernel sets have none, causal, gemma2, "
                               "gemma2(window=128)");
  }
}

TEST_F(FormSet, IsTimedWithUsualNumbers) {
  const Case c = timedCase(parseShape("1,2,2,30,40,16"), Case(), sets[0]->forms()[0], {{"window", 9}}, 1);
  EXPECT_EQ(formatCase(c), "1,2,2,30,40,16 form=gemma2 arg.cap=50 arg.window=9");
  EXPECT_EQ(usualNumbers(*sets[0]->forms()[0], {}).at("window"), 1024);
  EXPECT_EQ(usualNumbers(*sets[0]->forms()[1], {}).count("window"), 0u); // it has one value
  EXPECT_EQ(parseNumbers({"a=1", "b=0.5"}), (std::map<std::string, double>{{"a", 1}, {"b", 0.5}}));
  EXPECT_THROW(parseNumbers({"a=1", "a=2"}), UserError);
}

} // namespace
