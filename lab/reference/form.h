// fagen: forms in f64: what a score becomes, whether a query sees a key, what joins a row's sum; and how far f32 may be
// from it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An interpreter of postfix programs, as fagen/Form/Postfix.h has them. It shares nothing with what kernels are made
// by. Names are resolved once for a problem; what runs for each element is a list of numbers, slots and operators.
#pragma once

#include "lab/cases/form.h"

#include <array>
#include <memory>

namespace fagen::lab {

struct FormElement {
  double score = 0; ///< scale * q . k
  int64_t batch = 0, head = 0, query = 0, key = 0;
};

/// A value and how far f32 may be from it, to first order: `rounding`, `tanh` times what a tanh is off, and `score`
/// times what the element's own score is off. An infinite rounding: a comparison is too close to say.
struct FormValue {
  double value = 0, rounding = 0, tanh = 0, score = 0;
};

/// One instruction of a program.
struct FormWord {
  enum Kind : uint8_t { Number, Place, Param, Let, Read, Operator } kind = Number;
  bool isReal = false;   ///< what it gives is f32; of an operator, what it takes is
  uint16_t index = 0;    ///< of a place, a let, a tensor, an operator
  uint16_t operands = 0; ///< that it takes from the stack
  double number = 0;
  std::string name = {}; ///< of a param; in messages
  bool isOfKey = false;  ///< what it gives depends on the key
};
using FormCode = std::vector<FormWord>;

/// Programs whose params are numbers and tensors of one problem. Each thread has its own copy.
class BoundForm {
public:
  bool hasSink() const { return !sinkCode.empty(); }

  double score(const FormElement &element);
  bool mask(const FormElement &element);
  /// The element's key says nothing.
  std::optional<double> sink(const FormElement &element);

  /// The same with errors, given how far the element's own score may be off by rounding in f32.
  FormValue scoreWithError(const FormElement &element, double scoreRounding);
  FormValue maskWithError(const FormElement &element);
  FormValue sinkWithError(const FormElement &element);

private:
  friend class FormProgram;
  struct Let {
    FormCode code;
    bool ofScore = false, ofMask = false, ofSink = false; ///< which programs need it
  };
  using Needs = bool Let::*;

  void setPlaces(const FormElement &element);
  template <typename Value> Value run(const FormCode &code, Needs needs, const Value &score);
  template <typename Value> Value evaluate(const FormCode &code, const Value &score, const std::vector<Value> &lets);

  Shape shape;
  std::vector<Let> lets;
  FormCode scoreCode, maskCode, sinkCode;
  std::vector<const FormTensor *> tensors; ///< of the arguments, which outlive this
  std::array<double, 12> places{};
  std::vector<double> numbers; ///< of lets; scratch
  std::vector<FormValue> values;
  std::vector<double> numberStack;
  std::vector<FormValue> valueStack;
};

class FormProgram {
public:
  /// Throws a UserError where a text is no program.
  explicit FormProgram(const FormTexts &texts);

  /// For one problem, and arguments that outlive the result. UserError where one is missing.
  BoundForm bind(const Shape &shape, const FormArguments &arguments) const;

private:
  BoundForm unbound;
};

} // namespace fagen::lab
