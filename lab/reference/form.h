// fagen: forms in f64: what a score becomes, whether a query sees a key, what joins a row's sum; and how far f32 may be
// from it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads postfix programs, as fagen/Form/Postfix.h has them, and resolves their names once for a problem. What then runs
// for each element is lab/kernels/form_program.h. It shares nothing with what kernels are made by.
#pragma once

#include "lab/cases/form.h"
#include "lab/kernels/form_program.h"

#include <memory>

namespace fagen::lab {

/// Programs with the numbers and tensors of one problem.
struct FormData {
  std::vector<FormWord> words;
  std::vector<FormLet> lets;
  std::vector<FormTensorView> tensors; ///< their values are the arguments', which outlive this
  int depth = 1;                       ///< values on a program's stack, at most
  FormView view{};                     ///< of the above
};

/// Programs that are ready to run. Each thread has its own copy.
class BoundForm {
public:
  explicit BoundForm(std::shared_ptr<const FormData> data);

  const FormData &programs() const { return *data; }
  bool hasSink() const { return data->view.sink.size != 0; }

  double score(const FormElement &element);
  bool mask(const FormElement &element);
  /// The element's key says nothing.
  std::optional<double> sink(const FormElement &element);
  /// What V is multiplied by; the element's query and key say nothing.
  double vScale(const FormElement &element);

  /// The same with errors, given how far the element's own score may be off by rounding in f32.
  FormValue scoreWithError(const FormElement &element, double scoreRounding);
  FormValue maskWithError(const FormElement &element);
  FormValue sinkWithError(const FormElement &element);

private:
  FormRun<double> numbers() { return {data->view, numberLets.data(), numberStack.data()}; }
  FormRun<FormValue> values() { return {data->view, valueLets.data(), valueStack.data()}; }

  std::shared_ptr<const FormData> data;
  std::vector<double> numberLets, numberStack; ///< scratch
  std::vector<FormValue> valueLets, valueStack;
};

class FormProgram {
public:
  /// Throws a UserError where a text is no program.
  explicit FormProgram(const FormTexts &texts);

  /// For one problem, and arguments that outlive the result. UserError where one is missing.
  BoundForm bind(const Shape &shape, const FormArguments &arguments) const;

private:
  FormData unbound;
  std::vector<std::string> names; ///< of each word: its param, or nothing
};

} // namespace fagen::lab
