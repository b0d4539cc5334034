// fagen: the arguments of a case's form.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "form_inputs.h"
#include "form_values.h"
#include "placement.h"
#include "runtime/src/program.h"
#include "tensor_rule.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace fagen::lab {

int64_t extentOf(const std::vector<fagen_op> &program, const FormDefinition &form, const Shape &shape,
                 const std::map<std::string, double> &numbers) {
  Variables variables;
  const std::pair<uint32_t, int64_t> sizes[] = {{FAGEN_VAR_BATCH, shape.batch},
                                                {FAGEN_VAR_HEADS, shape.heads},
                                                {FAGEN_VAR_KV_HEADS, shape.kvHeads},
                                                {FAGEN_VAR_SEQ_Q, shape.seqQ},
                                                {FAGEN_VAR_SEQ_KV, shape.seqKv}};
  for (auto [variable, value] : sizes)
    variables.values[variable] = value;
  std::vector<fagen_op> ops = program;
  for (fagen_op &op : ops)
    if (op.kind == FAGEN_OP_VARIABLE && op.value >= FAGEN_VAR_FORM_0)
      op = {FAGEN_OP_CONSTANT, 0,
            static_cast<int64_t>(numbers.at(form.params.at(size_t(op.value - FAGEN_VAR_FORM_0)).name))};
  const std::optional<int64_t> extent = evaluate(ops.data(), static_cast<uint32_t>(ops.size()), variables);
  if (!extent || *extent < 0)
    throw UserError(fmt::format("an extent of a tensor of form '{}' has no value", form.name));
  return *extent;
}

bool isExtent(const FormDefinition &form, const FormParam &param) {
  const int64_t variable = FAGEN_VAR_FORM_0 + (&param - form.params.data());
  for (const FormParam &tensor : form.params)
    for (const std::vector<fagen_op> &extent : tensor.extents)
      for (const fagen_op &op : extent)
        if (op.kind == FAGEN_OP_VARIABLE && op.value == variable)
          return true;
  return false;
}

bool isOneOf(const std::vector<fagen_op> &extent, std::initializer_list<int64_t> variables) {
  return extent.size() == 1 && extent[0].kind == FAGEN_OP_VARIABLE &&
         std::find(variables.begin(), variables.end(), extent[0].value) != variables.end();
}

bool isCount(const std::vector<fagen_op> &extent) {
  return isOneOf(extent, {FAGEN_VAR_BATCH, FAGEN_VAR_HEADS, FAGEN_VAR_KV_HEADS});
}

std::string withoutBlanks(const std::string &text) {
  std::string kept;
  std::copy_if(text.begin(), text.end(), std::back_inserter(kept), [](char letter) { return letter != ' '; });
  return kept;
}

namespace {

std::string rangeOf(const FormParam &param) { return fmt::format("{} to {}", param.low, param.high); }

double givenNumber(const FormParam &param, double value) {
  if (!(value >= param.low && value <= param.high))
    throw UserError(fmt::format("arg {}={} is not in the param's range, {}", param.name, value, rangeOf(param)));
  if (!param.isReal() && value != std::floor(value))
    throw UserError(fmt::format("arg {}={} is not an integer, as the param is", param.name, value));
  return value;
}

double numberOf(const FormDefinition &form, const FormParam &param, const Case &c, uint64_t seed, uint32_t index) {
  const auto given = c.numbers.find(param.name);
  if (param.bound && given != c.numbers.end() && given->second != *param.bound)
    throw UserError(fmt::format("arg {}={}, but {} binds it to {}", param.name, given->second, c.form, *param.bound));
  if (param.bound)
    return *param.bound;
  if (given != c.numbers.end())
    return givenNumber(param, given->second);
  return drawNumber(form, param, c.shape, seed, index);
}

/// Strides by the case's layout: packed, with gaps, the first index fastest, or repeated along the first extent.
std::vector<int64_t> stridesOf(const std::vector<int64_t> &extents, Layout layout, bool isBits) {
  const size_t rank = extents.size();
  std::vector<int64_t> strides(rank);
  const int64_t gap = layout == Layout::Padded ? 8 : layout == Layout::Odd ? 1 : 0;
  const auto room = [&](size_t i) { return i + 1 == rank && isBits ? (extents[i] + 31) / 32 : extents[i]; };
  if (layout == Layout::Bshd && !isBits) {
    int64_t stride = 1;
    for (size_t i = 0; i < rank; ++i)
      stride = (strides[i] = stride) * std::max<int64_t>(1, extents[i]);
    return strides;
  }
  int64_t stride = !isBits && gap != 0 ? 2 : 1;
  for (size_t i = rank; i-- > 0;) {
    strides[i] = stride;
    stride = stride * std::max<int64_t>(1, room(i)) + gap;
  }
  if (layout == Layout::Shared && rank > 1) // strides that are all 0 say packed
    strides[0] = 0;
  if (layout == Layout::Junk)
    for (size_t i = 0; i < rank; ++i)
      if (extents[i] <= 1 && !(isBits && i + 1 == rank))
        strides[i] = 3331333;
  return strides;
}

void put(FormMemory &memory, uint32_t element, int64_t offset, int64_t bit, double value) {
  unsigned char *place = memory.image.data() + memory.baseBytes + offset * memory.elementBytes;
  const auto set = [&](auto word) { std::memcpy(place, &word, sizeof(word)); };
  switch (element) {
  case FAGEN_ELEMENT_BIT: {
    uint32_t word;
    std::memcpy(&word, place, sizeof(word));
    word = value != 0 ? word | 1u << bit : word & ~(1u << bit);
    return set(word);
  }
  case FAGEN_ELEMENT_U8:
    return set(static_cast<unsigned char>(value));
  case FAGEN_ELEMENT_I32:
    return set(static_cast<int32_t>(value));
  case FAGEN_ELEMENT_F16:
    return set(f16OfFloat(float(value)));
  case FAGEN_ELEMENT_BF16:
    return set(bf16OfFloat(float(value)));
  default:
    return set(float(value));
  }
}

unsigned bytesOf(uint32_t element) {
  return element == FAGEN_ELEMENT_U8 ? 1 : element == FAGEN_ELEMENT_F16 || element == FAGEN_ELEMENT_BF16 ? 2 : 4;
}

/// Puts the tensor's values in memory. Those that strides of 0 repeat become what the first of them is.
FormMemory place(const FormParam &param, FormTensor &tensor, Layout layout) {
  FormMemory memory;
  const bool isBits = param.element == FAGEN_ELEMENT_BIT;
  const size_t rank = tensor.extents.size();
  memory.name = param.name;
  memory.extents = tensor.extents;
  memory.strides = stridesOf(tensor.extents, layout, isBits);
  memory.elementBytes = bytesOf(param.element);
  const bool isEmpty = tensor.values.empty();
  int64_t span = isEmpty ? 0 : 1;
  for (size_t i = 0; i < rank && !isEmpty; ++i) {
    const int64_t last = tensor.extents[i] - 1;
    span += isBits && i + 1 == rank ? last / 32 : last * (last ? memory.strides[i] : 0);
  }
  memory.baseBytes = kGuardBytes + (layout == Layout::Offset ? memory.elementBytes : 0);
  memory.spanBytes = span * memory.elementBytes;
  memory.image.resize(size_t(memory.baseBytes + memory.spanBytes + kGuardBytes));
  for (size_t i = 0; i < memory.image.size(); ++i) // a NaN of each type of floats, a large integer
    memory.image[i] = i % 2 ? kPoison16 >> 8 : kPoison16 & 0xff;
  memory.used.assign(size_t(span), 0);
  std::vector<int64_t> index(rank);
  std::map<std::pair<int64_t, int64_t>, double> first; // only where some lie in one place
  const bool repeats = layout == Layout::Shared;
  for (double &value : tensor.values) {
    int64_t offset = 0, bit = 0;
    for (size_t i = 0; i < rank; ++i)
      if (isBits && i + 1 == rank) {
        offset += index[i] / 32;
        bit = index[i] % 32;
      } else {
        offset += index[i] ? index[i] * memory.strides[i] : 0;
      }
    if (repeats)
      value = first.try_emplace({offset, bit}, value).first->second;
    put(memory, param.element, offset, bit, value);
    memory.used[size_t(offset)] = 1;
    for (size_t i = rank; i-- > 0 && ++index[i] == tensor.extents[i];)
      index[i] = 0;
  }
  return memory;
}

fagen_arg argOf(const FormParam &param, double number) {
  fagen_arg arg{};
  arg.name = param.name.c_str();
  arg.kind = param.isTensor() ? FAGEN_ARG_TENSOR : param.isReal() ? FAGEN_ARG_F32 : FAGEN_ARG_I32;
  (param.isReal() ? void(arg.f32 = number) : void(arg.i32 = int64_t(number)));
  return arg;
}

/// Stands for memory that a run names: a query asks only whether there is any.
const int64_t kStandIn = 0;

void addScalar(const FormParam &param, const Case &c, uint64_t seed, uint32_t index, FormInputs &inputs) {
  const double number = numberOf(*inputs.form, param, c, seed, index);
  inputs.arguments.numbers[param.name] = param.isReal() ? double(float(number)) : number;
  inputs.args.push_back(argOf(param, number));
  if (c.scalars == Scalars::Host || param.bound)
    return;
  FormTensor one{{1}, {number}};
  inputs.tensors.push_back(place(param, one, c.layout == Layout::Offset ? Layout::Offset : Layout::Bhsd));
  fagen_arg &arg = inputs.args.back();
  arg.i32 = -123456789; // nobody may read it
  arg.f32 = std::nan("");
  arg.data = &kStandIn;
}

/// Whether the runtime can pack a tensor without being told strides: no extent after the first is a number on the
/// device.
bool isPackable(const FormParam &param, const FormDefinition &form, Scalars scalars) {
  auto isUnknown = [&](const fagen_op &op) {
    return op.kind == FAGEN_OP_VARIABLE && op.value >= FAGEN_VAR_FORM_0 &&
           !form.params[size_t(op.value - FAGEN_VAR_FORM_0)].bound;
  };
  return scalars == Scalars::Host ||
         std::all_of(param.extents.begin() + 1, param.extents.end(),
                     [&](const auto &program) { return std::none_of(program.begin(), program.end(), isUnknown); });
}

FormTensor tensorOf(const FormParam &param, const Case &c, uint64_t seed, uint32_t index, const FormInputs &inputs) {
  FormTensor tensor;
  int64_t count = 1;
  for (const std::vector<fagen_op> &program : param.extents)
    count *= tensor.extents.emplace_back(extentOf(program, *inputs.form, c.shape, inputs.arguments.numbers));
  tensor.values.resize(size_t(count));
  if (const auto given = c.tensors.find(param.name); given != c.tensors.end())
    fillByRule(given->second, param, seed, index, tensor);
  else
    drawTensor(*inputs.form, param, c.shape, seed, index, tensor);
  return tensor;
}

void addTensor(const FormParam &param, const Case &c, uint64_t seed, uint32_t index, FormInputs &inputs) {
  FormTensor tensor = tensorOf(param, c, seed, index, inputs);
  const FormMemory &memory = inputs.tensors.emplace_back(place(param, tensor, c.layout));
  inputs.arguments.tensors[param.name] = std::move(tensor);
  fagen_arg arg = argOf(param, 0);
  if (memory.strides != stridesOf(memory.extents, Layout::Bhsd, param.element == FAGEN_ELEMENT_BIT) ||
      c.layout == Layout::Far ||
      !isPackable(param, *inputs.form, c.scalars)) // packed ones are also left to the runtime
    std::copy(memory.strides.begin(), memory.strides.end(), arg.stride);
  inputs.args.push_back(arg);
}

/// UserError unless the form has such a param, a tensor where `isTensor`.
void requireParam(const FormDefinition &form, const std::string &name, const std::string &value, bool isTensor) {
  std::vector<std::string> names;
  for (const FormParam &param : form.params) {
    names.push_back(param.name);
    if (param.name != name || param.isTensor() == isTensor)
      continue;
    throw UserError(fmt::format("arg {}={}, but {}", name, value,
                                param.isTensor() ? fmt::format("the param is a tensor, which takes {}", tensorRules())
                                                 : "the param is a scalar, which takes a number"));
  }
  if (names.empty())
    throw UserError(fmt::format("form '{}' has no param '{}'; it has none", form.name, name));
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UserError(fmt::format("form '{}' has no param '{}'; it has {}", form.name, name, fmt::join(names, ", ")));
}

} // namespace

Case withForm(Case c, const FormPtr &form, uint64_t seed) {
  if (!form)
    return c;
  for (const auto &[name, value] : c.numbers)
    requireParam(*form, name, fmt::format("{}", value), false);
  for (const auto &[name, rule] : c.tensors)
    requireParam(*form, name, rule, true);
  c.form = form->text;
  auto inputs = std::make_shared<FormInputs>();
  inputs->form = form;
  uint32_t index = 0;
  for (const FormParam &param : form->params)
    param.isTensor() ? void() : addScalar(param, c, seed, index++, *inputs);
  index = 0;
  for (const FormParam &param : form->params)
    param.isTensor() ? addTensor(param, c, seed, index++, *inputs) : void();
  c.arguments = std::move(inputs);
  return c;
}

} // namespace fagen::lab
