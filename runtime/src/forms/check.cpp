// fagen: the rules of forms in tables.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forms/args.h"

#include <cstring>

namespace fagen {
namespace {

/// Bytes in the kernels' argument.
uint32_t bytesOf(const fagen_form_param &param) { return param.rank ? 8 + 8 * param.rank : 16; }

const char *checkExtents(const fagen_form &form, const fagen_form_param &param) {
  for (uint32_t i = 0; i < param.rank; ++i)
    if (const char *problem =
            checkProgram(param.extents[i].ops, param.extents[i].size, FAGEN_VAR_FORM_0 + uint64_t(form.param_count)))
      return problem;
  return nullptr;
}

const char *checkParam(const fagen_form &form, const fagen_form_param &param) {
  if (!param.name)
    return "a param has no name";
  if (param.element < FAGEN_ELEMENT_BIT || param.element > FAGEN_ELEMENT_F32 || param.rank > std::size(param.extents))
    return "a param has an unknown element, or more than 4 extents";
  if (param.rank == 0 && param.element != FAGEN_ELEMENT_I32 && param.element != FAGEN_ELEMENT_F32)
    return "a scalar is neither i32 nor f32";
  if (!(param.low <= param.high))
    return "a param has an empty range";
  if (isBound(param))
    return param.rank                                              ? "a tensor is bound"
           : param.bound >= param.low && param.bound <= param.high ? nullptr
                                                                   : "a bound value is out of its range";
  if (param.offset % 8 != 0 || param.offset > form.bytes || bytesOf(param) > form.bytes - param.offset)
    return "a param is not at a multiple of 8 within the form's bytes";
  return checkExtents(form, param);
}

bool overlap(const fagen_form_param &a, const fagen_form_param &b) {
  return !isBound(a) && !isBound(b) && a.offset < b.offset + bytesOf(b) && b.offset < a.offset + bytesOf(a);
}

/// Whether no problem could tell them apart.
bool isSame(const fagen_form &a, const fagen_form &b) {
  if (a.hash != b.hash || strcmp(a.name, b.name) != 0 || a.param_count != b.param_count)
    return false;
  for (uint32_t i = 0; i < a.param_count; ++i) {
    const fagen_form_param &p = paramAt(a, i), &q = paramAt(b, i);
    if (isBound(p) != isBound(q) || (isBound(p) && p.bound != q.bound))
      return false;
  }
  return true;
}

} // namespace

const char *checkForm(const fagen_table &table, uint32_t index) {
  const fagen_form &form = formAt(table, index);
  if (!form.name || !form.text)
    return "name or text is NULL";
  if (form.param_count > FAGEN_MAX_FORM_PARAMS || form.bytes > FAGEN_MAX_FORM_BYTES)
    return "has more than 32 params, or more than 192 bytes";
  if (form.param_count && form.param_size < sizeof(fagen_form_param))
    return "has params of fewer bytes than this library needs";
  for (uint32_t i = 0; i < form.param_count; ++i) {
    const fagen_form_param &param = paramAt(form, i);
    if (const char *problem = checkParam(form, param))
      return problem;
    for (uint32_t other = 0; other < i; ++other)
      if (strcmp(paramAt(form, other).name, param.name) == 0 || overlap(paramAt(form, other), param))
        return "two params have one name or one place";
  }
  for (uint32_t other = 0; other < index; ++other)
    if (isSame(formAt(table, other), form))
      return "stands in the table twice";
  return nullptr;
}

} // namespace fagen
