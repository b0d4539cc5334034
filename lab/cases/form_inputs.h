// fagen: the arguments of a case's form: values from a seed, and how its tensors lie in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "cases.h"
#include "form.h"

namespace fagen::lab {

/// A tensor [extents...] in memory: a guard, its elements and what lies between them, a guard.
struct FormMemory {
  std::string name;
  std::vector<int64_t> extents, strides; ///< in elements; of bits in words, the last one 1
  unsigned elementBytes = 4;             ///< of a word where elements are bits
  int64_t baseBytes = 0;                 ///< of the first element in the image
  int64_t spanBytes = 0;                 ///< from the first element to one past the last
  std::vector<unsigned char> image;
  std::vector<unsigned char> used; ///< for each element of the span whether it is the tensor's
};

/// All arguments of one case. They do not move.
struct FormInputs {
  FormPtr form;
  FormArguments arguments;         ///< what the reference reads
  std::vector<FormMemory> tensors; ///< of tensor params; and of scalars where the case has them on the device
  std::vector<fagen_arg> args;     ///< of a problem: numbers and strides, no data but a stand-in for device scalars

  FormInputs() = default;
  FormInputs(const FormInputs &) = delete;
  FormInputs &operator=(const FormInputs &) = delete;
};

/// The case with the form's arguments, which its seed, layout and own numbers give. UserError where one of its numbers
/// is not of the form or not in range. The form may be null: then nothing changes.
Case withForm(Case c, const FormPtr &form, uint64_t seed);

/// A form's text as cases have it: without blanks.
std::string withoutBlanks(const std::string &text);

} // namespace fagen::lab
