// fagen: the forms of specs/forms.fa, each against the same by hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FormOfText.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <map>

using namespace fagen;
using lab::FormElement;

namespace {

constexpr lab::Shape kSmall = {2, 4, 2, 11, 17, 0, 0};

/// A form's arguments as its functions want them: a number, or an element of a tensor.
struct Given {
  const lab::FormArguments &arguments;
  int64_t i(const char *name) const { return int64_t(arguments.numbers.at(name)); }
  double f(const char *name) const { return arguments.numbers.at(name); }
  double at(const char *name, std::initializer_list<int64_t> index) const {
    const lab::FormTensor &tensor = arguments.tensors.at(name);
    int64_t place = 0;
    size_t dimension = 0;
    for (int64_t one : index)
      place = place * tensor.extents[dimension++] + one;
    return tensor.values.at(size_t(place));
  }
};

/// At query e.query, which stands at p of the keys.
struct ByHand {
  std::function<double(const FormElement &e, int64_t p, const Given &a)> score;
  std::function<bool(const FormElement &e, int64_t p, const Given &a)> mask;
  std::function<double(const FormElement &e, const Given &a)> sink = nullptr;
};

double same(const FormElement &e, int64_t, const Given &) { return e.score; }
bool all(const FormElement &, int64_t, const Given &) { return true; }
bool causal(const FormElement &e, int64_t p, const Given &) { return e.key <= p; }
bool inWindow(const FormElement &e, int64_t p, const Given &a) { return e.key <= p && e.key > p - a.i("window"); }
double capped(const FormElement &e, int64_t, const Given &a) { return a.f("cap") * std::tanh(e.score / a.f("cap")); }
double biased(const FormElement &e, int64_t, const Given &a) {
  return e.score + a.at("bias", {e.batch, e.head, e.query, e.key});
}
bool isVisible(const FormElement &e, int64_t, const Given &a) {
  return a.at("visible", {e.batch, e.head, e.query, e.key}) != 0;
}
double sinkOfHead(const FormElement &e, const Given &a) { return a.at("sinks", {e.head}); }

const std::map<std::string, ByHand> kByHand = {
    {"window", {same, inWindow}},
    {"local",
     {same, [](const FormElement &e, int64_t p,
               const Given &a) { return p - e.key <= a.i("left") && e.key - p <= a.i("right"); }}},
    {"softcap", {capped, causal}},
    {"gemma2", {capped, inWindow}},
    {"alibi",
     {[](const FormElement &e, int64_t p, const Given &a) {
        return e.score - a.at("slope", {e.head}) * double(p - e.key);
      },
      causal}},
    {"sink", {same, causal, sinkOfHead}},
    {"gpt_oss", {same, inWindow, sinkOfHead}},
    {"bias", {biased, all}},
    {"prefix",
     {same,
      [](const FormElement &e, int64_t p, const Given &a) { return e.key <= p || e.key < a.at("prefix", {e.batch}); }}},
    {"documents",
     {same,
      [](const FormElement &e, int64_t p, const Given &a) {
        return e.key <= p && double(e.key) >= a.at("first", {e.batch, std::max<int64_t>(p, 0)});
      }}},
    {"same_document",
     {same,
      [](const FormElement &e, int64_t p, const Given &a) {
        return e.key <= p && a.at("document", {e.batch, e.key}) == a.at("document", {e.batch, std::max<int64_t>(p, 0)});
      }}},
    {"temperature",
     {[](const FormElement &e, int64_t, const Given &a) { return a.at("factor", {e.head}) * e.score; }, causal}},
    {"streaming",
     {same, [](const FormElement &e, int64_t p,
               const Given &a) { return e.key <= p && (e.key < a.i("first") || e.key > p - a.i("window")); }}},
    {"dilated",
     {same,
      [](const FormElement &e, int64_t p, const Given &a) {
        for (int64_t n = 0; n < a.i("window"); ++n)
          if (e.key == p - n * a.i("step"))
            return true;
        return false;
      }}},
    {"chunked",
     {same,
      [](const FormElement &e, int64_t p, const Given &a) {
        // of the chunk that p is in, from its first key on; before the first key there is none
        return p >= 0 && e.key <= p && e.key >= p - p % a.i("chunk");
      }}},
    {"blocks",
     {same,
      [](const FormElement &e, int64_t, const Given &a) {
        const int64_t rows = a.i("rows"), columns = a.i("columns"), size = a.i("size");
        if (rows == 0 || columns == 0)
          return false;
        return a.at("map", {e.batch, e.head, std::min<int64_t>(e.query / size, rows - 1),
                            std::min<int64_t>(e.key / size, columns - 1)}) != 0;
      }}},
    {"visible", {same, isVisible}},
    {"bias_visible", {biased, isVisible}},
    {"rows",
     {same,
      [](const FormElement &e, int64_t, const Given &a) {
        return double(e.key) >= a.at("first", {e.query}) && double(e.key) <= a.at("last", {e.query});
      }}},
};

std::vector<form::Form> shippedForms() {
  llvm::SourceMgr sources;
  auto text = llvm::MemoryBuffer::getFile(FAGEN_SPECS "/forms.fa");
  EXPECT_TRUE(bool(text));
  const unsigned id = sources.AddNewSourceBuffer(std::move(*text), {});
  std::string report;
  llvm::raw_string_ostream os(report);
  Diagnostics diags(sources, os);
  const ast::File file = parseSpec(sources.getMemoryBuffer(id)->getBuffer(), diags);
  std::vector<form::Form> forms;
  for (const auto &one : file.forms)
    if (std::optional<form::Form> form = form::checkForm(one, diags))
      forms.push_back(std::move(*form));
  EXPECT_EQ(report, "");
  return forms;
}

/// With arguments as checks draw them: small numbers and ends, tensors of all values.
void compare(const form::Form &form, const ByHand &expected, const lab::Shape &shape, uint64_t seed) {
  lab::Case c;
  c.shape = shape;
  c = lab::withForm(c, definitionOf(form), seed);
  const lab::FormArguments &arguments = c.arguments->arguments;
  const Given given{arguments};
  lab::BoundForm bound = lab::FormProgram(textsOf(form)).bind(shape, arguments);
  FormElement e;
  for (e.batch = 0; e.batch != shape.batch; ++e.batch)
    for (e.head = 0; e.head != shape.heads; ++e.head)
      for (e.query = 0; e.query != shape.seqQ; ++e.query)
        for (e.key = 0; e.key != shape.seqKv; ++e.key) {
          const int64_t p = e.query + shape.seqKv - shape.seqQ;
          e.score = double((e.key * 3 + e.query) % 7) - 2.5;
          ASSERT_EQ(bound.mask(e), expected.mask(e, p, given))
              << form.name << " seed " << seed << " at " << e.query << ", " << e.key;
          ASSERT_NEAR(bound.score(e), expected.score(e, p, given), 1e-12) << form.name;
          ASSERT_EQ(bound.sink(e).has_value(), expected.sink != nullptr) << form.name;
          if (expected.sink) {
            ASSERT_EQ(*bound.sink(e), expected.sink(e, given)) << form.name;
          }
        }
}

TEST(ShippedForms, AreThoseByHand) {
  const std::vector<form::Form> forms = shippedForms();
  EXPECT_EQ(forms.size(), kByHand.size());
  for (const form::Form &form : forms) {
    ASSERT_EQ(kByHand.count(form.name), 1u) << form.name << " is not written by hand here";
    for (uint64_t seed = 1; seed != 7; ++seed) {
      compare(form, kByHand.at(form.name), kSmall, seed);
      compare(form, kByHand.at(form.name), {1, 2, 1, 19, 9, 0, 0}, seed); // rows before all keys
    }
  }
}

} // namespace
