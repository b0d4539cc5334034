// fagen: the form of a call: its args as the C ABI has them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "form_call.h"

#include <bit>
#include <cmath>
#include <deque>
#include <mutex>
#include <optional>

namespace fagen::torch {
namespace {

constexpr size_t kMostSignatures = 65536;
constexpr int64_t kWordBits = 32;

struct Signatures {
  std::mutex mutex;
  std::deque<FormSignature> all; // never moved
};
Signatures &signatures() {
  static Signatures *signatures = new Signatures; // never destroyed: calls may come until the process ends
  return *signatures;
}

const fagen_form &formAt(const fagen_table &table, uint32_t i) {
  return *reinterpret_cast<const fagen_form *>(reinterpret_cast<const char *>(table.forms) +
                                               size_t(i) * table.form_size);
}
const fagen_form_param &paramAt(const fagen_form &form, uint32_t i) {
  return *reinterpret_cast<const fagen_form_param *>(reinterpret_cast<const char *>(form.params) +
                                                     size_t(i) * form.param_size);
}

const fagen_form_param *findParam(const fagen_form &form, const std::string &name) {
  for (uint32_t i = 0; i < form.param_count; ++i)
    if (name == paramAt(form, i).name)
      return &paramAt(form, i);
  return nullptr;
}

bool hasTheseParams(const fagen_form &form, const FormSignature &signature) {
  bool all = form.name == signature.form && form.param_count == signature.args.size();
  for (const FormSignature::Arg &arg : signature.args)
    all = all && findParam(form, arg.name);
  return all;
}

const fagen_form *findForm(const std::vector<const fagen_table *> &tables, const FormSignature &signature) {
  for (const fagen_table *table : tables)
    for (uint32_t i = 0; table->struct_size >= sizeof(fagen_table) && i < table->form_count; ++i)
      if (hasTheseParams(formAt(*table, i), signature))
        return &formAt(*table, i);
  return nullptr;
}

long long number(int64_t value) { return static_cast<long long>(value); }

std::string listOf(const int64_t *sizes, int64_t rank) {
  std::string text;
  for (int64_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + std::to_string(sizes[i]);
  return "[" + text + "]";
}

/// What a param's tensor is of, in PyTorch's words, and whether this one is.
const char *wrongType(const fagen_form_param &param, int32_t dtype) {
  const Shim &s = shim();
  switch (param.element) {
  case FAGEN_ELEMENT_U8:
    return dtype == s.aoti_torch_dtype_uint8() || dtype == s.aoti_torch_dtype_bool() ? nullptr : "uint8 or bool";
  case FAGEN_ELEMENT_F16:
    return dtype == s.aoti_torch_dtype_float16() ? nullptr : "float16";
  case FAGEN_ELEMENT_BF16:
    return dtype == s.aoti_torch_dtype_bfloat16() ? nullptr : "bfloat16";
  case FAGEN_ELEMENT_F32:
    return dtype == s.aoti_torch_dtype_float32() ? nullptr : "float32";
  }
  return dtype == s.aoti_torch_dtype_int32()  ? nullptr
         : param.element == FAGEN_ELEMENT_BIT ? "int32, 32 bits each"
                                              : "int32";
}

/// Args of one call, with what is known of its form.
class Describer {
public:
  Describer(const FormCall &call, const fagen_form *form, const fagen_problem &problem, const View &q)
      : call(call), form(form), problem(problem), q(q) {}

  std::vector<fagen_arg> run() {
    size_t numbers = 0, tensors = 0;
    std::vector<fagen_arg> args;
    for (const FormSignature::Arg &one : call.signature->args) {
      const fagen_form_param *param = form ? findParam(*form, one.name) : nullptr;
      fagen_arg arg = {};
      arg.name = one.name.c_str();
      arg.kind = !param                                ? FAGEN_ARG_F32
                 : param->rank                         ? FAGEN_ARG_TENSOR
                 : param->element == FAGEN_ELEMENT_I32 ? FAGEN_ARG_I32
                                                       : FAGEN_ARG_F32;
      if (one.isTensor)
        describeTensor(call.tensors[tensors++], param, arg);
      else
        describeNumber(call.numbers[numbers++], param, arg);
      args.push_back(arg);
    }
    return args;
  }

private:
  const char *formName() const { return call.signature->form.c_str(); }

  void describeNumber(double value, const fagen_form_param *param, fagen_arg &arg) const {
    if (param && param->rank)
      fail("fagen.Error: form %s: %s is a number; it is a tensor of %u dimension%s", formName(), arg.name, param->rank,
           param->rank == 1 ? "" : "s");
    if (arg.kind == FAGEN_ARG_I32 && !(std::abs(value) < 0x1p53 && value == std::trunc(value)))
      fail("fagen.Error: form %s: %s is %g; it is an integer", formName(), arg.name, value);
    arg.f32 = value;
    arg.i32 = arg.kind == FAGEN_ARG_I32 ? static_cast<int64_t>(value) : 0;
  }

  void describeTensor(const View &view, const fagen_form_param *param, fagen_arg &arg) const {
    arg.data = view.data;
    if (!param)
      return;
    if (const char *wanted = wrongType(*param, view.dtype))
      fail("fagen.Error: form %s: %s is of another dtype; it is %s", formName(), arg.name, wanted);
    if (view.deviceType != q.deviceType || view.deviceIndex != q.deviceIndex)
      fail("fagen.Error: form %s: %s is on another device than q", formName(), arg.name);
    if (param->rank == 0)
      checkOne(view, arg);
    else
      describeStrides(view, *param, arg);
  }

  void checkOne(const View &view, const fagen_arg &arg) const {
    for (int64_t i = 0; i < view.rank; ++i)
      if (view.sizes[i] != 1)
        fail("fagen.Error: form %s: %s has shape %s; it is a number, or a tensor of one", formName(), arg.name,
             listOf(view.sizes, view.rank).c_str());
  }

  /// None where it is a param whose value is on the device.
  std::optional<int64_t> extentOf(const fagen_form_param &param, uint32_t i) const {
    const auto &program = param.extents[i];
    if (program.size != 1)
      fail("fagen.Error: form %s: %s has an extent that is computed; these operators do not know such", formName(),
           param.name);
    const fagen_op &op = program.ops[0];
    if (op.kind == FAGEN_OP_CONSTANT)
      return op.value;
    const int64_t sizes[] = {problem.batch, problem.heads, problem.kv_heads, problem.seq_q, problem.seq_kv};
    if (op.value <= FAGEN_VAR_SEQ_KV)
      return sizes[op.value];
    return valueOf(paramAt(*form, static_cast<uint32_t>(op.value - FAGEN_VAR_FORM_0)).name);
  }

  std::optional<int64_t> valueOf(const std::string &name) const {
    size_t index = 0;
    for (const FormSignature::Arg &arg : call.signature->args) {
      if (arg.name == name)
        return arg.isTensor ? std::nullopt : std::optional(static_cast<int64_t>(call.numbers[index]));
      index += !arg.isTensor;
    }
    return std::nullopt;
  }

  void describeStrides(const View &view, const fagen_form_param &param, fagen_arg &arg) const {
    int64_t extents[4];
    const int64_t missing = int64_t(param.rank) - view.rank;
    bool isFit = missing >= 0;
    for (uint32_t i = 0; i < param.rank; ++i) {
      const int64_t from = i - missing, size = from < 0 ? 1 : view.sizes[from];
      const std::optional<int64_t> extent = extentOf(param, i);
      const bool isBits = param.element == FAGEN_ELEMENT_BIT && i == param.rank - 1;
      extents[i] = !extent ? size : isBits ? (*extent + kWordBits - 1) / kWordBits : *extent;
      isFit = isFit && (size == extents[i] || (size == 1 && !isBits));
      arg.stride[i] = size == extents[i] && from >= 0 ? view.strides[from] : 0;
      if (isBits && view.rank && size > 1 && view.strides[from] != 1)
        fail("fagen.Error: form %s: the words of %s are not side by side; take %s.contiguous()", formName(), arg.name,
             arg.name);
      arg.stride[i] = isBits ? 1 : arg.stride[i];
    }
    if (!isFit)
      fail("fagen.Error: form %s: %s has shape %s; it is %s, where a size of 1 is repeated", formName(), arg.name,
           listOf(view.sizes, view.rank).c_str(), listOf(extents, param.rank).c_str());
  }

  const FormCall &call;
  const fagen_form *form; ///< null: no table has it
  const fagen_problem &problem;
  const View &q;
};

} // namespace

int64_t addSignature(FormSignature signature) {
  Signatures &known = signatures();
  std::lock_guard lock(known.mutex);
  if (known.all.size() == kMostSignatures)
    return -1;
  known.all.push_back(std::move(signature));
  return static_cast<int64_t>(known.all.size()) - 1;
}

FormCall formCallOf(int64_t number, std::vector<double> numbers, std::vector<View> tensors) {
  Signatures &known = signatures();
  const FormSignature *signature = nullptr;
  {
    std::lock_guard lock(known.mutex);
    if (number >= 0 && static_cast<size_t>(number) < known.all.size())
      signature = &known.all[static_cast<size_t>(number)];
  }
  if (!signature)
    fail("fagen.Error: no form of number %lld in this process", torch::number(number));
  size_t tensorCount = 0;
  for (const FormSignature::Arg &arg : signature->args)
    tensorCount += arg.isTensor;
  if (tensors.size() != tensorCount || numbers.size() != signature->args.size() - tensorCount)
    fail("fagen.Error: form %s takes %zu tensors and %zu numbers, not %zu and %zu", signature->form.c_str(),
         tensorCount, signature->args.size() - tensorCount, tensors.size(), numbers.size());
  return {signature, number, std::move(numbers), std::move(tensors)};
}

std::vector<fagen_arg> describeArgs(const FormCall &form, const std::vector<const fagen_table *> &tables,
                                    const fagen_problem &problem, const View &q) {
  return Describer(form, findForm(tables, *form.signature), problem, q).run();
}

const char *nameOfTensor(const FormCall &form, size_t place) {
  for (const FormSignature::Arg &arg : form.signature->args)
    if (arg.isTensor && place-- == 0)
      return arg.name.c_str();
  return "a tensor of the form";
}

int64_t bytesOfElement(const View &tensor) {
  const Shim &s = shim();
  if (tensor.dtype == s.aoti_torch_dtype_uint8() || tensor.dtype == s.aoti_torch_dtype_bool())
    return 1;
  return tensor.dtype == s.aoti_torch_dtype_float16() || tensor.dtype == s.aoti_torch_dtype_bfloat16() ? 2 : 4;
}

void addToKey(const FormCall &form, std::vector<int64_t> &key) {
  if (!form.signature)
    return;
  key.push_back(form.number);
  for (double number : form.numbers)
    key.push_back(std::bit_cast<int64_t>(number));
  for (const View &view : form.tensors) {
    key.push_back(view.rank);
    key.insert(key.end(), view.sizes, view.sizes + view.rank);
    key.insert(key.end(), view.strides, view.strides + view.rank);
    key.push_back(int64_t(view.dtype) << 32 | int64_t(view.deviceType) << 16 | (view.deviceIndex & 0xFFFF));
  }
}

void putPointers(const FormCall &form, std::vector<fagen_arg> &args) {
  size_t tensor = 0;
  for (size_t i = 0; i < args.size(); ++i)
    if (form.signature->args[i].isTensor)
      args[i].data = form.tensors[tensor++].data;
}

} // namespace fagen::torch
