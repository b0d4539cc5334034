// fagen: forms of tables: which of them a problem names, and what kernels get of its params.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../problem.h"

#include <span>

namespace fagen {

using Tables = std::span<const fagen_table *const>;

/// How many forms a table has; a table of before there were forms has none.
inline uint32_t formCount(const fagen_table &table) {
  return table.struct_size >= sizeof(fagen_table) ? table.form_count : 0;
}
/// Form i of a table and param i of a form, which may be larger than this library's.
inline const fagen_form &formAt(const fagen_table &table, uint32_t i) {
  return *reinterpret_cast<const fagen_form *>(reinterpret_cast<const char *>(table.forms) +
                                               size_t(i) * table.form_size);
}
inline const fagen_form_param &paramAt(const fagen_form &form, uint32_t i) {
  return *reinterpret_cast<const fagen_form_param *>(reinterpret_cast<const char *>(form.params) +
                                                     size_t(i) * form.param_size);
}
inline bool isBound(const fagen_form_param &param) { return param.offset == FAGEN_PARAM_BOUND; }

/// The form of a row or of a number of a mask; null where that is none or causal.
inline const fagen_form *formOf(const fagen_table &table, uint32_t mask) {
  return mask < FAGEN_MASK_FORM_0 ? nullptr : &formAt(table, mask - FAGEN_MASK_FORM_0);
}

/// Reads the args of a problem that names a form: by the first of the tables' forms of this name that takes them.
/// INVALID with what the first of them says of the args, UNSUPPORTED where no table has such a form.
[[gnu::cold]] fagen_status readForm(Tables tables, Problem &problem);

/// The numbers that a problem's mask has in a table: one, or, of a form, one for each way in which the table's spec
/// uses it that this problem agrees with; those with more bound values first.
struct MaskNumbers {
  uint32_t count = 0;
  uint8_t numbers[FAGEN_MAX_FORMS];

  const uint8_t *begin() const { return numbers; }
  const uint8_t *end() const { return numbers + count; }
};
MaskNumbers formNumbers(const fagen_table &table, const Problem &problem);
inline MaskNumbers masksOf(const fagen_table &table, const Problem &problem) {
  if (problem.form.name)
    return formNumbers(table, problem);
  MaskNumbers masks;
  masks.count = 1;
  masks.numbers[0] = uint8_t(problem.variables.values[FAGEN_VAR_MASK]);
  return masks;
}

/// The problem's key with the number that its mask has in a table.
inline uint64_t keyWith(const Problem &problem, uint32_t mask) {
  return problem.key | fagen_problem_key(0, 0, mask, 0, 0);
}
/// The problem's values with that number, and of a device with so many SMs.
inline Variables variablesWith(const Problem &problem, uint32_t mask, uint32_t sms) {
  Variables variables = problem.variables;
  variables.values[FAGEN_VAR_MASK] = mask;
  variables.values[FAGEN_VAR_SMS] = sms;
  return variables;
}

/// Whether the problem means this form, its bound values apart.
bool isOf(const fagen_form &form, const Problem &problem);
/// A bound param that the problem has another value of; none: the row computes the problem. For forms that it means.
std::optional<uint32_t> firstOtherBound(const fagen_form &form, const Problem &problem);

/// Writes the form's part of the kernels' argument: numbers, strides, and the pointers that the problem has.
void packForm(const fagen_form &form, const Problem &problem, unsigned char *bytes);

/// Puts a run's pointers into it. INVALID, MISALIGNED.
fagen_status fillForm(const fagen_form &form, std::span<const fagen_arg> args, unsigned char *bytes);

/// How many elements lie from a tensor's first to its last, of bits: words; 0 where it has none. For a problem whose
/// args are read.
int64_t spanOf(const fagen_form &form, uint32_t param, const Problem &problem);

/// What is wrong with a table's form, or null.
const char *checkForm(const fagen_table &table, uint32_t index);

} // namespace fagen
