// fagen: the form of a call: numbers and tensors by the names of its params.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shim.h"

#include <fagen/table.h>

#include <string>
#include <vector>

namespace fagen::torch {

/// What calls of a form have in common: the names of the args, and which of them are tensors.
struct FormSignature {
  struct Arg {
    std::string name;
    bool isTensor;
  };
  std::string form;
  std::vector<Arg> args;
};

/// The number that stands for a signature in calls of the operators, or -1 when there are too many.
int64_t addSignature(FormSignature signature);

/// Of one call. Without a form there is no signature.
struct FormCall {
  const FormSignature *signature = nullptr;
  int64_t number = 0; ///< of the signature
  std::vector<double> numbers;
  std::vector<View> tensors;
};

/// Fails where the number is no signature's, or there are other numbers and tensors than it says.
FormCall formCallOf(int64_t signature, std::vector<double> numbers, std::vector<View> tensors);

/// The args as the C ABI has them. Tensors are checked against the first of the tables' forms that has this name and
/// these params: types, devices, shapes. A size of 1 is repeated, and so are extents in front that a tensor lacks. What
/// else is wrong fagen_query says.
std::vector<fagen_arg> describeArgs(const FormCall &form, const std::vector<const fagen_table *> &tables,
                                    const fagen_problem &problem, const View &q);

/// The name of a tensor of the form's, by its place among them, and the bytes of one of its elements.
const char *nameOfTensor(const FormCall &form, size_t place);
int64_t bytesOfElement(const View &tensor);

/// All that decides which kernel computes the form and how: after the call's own key.
void addToKey(const FormCall &form, std::vector<int64_t> &key);

/// Puts a call's pointers into the args of the problem that describeArgs made, in their order.
void putPointers(const FormCall &form, std::vector<fagen_arg> &args);

} // namespace fagen::torch
