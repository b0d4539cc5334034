// fagen: the form's part of the kernels' argument: its params as <fagen/device/form.h> lays them out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forms/args.h"

#include "error.h"

#include <cstring>

namespace fagen {

void packForm(const fagen_form &form, const Problem &problem, unsigned char *bytes) {
  memset(bytes, 0, form.bytes);
  for (uint32_t i = 0; i < form.param_count; ++i) {
    const fagen_form_param &param = paramAt(form, i);
    const FormArg &arg = problem.form.args[i];
    if (isBound(param))
      continue;
    unsigned char *place = bytes + param.offset;
    memcpy(place, &arg.data, sizeof(arg.data));
    place += sizeof(arg.data);
    if (param.rank) {
      memcpy(place, arg.stride, param.rank * sizeof(arg.stride[0]));
    } else if (param.element == FAGEN_ELEMENT_I32) {
      const auto number = int32_t(arg.number);
      memcpy(place, &number, sizeof(number));
    } else {
      const auto number = float(arg.number);
      memcpy(place, &number, sizeof(number));
    }
  }
}

fagen_status fillForm(const fagen_form &form, std::span<const fagen_arg> args, unsigned char *bytes) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].name)
      return fail(FAGEN_INVALID, "form %s: args[%zu].name is NULL", form.name, i);
    const std::optional<uint32_t> index = findParam(form, args[i].name, uint32_t(i));
    if (!index)
      return failUnknown(form, args[i].name);
    const fagen_form_param &param = paramAt(form, *index);
    if (!args[i].data) // the problem's, or a number
      continue;
    if (isBound(param))
      return fail(FAGEN_INVALID,
                  "form %s: arg '%s' has data, and the row is for one value of it: give it data in "
                  "fagen_problem, too",
                  form.name, param.name);
    if (fagen_status status = checkData(form, param, args[i].data))
      return status;
    memcpy(bytes + param.offset, &args[i].data, sizeof(args[i].data));
  }
  for (uint32_t i = 0; i < form.param_count; ++i) {
    const fagen_form_param &param = paramAt(form, i);
    const void *data = nullptr;
    if (param.rank)
      memcpy(&data, bytes + param.offset, sizeof(data));
    if (param.rank && !data)
      return fail(FAGEN_INVALID, "form %s: arg '%s' has no data; give it in fagen_tensors.args or fagen_problem.args",
                  form.name, param.name);
  }
  return FAGEN_OK;
}

} // namespace fagen
