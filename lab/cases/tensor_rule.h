// fagen: the values of a form's tensor as a case gives them: a file of numbers, or a rule in a word.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   file:PATH             numbers with blanks or line ends between them, the last index fastest
//   all:X                 each element
//   ramp:X:STEP           X, X + STEP, X + 2 STEP, ... along the last index
//   ramp:X:STEP:STEP...   the same along all of them, a step for each index, the first index first
//   runs:X:LENGTH:STEP    LENGTH elements of X along the last index, as many of X + STEP, ...
//   runs:X:LENGTH:STEP:LATER
//                         the same, and each row of the last index is LATER elements later than the row before it
//   spread:LOW:HIGH       drawn by the seed between these two, both of them included
//   spread:LOW:HIGH:COLUMNS, spread:LOW:HIGH:ROWS:COLUMNS
//                         the same for runs of the last index, or blocks of the last two, that share a number
#pragma once

#include "form.h"

#include <string>
#include <string_view>

namespace fagen::lab {

/// Whether a case's value is one of these, and not a number.
bool isTensorRule(std::string_view text);

/// The rules there are, for messages.
std::string tensorRules();

/// Puts values into a tensor whose extents are set, the form's `index`-th. UserError where the rule cannot be read, or
/// gives what the param does not take: numbers out of its range, that fall where it ascends, that its type does not
/// hold.
void fillByRule(const std::string &rule, const FormParam &param, uint64_t seed, uint32_t index, FormTensor &tensor);

} // namespace fagen::lab
