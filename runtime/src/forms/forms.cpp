// fagen: which of a table's forms a problem names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forms/forms.h"

#include "error.h"
#include "forms/args.h"
#include "words.h"

#include <algorithm>
#include <cstring>

namespace fagen {
namespace {

uint32_t boundCount(const fagen_form &form) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < form.param_count; ++i)
    count += isBound(paramAt(form, i));
  return count;
}

bool isNamed(const fagen_form &form, const char *name) { return strcmp(form.name, name) == 0; }

/// Calls it with each form of the tables until it gives true; whether it did.
template <typename Visit> bool anyForm(Tables tables, Visit visit) {
  for (const fagen_table *table : tables)
    for (uint32_t i = 0; i < formCount(*table); ++i)
      if (visit(formAt(*table, i)))
        return true;
  return false;
}

fagen_status failNoForm(Tables tables, const char *name) {
  char buffer[1024];
  Text text(buffer, sizeof(buffer));
  const char *before = "they have ";
  anyForm(tables, [&](const fagen_form &form) {
    // Each name once: where it stands first.
    const fagen_form *first = &form;
    anyForm(tables, [&](const fagen_form &other) {
      first = &other;
      return isNamed(other, form.name);
    });
    if (first == &form) {
      text.add("%s%s", before, form.name);
      before = ", ";
    }
    return false;
  });
  return fail(FAGEN_UNSUPPORTED, "no table has a form '%s'; %s", name, text.length() ? buffer : "they have none");
}

} // namespace

bool isOf(const fagen_form &form, const Problem &problem) {
  return form.hash == problem.form.of->hash && isNamed(form, problem.form.name);
}

std::optional<uint32_t> firstOtherBound(const fagen_form &form, const Problem &problem) {
  for (uint32_t i = 0; i < form.param_count; ++i) {
    const fagen_form_param &param = paramAt(form, i);
    const FormArg &arg = problem.form.args[i];
    const bool isSame =
        param.element == FAGEN_ELEMENT_I32 ? arg.number == param.bound : float(arg.number) == float(param.bound);
    if (isBound(param) && (arg.data || !isSame))
      return i;
  }
  return std::nullopt;
}

MaskNumbers formNumbers(const fagen_table &table, const Problem &problem) {
  MaskNumbers masks;
  for (uint32_t i = 0; i < formCount(table); ++i) {
    const fagen_form &form = formAt(table, i);
    if (isOf(form, problem) && !firstOtherBound(form, problem))
      masks.numbers[masks.count++] = uint8_t(FAGEN_MASK_FORM_0 + i);
  }
  std::stable_sort(masks.numbers, masks.numbers + masks.count,
                   [&](uint8_t a, uint8_t b) { return boundCount(*formOf(table, a)) > boundCount(*formOf(table, b)); });
  return masks;
}

fagen_status readForm(Tables tables, Problem &problem) {
  const fagen_form *first = nullptr;
  const bool isRead = anyForm(tables, [&](const fagen_form &form) {
    if (!isNamed(form, problem.form.name) || (first && form.hash == first->hash))
      return false;
    first = first ? first : &form;
    return readArgs(form, problem.form.given, problem) == FAGEN_OK;
  });
  if (isRead)
    return FAGEN_OK;
  // Once more, for its words: another form of this name may have been asked since.
  return first ? readArgs(*first, problem.form.given, problem) : failNoForm(tables, problem.form.name);
}

} // namespace fagen
