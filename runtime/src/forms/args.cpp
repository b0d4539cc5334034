// fagen: the args of a form: found by their names, checked, read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forms/args.h"

#include "error.h"
#include "words.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

namespace fagen {
namespace {

constexpr int64_t kMaxBytes = int64_t(1) << 52; // of a tensor, gaps included
constexpr uint32_t kWordBits = 32;

const char *elementName(uint32_t element) {
  const char *const names[] = {"?", "bit", "u8", "i32", "f16", "bf16", "f32"};
  return element < std::size(names) ? names[element] : "?";
}

/// "cap (f32), window (i32), bias (bf16, 2 extents)"
void addParams(Text &text, const fagen_form &form) {
  for (uint32_t i = 0; i < form.param_count; ++i) {
    const fagen_form_param &param = paramAt(form, i);
    text.add("%s%s (%s", i ? ", " : "", param.name, elementName(param.element));
    if (param.rank)
      text.add(", %u extent%s", param.rank, param.rank == 1 ? "" : "s");
    text.add(")");
  }
}

/// "form gemma2: <what>; its params are cap (f32), window (i32)"
[[gnu::cold]] fagen_status failOfParams(const fagen_form &form, const char *what, const char *name) {
  char buffer[1024];
  Text params(buffer, sizeof(buffer));
  addParams(params, form);
  return form.param_count ? fail(FAGEN_INVALID, "form %s: %s '%s'; its params are %s", form.name, what, name, buffer)
                          : fail(FAGEN_INVALID, "form %s: %s '%s'; it has no params", form.name, what, name);
}

fagen_status checkNames(const fagen_form &form, std::span<const fagen_arg> args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const char *name = args[i].name;
    if (!name)
      return fail(FAGEN_INVALID, "form %s: args[%zu].name is NULL", form.name, i);
    if (!findParam(form, name, uint32_t(i)))
      return failUnknown(form, name);
    if (args[i].reserved)
      return fail(FAGEN_INVALID, "form %s: reserved of arg '%s' is %u; it must be 0", form.name, name,
                  args[i].reserved);
    if (findArg(args.first(i), name, 0))
      return fail(FAGEN_INVALID, "form %s: arg '%s' is given twice", form.name, name);
  }
  return FAGEN_OK;
}

fagen_status failRange(const fagen_form &form, const fagen_form_param &param, const fagen_arg &given) {
  char buffer[192];
  Text text(buffer, sizeof(buffer));
  if (param.element == FAGEN_ELEMENT_I32)
    text.add("%lld", (long long)given.i32); // all digits: they may be what is wrong
  else
    addNumber(text, given.f32);
  text.add("; it must be ");
  const bool hasLow = std::isfinite(param.low), hasHigh = std::isfinite(param.high);
  if (hasLow)
    addNumber(text, param.low);
  if (hasLow && hasHigh)
    text.add(" to ");
  if (hasHigh)
    addNumber(text, param.high);
  text.add(hasLow && hasHigh ? "" : hasLow ? " or more" : hasHigh ? " or less" : "finite");
  return fail(FAGEN_INVALID, "form %s: arg '%s' is %s", form.name, param.name, buffer);
}

fagen_status readScalar(const fagen_form &form, const fagen_form_param &param, const fagen_arg &given, FormArg &arg) {
  if (given.data) {
    arg.data = given.data;
    return checkData(form, param, given.data);
  }
  const bool isInteger = param.element == FAGEN_ELEMENT_I32;
  // i32 in double: whatever does not fit in 53 bits is out of range, rounded or not.
  arg.number = isInteger ? double(given.i32) : given.f32;
  const double low = std::max(param.low, isInteger ? INT32_MIN : -double(FLT_MAX));
  const double high = std::min(param.high, isInteger ? INT32_MAX : double(FLT_MAX));
  return arg.number >= low && arg.number <= high ? FAGEN_OK : failRange(form, param, given);
}

/// What extents are computed from.
struct ExtentValues : FormValues {
  using FormValues::FormValues;

  /// The param that keeps an extent from being known.
  std::optional<uint32_t> unknownParam(const fagen_form_param &param, uint32_t extent) const {
    return FormValues::unknownParam({param.extents[extent].ops, param.extents[extent].size});
  }

  std::optional<int64_t> extent(const fagen_form_param &param, uint32_t extent) const {
    if (unknownParam(param, extent))
      return std::nullopt;
    const auto &program = param.extents[extent];
    return std::max<int64_t>(0, evaluateWith(program.ops, program.size, values).value_or(0));
  }
};

/// Reads the strides of one tensor.
class TensorReader {
public:
  TensorReader(const fagen_form &form, const fagen_form_param &param, const ExtentValues &values, bool isExplicit)
      : form(form), param(param), values(values), isExplicit(isExplicit) {}

  fagen_status read(const fagen_arg &given, FormArg &arg) {
    for (uint32_t i = param.rank; i < std::size(given.stride); ++i)
      if (given.stride[i])
        return fail(FAGEN_INVALID, "form %s: stride[%u] of arg '%s' is %lld; the param has %u extent%s", form.name, i,
                    param.name, (long long)given.stride[i], param.rank, param.rank == 1 ? "" : "s");
    const bool isPacked =
        !isExplicit && std::all_of(given.stride, given.stride + param.rank, [](int64_t stride) { return stride == 0; });
    arg.data = given.data || !isEmpty() ? given.data : kNothing;
    fagen_status status = isPacked ? pack(arg) : take(given, arg);
    if (isBits())
      arg.stride[param.rank - 1] = 1;
    return status || !given.data ? status : checkData(form, param, given.data);
  }

private:
  /// In the place of a tensor without elements, which is not read.
  static inline const void *const kNothing = reinterpret_cast<const void *>(uintptr_t(16));

  bool isEmpty() const {
    for (uint32_t i = 0; i < param.rank; ++i)
      if (values.extent(param, i) == 0)
        return true;
    return false;
  }
  bool isBits() const { return param.element == FAGEN_ELEMENT_BIT; }

  fagen_status pack(FormArg &arg) {
    int64_t next = 1;
    for (uint32_t i = param.rank; i-- > 0;) {
      arg.stride[i] = next;
      if (i == 0)
        break;
      const std::optional<int64_t> extent = values.extent(param, i);
      if (!extent)
        return fail(FAGEN_INVALID,
                    "form %s: arg '%s' has no strides, and its extent %u is the param '%s', which is on the device: "
                    "give its strides",
                    form.name, param.name, i, paramAt(form, *values.unknownParam(param, i)).name);
      const bool isBitRow = isBits() && i == param.rank - 1;
      const int64_t length = isBitRow ? (*extent + kWordBits - 1) / kWordBits : *extent;
      if (__builtin_mul_overflow(next, std::max<int64_t>(length, 1), &next))
        return failReach();
    }
    return checkReach(arg);
  }

  fagen_status take(const fagen_arg &given, FormArg &arg) {
    for (uint32_t i = 0; i < param.rank; ++i) {
      const std::optional<int64_t> extent = values.extent(param, i);
      arg.stride[i] = extent && *extent <= 1 ? 0 : given.stride[i];
      if (arg.stride[i] < 0)
        return fail(FAGEN_INVALID, "form %s: stride[%u] of arg '%s' is %lld; it must not be negative", form.name, i,
                    param.name, (long long)given.stride[i]);
    }
    const uint32_t last = param.rank - 1;
    if (isBits() && given.stride[last] != 1 && values.extent(param, last).value_or(2) > 1)
      return fail(FAGEN_INVALID, "form %s: stride[%u] of arg '%s' is %lld; the last extent of bits is dense: 1",
                  form.name, last, param.name, (long long)given.stride[last]);
    return checkReach(arg);
  }

  fagen_status checkReach(const FormArg &arg) {
    int64_t reach = 0;
    for (uint32_t i = 0; i < param.rank; ++i) {
      const int64_t extent = values.extent(param, i).value_or(1);
      int64_t step;
      if (__builtin_mul_overflow(int64_t(arg.stride[i]), std::max<int64_t>(extent - 1, 0), &step) ||
          __builtin_add_overflow(reach, step, &reach) || reach > kMaxBytes / alignmentOf(param))
        return failReach();
    }
    return FAGEN_OK;
  }

  fagen_status failReach() {
    return fail(FAGEN_INVALID, "form %s: the strides of arg '%s' reach beyond 2^52 bytes", form.name, param.name);
  }

  const fagen_form &form;
  const fagen_form_param &param;
  const ExtentValues &values;
  bool isExplicit; // no stride is absent
};

fagen_status checkKind(const fagen_form &form, const fagen_form_param &param, const fagen_arg &given) {
  const uint32_t kind = param.rank                           ? FAGEN_ARG_TENSOR
                        : param.element == FAGEN_ELEMENT_I32 ? FAGEN_ARG_I32
                                                             : FAGEN_ARG_F32;
  const char *const names[] = {"?", "FAGEN_ARG_I32", "FAGEN_ARG_F32", "FAGEN_ARG_TENSOR"};
  return given.kind == kind ? FAGEN_OK
                            : fail(FAGEN_INVALID, "form %s: arg '%s' has kind %u; the param is %s %s: %s (%u)",
                                   form.name, param.name, given.kind, param.rank ? "a tensor of" : "a number of",
                                   elementName(param.element), names[kind], kind);
}

} // namespace

std::optional<uint32_t> findParam(const fagen_form &form, const char *name, uint32_t guess) {
  if (guess < form.param_count && strcmp(paramAt(form, guess).name, name) == 0)
    return guess;
  for (uint32_t i = 0; i < form.param_count; ++i)
    if (strcmp(paramAt(form, i).name, name) == 0)
      return i;
  return std::nullopt;
}

const fagen_arg *findArg(std::span<const fagen_arg> args, const char *name, uint32_t guess) {
  if (guess < args.size() && strcmp(args[guess].name, name) == 0)
    return &args[guess];
  for (const fagen_arg &arg : args)
    if (strcmp(arg.name, name) == 0)
      return &arg;
  return nullptr;
}

uint32_t alignmentOf(const fagen_form_param &param) {
  switch (param.element) {
  case FAGEN_ELEMENT_U8:
    return 1;
  case FAGEN_ELEMENT_F16:
  case FAGEN_ELEMENT_BF16:
    return 2;
  }
  return 4;
}

fagen_status checkData(const fagen_form &form, const fagen_form_param &param, const void *data) {
  if (reinterpret_cast<uintptr_t>(data) & (alignmentOf(param) - 1))
    return fail(FAGEN_MISALIGNED, "form %s: data of arg '%s' is %p; %s needs %u-byte alignment", form.name, param.name,
                data, param.element == FAGEN_ELEMENT_BIT ? "a word of bits" : elementName(param.element),
                alignmentOf(param));
  return FAGEN_OK;
}

fagen_status failUnknown(const fagen_form &form, const char *name) {
  return failOfParams(form, "it has no param", name);
}

fagen_status readArgs(const fagen_form &form, std::span<const fagen_arg> args, Problem &problem) {
  if (fagen_status status = checkNames(form, args))
    return status;
  ExtentValues values(problem.variables);
  const fagen_arg *givens[FAGEN_MAX_FORM_PARAMS];
  for (uint32_t i = 0; i < form.param_count; ++i) { // scalars, which extents may name
    const fagen_form_param &param = paramAt(form, i);
    FormArg &arg = problem.form.args[i] = {};
    if (!(givens[i] = findArg(args, param.name, i)))
      return failOfParams(form, "no arg", param.name);
    fagen_status status = checkKind(form, param, *givens[i]);
    if (!status && param.rank == 0)
      status = readScalar(form, param, *givens[i], arg);
    if (status)
      return status;
    values.add(i, param, arg);
  }
  for (uint32_t i = 0; i < form.param_count; ++i)
    if (const fagen_form_param &param = paramAt(form, i); param.rank)
      if (fagen_status status =
              TensorReader(form, param, values, problem.form.areExplicit).read(*givens[i], problem.form.args[i]))
        return status;
  problem.form.of = &form;
  return FAGEN_OK;
}

int64_t spanOf(const fagen_form &form, uint32_t index, const Problem &problem) {
  ExtentValues values(problem.variables);
  values.addAll(form, problem);
  const fagen_form_param &param = paramAt(form, index);
  int64_t last = 0;
  for (uint32_t i = 0; i < param.rank; ++i) {
    const int64_t extent = values.extent(param, i).value_or(1);
    if (extent == 0)
      return 0;
    const bool isBitRow = param.element == FAGEN_ELEMENT_BIT && i == param.rank - 1;
    last += isBitRow ? (extent - 1) / kWordBits : (extent - 1) * problem.form.args[index].stride[i];
  }
  return last + 1;
}

} // namespace fagen
