// fagen: the args of a form: found by their names, checked, read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "forms.h"

namespace fagen {

/// Each param once and nothing else, kinds, ranges, strides; then `problem.form.args` has them. INVALID, MISALIGNED.
fagen_status readArgs(const fagen_form &form, std::span<const fagen_arg> args, Problem &problem);

/// The arg of this name, looked for at `guess` first; null: there is none.
const fagen_arg *findArg(std::span<const fagen_arg> args, const char *name, uint32_t guess);
std::optional<uint32_t> findParam(const fagen_form &form, const char *name, uint32_t guess);

/// What the data of a param must be aligned to.
uint32_t alignmentOf(const fagen_form_param &param);
/// Fails unless the data of an arg is aligned.
fagen_status checkData(const fagen_form &form, const fagen_form_param &param, const void *data);
/// Fails: the form has no such param.
[[gnu::cold]] fagen_status failUnknown(const fagen_form &form, const char *name);

} // namespace fagen
