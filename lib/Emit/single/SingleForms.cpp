// fagen: what forms add to the two files of --emit=single.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The args of a form are a struct of C with the layout of the kernel's own (fagen/device/form.h): the caller fills it
// in, and attn_run checks it and appends it to attention's parameters.

#include "SingleForms.h"

#include "fagen/Form/Use.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <fmt/format.h>
#include <map>

using namespace fagen;
using form::Element;

namespace {

/// Forms of the plan's variants, by their number.
std::map<unsigned, const form::Use *> formsOf(const KernelPlan &plan) {
  std::map<unsigned, const form::Use *> forms;
  for (const VariantPlan &one : plan.variants)
    if (const Problem &problem = one.variant->problem; problem.form)
      forms[maskNumber(problem)] = problem.form.get();
  return forms;
}

const char *elementText(Element element) {
  switch (element) {
  case Element::Bit:
    return "unsigned";
  case Element::U8:
    return "unsigned char";
  case Element::I32:
    return "int";
  case Element::F16:
  case Element::BF16:
    return "void";
  case Element::F32:
    break;
  }
  return "float";
}

const char *noteOf(Element element) {
  return element == Element::Bit    ? " /* 32 in a word, low first; strides in words, of the last index 1 */"
         : element == Element::F16  ? " /* f16 */"
         : element == Element::BF16 ? " /* bf16 */"
                                    : "";
}

std::string numberOf(const form::Use &use) { return "ATTN_FORM_" + llvm::StringRef(toNamePart(use)).upper(); }
std::string structOf(const form::Use &use) { return "attn_" + toNamePart(use) + "_args"; }

std::string structText(const form::Use &use) {
  std::string text;
  for (const form::Field &field : layoutOf(use).fields) {
    const form::Param &param = use.form->params[field.param];
    if (param.isTensor())
      text += fmt::format("  const {} *{};{}\n  int64_t {}_stride[{}];\n", elementText(param.element), param.name,
                          noteOf(param.element), param.name, param.extents.size());
    else
      text += fmt::format("  attn_{} {};\n", param.element == Element::I32 ? "i32" : "f32", param.name);
  }
  return text.empty() ? "" : fmt::format("typedef struct {0} {{\n{1}}} {0};\n", structOf(use), text);
}

std::string numbersText(const std::map<unsigned, const form::Use *> &forms) {
  std::string numbers, structs;
  for (const auto &[number, use] : forms) {
    numbers += fmt::format("{}{} = {}", numbers.empty() ? "" : ", ", numberOf(*use), number);
    structs += structText(*use);
  }
  return "enum { " + numbers +
         " };\n\n"
         "/* A number: that of the host, or where `device` is not NULL the one that stands there when the kernel runs. "
         "*/\n"
         "typedef struct attn_i32 {\n  const int *device;\n  int number;\n} attn_i32;\n"
         "typedef struct attn_f32 {\n  const float *device;\n  float number;\n} attn_f32;\n\n"
         "/* What forms take in addition to Q, K and V. Pointers are to the GPU's memory, strides in elements; one of "
         "0 "
         "repeats. */\n" +
         structs + "\n";
}

std::string endText(double end, bool isInteger) {
  return isInteger ? std::to_string(int64_t(end)) : fmt::format("{:.9g}{}", end, std::floor(end) == end ? ".0" : "");
}

/// Refuses what the form's param may not be.
std::string checkText(const form::Param &param) {
  if (param.isTensor())
    return fmt::format("    if (!a.{0})\n      return \"{0} is NULL\";\n", param.name);
  const bool isInteger = param.element == Element::I32;
  const double low = isInteger ? double(param.range.low) : param.realRange.low,
               high = isInteger ? double(param.range.high) : param.realRange.high;
  if (!std::isfinite(low) || !std::isfinite(high))
    return {};
  return fmt::format("    if (!a.{0}.device && !(a.{0}.number >= {1} && a.{0}.number <= {2}))\n"
                     "      return \"{0} is not in [{3}, {4}]\";\n",
                     param.name, endText(low, isInteger), endText(high, isInteger),
                     isInteger ? endText(low, true) : fmt::format("{:g}", low),
                     isInteger ? endText(high, true) : fmt::format("{:g}", high));
}

std::string fillingText(const std::map<unsigned, const form::Use *> &forms) {
  std::string cases;
  for (const auto &[number, use] : forms) {
    const form::Layout layout = layoutOf(*use);
    if (layout.fields.empty())
      continue;
    cases += fmt::format("  case {0}: {{\n    static_assert(sizeof({1}) == {2}, \"as the kernel has it\");\n"
                         "    if (!tensors.args)\n      return \"args is NULL; it points to an {1}\";\n"
                         "    const auto &a = *static_cast<const {1} *>(tensors.args);\n",
                         numberOf(*use), structOf(*use), layout.bytes);
    for (const form::Field &field : layout.fields)
      cases += checkText(use->form->params[field.param]);
    cases += "    memcpy(form, &a, sizeof(a));\n    return nullptr;\n  }\n";
  }
  return fmt::format(
      "/// The argument of a form's kernel.\nstruct FormedArgument {{\n  Params attention;\n"
      "  alignas(8) unsigned char form[{}];\n}};\n\n"
      "const char *fill_form(const attn_kernel &kernel, const attn_tensors &tensors, unsigned char *form) {{\n"
      "  switch (kernel.form) {{\n{}  default:\n    return nullptr;\n  }}\n}}\n\n",
      form::kMostArgumentBytes, cases);
}

} // namespace

SingleForms fagen::singleForms(const KernelPlan &plan) {
  const std::map<unsigned, const form::Use *> forms = formsOf(plan);
  SingleForms texts;
  if (forms.empty())
    return texts;
  texts.numbers = numbersText(forms);
  texts.field = "  int form;      /* ATTN_FORM_...; 0: causal says what is masked */\n";
  texts.args = "  const void *args; /* of the problem's form: its struct */\n";
  texts.column = "  int form;          /* ATTN_FORM_..., or 0 */\n";
  texts.mask = "(p->form ? p->form : p->causal + 1)";
  texts.matches = "k->form == p->form && ";
  texts.check = "  if (p->form && p->causal)\n    return \"causal goes with no form; the form says what is masked\";\n";
  texts.filling = fillingText(forms);
  texts.argument = "  FormedArgument all;\n  Params &params = all.attention;\n";
  texts.fill = "  if (const char *refusal = fill_form(kernel, *tensors, all.form))\n    return refusal;\n";
  return texts;
}
