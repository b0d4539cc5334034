// fagen: which keys a problem's queries see, as people name it: none, causal, or a form of the kernel sets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/cases/form_inputs.h"
#include "manifest.h"

namespace fagen::lab {

struct MaskChoice {
  Mask mask = Mask::None;
  FormPtr form; ///< in the mask's place; null: none
};

/// none, causal, or a form of the sets: its text, else its name, then the one with the fewest bound params. UserError
/// with what there is.
MaskChoice chooseMask(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::string &text);

/// The type of that name; for an empty one f16, or the type that the sets have if that is another.
DType chooseDType(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::string &name);

/// parseCase(), but where the text has no dtype= it is that of chooseDType().
Case caseFor(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::string &text,
             const std::string &dtype = "");

/// A problem to explain: "1,16,16,4096,4096,128 mask=causal", or a shape whose mask or form and dtype come apart.
Case explainedCase(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::string &text,
                   const std::string &mask, const std::string &dtype, const std::vector<std::string> &numbers);

/// A form of the sets by its text without blanks; null where there is none.
FormPtr formOfText(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::string &text);

/// What a row computes, but for the shape: element type, mask or form, head dims, LSE where it writes it.
Case caseOfRow(const KernelSet &set, const fagen_row &row);

/// Numbers that stand for what models have, for those of the form's scalars that are not given: 1024 and 50, within
/// the param's range.
std::map<std::string, double> usualNumbers(const FormDefinition &form, std::map<std::string, double> given);

/// The problem of a shape as it is timed: with usual numbers, and arguments of the seed.
Case timedCase(const Shape &shape, Case c, const FormPtr &form, const std::map<std::string, double> &numbers,
               uint64_t seed);

/// Each "name=number" once. UserError else.
std::map<std::string, double> parseNumbers(const std::vector<std::string> &texts);

} // namespace fagen::lab
