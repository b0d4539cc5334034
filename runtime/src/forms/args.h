// fagen: the args of a form: found by their names, checked, read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "forms.h"

#include <algorithm>
#include <optional>

namespace fagen {

/// What programs over sizes and params are computed from, and which params are unknown: those on the device.
struct FormValues {
  int64_t values[FAGEN_VAR_FORM_0 + FAGEN_MAX_FORM_PARAMS] = {};
  uint32_t unknown = 0; ///< a bit for each param

  explicit FormValues(const Variables &variables) {
    std::copy(std::begin(variables.values), std::end(variables.values), values);
  }

  void add(uint32_t index, const fagen_form_param &param, const FormArg &arg) {
    values[FAGEN_VAR_FORM_0 + index] = param.element == FAGEN_ELEMENT_I32 ? int64_t(arg.number) : 0;
    unknown |= uint32_t(arg.data != nullptr) << index;
  }

  /// Of a problem whose args are read.
  void addAll(const fagen_form &form, const Problem &problem) {
    for (uint32_t i = 0; i < form.param_count; ++i)
      add(i, paramAt(form, i), problem.form.args[i]);
  }

  /// The param that keeps a program's value from being known.
  std::optional<uint32_t> unknownParam(std::span<const fagen_op> program) const {
    for (const fagen_op &op : program)
      if (op.kind == FAGEN_OP_VARIABLE && op.value >= FAGEN_VAR_FORM_0 &&
          (unknown >> (op.value - FAGEN_VAR_FORM_0) & 1))
        return uint32_t(op.value - FAGEN_VAR_FORM_0);
    return std::nullopt;
  }
};

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
