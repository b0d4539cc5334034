// fagen: values of the axis of forms: gemma2, local(window = 128).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FormAxis.h"

#include "fagen/Spec/Spec.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

const FileForm *FormAxis::find(StringRef name) const {
  const auto found = find_if(file, [&](const FileForm &each) { return each.name == name; });
  return found == file.end() ? nullptr : &*found;
}

std::vector<StringRef> FormAxis::names() const {
  std::vector<StringRef> names;
  for (const FileForm &each : file)
    names.push_back(each.name);
  return names;
}

static std::string rangeText(const form::Param &param) {
  return param.element == form::Element::I32 ? fmt::format("[{}, {}]", param.range.low, param.range.high)
                                             : fmt::format("[{}, {}]", param.realRange.low, param.realRange.high);
}

std::optional<form::Bound> FormAxis::bound(const form::Form &form, const ast::Name &name, const ast::Number &number,
                                           Diagnostics &diags) const {
  auto report = [&](SMRange range, const std::string &message) -> std::optional<form::Bound> {
    diags.error(range, message);
    return std::nullopt;
  };
  std::vector<StringRef> scalars;
  for (const form::Param &param : form.params)
    if (!param.isTensor())
      scalars.push_back(param.name);
  const auto found = find_if(form.params, [&](const form::Param &param) { return param.name == name.text; });
  if (found == form.params.end() || found->isTensor()) {
    const StringRef near = nearestWord(name.text, scalars);
    return report(name.range, fmt::format("form {} has no scalar param '{}'{}", form.name, name.text,
                                          !near.empty()     ? fmt::format("; did you mean '{}'?", near.str())
                                          : scalars.empty() ? "; it has none"
                                                            : "; it has " + alternatives(scalars)));
  }
  const bool isInteger = found->element == form::Element::I32;
  if (isInteger && !number.isInteger)
    return report(number.range, fmt::format("'{}' is an i32; it takes an integer, not {}", name.text, number.value));
  const double low = isInteger ? double(found->range.low) : found->realRange.low,
               high = isInteger ? double(found->range.high) : found->realRange.high;
  if (number.value < low || number.value > high)
    return report(number.range,
                  fmt::format("'{}' is in {}, and {} is not", name.text, rangeText(*found), number.value));
  return form::Bound{unsigned(found - form.params.begin()), isInteger ? int64_t(number.value) : 0,
                     isInteger ? 0 : double(float(number.value))};
}

static bool isSame(const form::Use &a, const form::Use &b) {
  return a.form == b.form && llvm::equal(a.bound, b.bound, [](const form::Bound &x, const form::Bound &y) {
           return x.param == y.param && x.integer == y.integer && x.real == y.real;
         });
}

std::shared_ptr<const form::Use> FormAxis::use(const ast::Plain &plain, Diagnostics &diags) {
  const FileForm *const written = find(plain.word);
  if (!written->form)
    return nullptr;
  const form::Form &form = *written->form;
  if (plain.hasArguments && plain.values.empty()) {
    const auto scalar = find_if(form.params, [](const form::Param &param) { return !param.isTensor(); });
    const bool isItsName = scalar != form.params.end() && plain.arguments[0].text == scalar->name;
    diags.error(plain.range, scalar == form.params.end()
                                 ? fmt::format("form {} has no scalar param to bind", plain.word)
                                 : fmt::format("say {}: {}({} = {})", isItsName ? "what it is" : "which param it is",
                                               plain.word, scalar->name, isItsName ? "..." : plain.arguments[0].text));
    return nullptr;
  }
  auto use = std::make_shared<form::Use>();
  use->form = written->form;
  for (const auto &[name, number] : zip(plain.arguments, plain.values)) {
    const std::optional<form::Bound> bound = this->bound(form, name, number, diags);
    if (!bound)
      return nullptr;
    if (use->boundOf(bound->param)) {
      diags.error(name.range, fmt::format("'{}' is bound twice; take one out", name.text));
      return nullptr;
    }
    use->bound.push_back(*bound);
  }
  llvm::sort(use->bound, [](const form::Bound &a, const form::Bound &b) { return a.param < b.param; });
  for (const auto &known : uses)
    if (isSame(*known, *use))
      return known;
  if (const unsigned bytes = layoutOf(*use).bytes; bytes > form::kMostArgumentBytes) {
    diags.error(plain.range, fmt::format("the params of form {} take {} B in a kernel's argument; {} B is the most. A "
                                         "scalar takes 16 B, a tensor 8 B and 8 B for each extent",
                                         form.name, bytes, form::kMostArgumentBytes));
    return nullptr;
  }
  if (uses.size() == kMostForms) {
    diags.error(plain.range, fmt::format("a kernel has at most {} forms", kMostForms));
    return nullptr;
  }
  uses.push_back(std::move(use));
  return uses.back();
}

unsigned FormAxis::numberOf(const form::Use &use) const {
  const auto found = find_if(uses, [&](const auto &known) { return known.get() == &use; });
  return kFirstFormNumber + unsigned(found - uses.begin());
}

std::vector<unsigned> FormAxis::numbersOf(StringRef name) const {
  std::vector<unsigned> numbers;
  for (const auto &use : uses)
    if (use->form->name == name)
      numbers.push_back(numberOf(*use));
  return numbers;
}

} // namespace fagen
