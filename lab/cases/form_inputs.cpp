// fagen: the arguments of a case's form.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "form_inputs.h"
#include "lab/support/random.h"
#include "placement.h"
#include "runtime/src/program.h"

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

std::string withoutBlanks(const std::string &text) {
  std::string kept;
  std::copy_if(text.begin(), text.end(), std::back_inserter(kept), [](char letter) { return letter != ' '; });
  return kept;
}

namespace {

/// Of Philox; below are those of Q, K and V.
constexpr uint32_t kScalarStream = 16, kTensorStream = 64, kRepeatStream = 128;
/// Elements side by side that are the same, about and at most.
constexpr double kMostRepeated = 512;
/// Ranges as wide as this are the language's own, not the form's.
constexpr double kNoRange = 1 << 30;
constexpr double kRealSpread = 0.5, kRealEnd = 2;
constexpr int64_t kFewValues = 7;
/// A param that is an extent of a tensor is small, or the tensor would be large for every head.
constexpr int64_t kMostOfExtent = 24;

/// Random words of one param; problems of other lengths have others.
class Draws {
public:
  Draws(uint64_t seed, uint32_t stream, const Shape &shape)
      : seed(seed), stream(stream), lengths(static_cast<uint32_t>(shape.seqQ * 40503 + shape.seqKv)) {}
  uint32_t word() {
    if (used % 4 == 0)
      words = philox({used / 4, lengths, stream, 3}, seed);
    return words[used++ % 4];
  }
  int64_t within(int64_t low, int64_t high) { return low + word() % (high - low + 1); }
  double unit() { return word() / 4294967296.0; }
  bool oneIn(int64_t count) { return within(1, count) == 1; }

private:
  uint64_t seed;
  uint32_t stream, lengths, used = 0;
  std::array<uint32_t, 4> words{};
};

/// What of an integer's range matters for lengths like these.
struct Integers {
  int64_t low, high;
};
Integers interesting(const FormParam &param, const Shape &shape) {
  const int64_t most = 2 * std::max(shape.seqQ, shape.seqKv) + 8;
  auto bounded = [](double x) { return static_cast<int64_t>(std::clamp(x, -4.0 * kNoRange, 4.0 * kNoRange)); };
  const int64_t low = bounded(param.low), high = bounded(param.high);
  const int64_t first = std::clamp(-most, low, high);
  return {first, std::max(first, std::min(high, most))};
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

/// Small ones more often, and ends.
double drawInteger(const FormDefinition &form, const FormParam &param, const Shape &shape, Draws &draws) {
  auto [low, high] = interesting(param, shape);
  if (isExtent(form, param))
    high = std::max(low, std::min(high, kMostOfExtent));
  if (draws.oneIn(6))
    return double(low);
  if (draws.oneIn(8))
    return double(std::clamp<int64_t>(draws.within(0, 1), low, high));
  if (draws.oneIn(8))
    return double(high);
  if (low < 0 || draws.oneIn(2))
    return double(draws.within(low, high));
  return double(std::min(high, low + int64_t(std::exp2(draws.unit() * std::log2(double(high - low + 1)))) - 1));
}

double drawReal(const FormParam &param, Draws &draws) {
  const double low = std::isfinite(param.low) ? param.low : std::min(-kRealEnd, param.high);
  const double high = std::isfinite(param.high) ? param.high : std::max(kRealEnd, low);
  const double x = low > 0 ? low * std::pow(high / low, draws.unit()) : low + (high - low) * draws.unit();
  return std::clamp(double(float(x)), low, high);
}

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
  Draws draws(seed, kScalarStream + index, c.shape);
  return param.isReal() ? drawReal(param, draws) : drawInteger(form, param, c.shape, draws);
}

/// As an element of the param holds it.
double rounded(const FormParam &param, double x) {
  if (param.element == FAGEN_ELEMENT_F16 || param.element == FAGEN_ELEMENT_BF16) {
    const DType dtype = param.element == FAGEN_ELEMENT_F16 ? DType::F16 : DType::BF16;
    return floatOfHalf(dtype, halfOfFloat(dtype, float(x)));
  }
  return param.element == FAGEN_ELEMENT_F32 ? double(float(x)) : x;
}

/// Runs of one value, each above the last, along the last index.
void drawAscending(const FormParam &param, const Shape &shape, FormTensor &tensor, Draws &draws) {
  const auto [low, high] = interesting(param, shape);
  const int64_t length = tensor.extents.back();
  int64_t value = 0;
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    if (int64_t(i) % length == 0)
      value = std::clamp<int64_t>(draws.within(0, 2), low, high);
    else if (draws.oneIn(1 + std::max<int64_t>(1, length / 5)))
      value = std::min(high, value + draws.within(1, 3));
    tensor.values[i] = rounded(param, double(value));
  }
}

/// Integers of one in two tensors repeat in squares of the last two extents, or in runs of the last: then there are
/// tiles of which no row sees a key, and tiles that all see whole.
void repeat(FormTensor &tensor, Draws draws) {
  if (tensor.extents.empty() || draws.oneIn(2))
    return;
  const int64_t side = int64_t(std::exp2(draws.unit() * std::log2(kMostRepeated)));
  const int64_t columns = tensor.extents.back(), rank = int64_t(tensor.extents.size());
  const int64_t rows = rank > 1 ? tensor.extents[size_t(rank - 2)] : 1;
  for (int64_t i = 0, count = int64_t(tensor.values.size()); i < count; ++i) {
    const int64_t column = i % columns, row = i / columns % rows;
    tensor.values[size_t(i)] = tensor.values[size_t(i - column % side - row % side * columns)];
  }
}

/// The ends of what elements are drawn from.
Integers elementRange(const FormParam &param, const Shape &shape) {
  if (param.element == FAGEN_ELEMENT_BIT)
    return {0, 1};
  if (param.low <= -kNoRange || param.high >= kNoRange - 1 || param.element == FAGEN_ELEMENT_U8)
    return {std::max<int64_t>(0, int64_t(std::max(param.low, -kNoRange))),
            std::min<int64_t>(kFewValues, int64_t(std::min(param.high, kNoRange)))};
  return interesting(param, shape);
}

FormTensor drawTensor(const FormParam &param, const FormInputs &inputs, const Shape &shape, uint64_t seed,
                      uint32_t index) {
  FormTensor tensor;
  int64_t count = 1;
  for (const std::vector<fagen_op> &program : param.extents)
    count *= tensor.extents.emplace_back(extentOf(program, *inputs.form, shape, inputs.arguments.numbers));
  tensor.values.resize(size_t(count));
  Draws draws(seed, kTensorStream + index, shape);
  if (param.isAscending) {
    drawAscending(param, shape, tensor, draws);
    return tensor;
  }
  const NormalStream normals(seed, kTensorStream + index);
  const Integers range = elementRange(param, shape);
  const bool hasRange = std::isfinite(param.low) || std::isfinite(param.high);
  for (int64_t i = 0; i < count; ++i)
    tensor.values[size_t(i)] = !param.isReal()
                                   ? double(draws.within(range.low, std::max(range.low, range.high)))
                                   : rounded(param, hasRange ? drawReal(param, draws) : kRealSpread * normals.at(i));
  if (!param.isReal())
    repeat(tensor, Draws(seed, kRepeatStream + index, shape));
  return tensor;
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

/// Whether the runtime can pack a tensor without being told strides: no extent behind the first is a number on the
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

void addTensor(const FormParam &param, const Case &c, uint64_t seed, uint32_t index, FormInputs &inputs) {
  FormTensor tensor = drawTensor(param, inputs, c.shape, seed, index);
  const FormMemory &memory = inputs.tensors.emplace_back(place(param, tensor, c.layout));
  inputs.arguments.tensors[param.name] = std::move(tensor);
  fagen_arg arg = argOf(param, 0);
  if (memory.strides != stridesOf(memory.extents, Layout::Bhsd, param.element == FAGEN_ELEMENT_BIT) ||
      c.layout == Layout::Far ||
      !isPackable(param, *inputs.form, c.scalars)) // packed ones are also left to the runtime
    std::copy(memory.strides.begin(), memory.strides.end(), arg.stride);
  inputs.args.push_back(arg);
}

} // namespace

Case withForm(Case c, const FormPtr &form, uint64_t seed) {
  if (!form)
    return c;
  for (const auto &[name, value] : c.numbers)
    if (std::none_of(form->params.begin(), form->params.end(),
                     [&, &name = name](const FormParam &p) { return p.name == name && !p.isTensor(); }))
      throw UserError(fmt::format("form '{}' has no scalar param '{}'", form->name, name));
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
