// fagen: the values of a form's arguments that nobody gave.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "form_values.h"
#include "lab/support/random.h"

#include <algorithm>
#include <cmath>

namespace fagen::lab {

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
    tensor.values[i] = roundedToElement(param, double(value));
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

} // namespace

double roundedToElement(const FormParam &param, double x) {
  if (param.element == FAGEN_ELEMENT_F16 || param.element == FAGEN_ELEMENT_BF16) {
    const DType dtype = param.element == FAGEN_ELEMENT_F16 ? DType::F16 : DType::BF16;
    return floatOfHalf(dtype, halfOfFloat(dtype, float(x)));
  }
  return param.element == FAGEN_ELEMENT_F32 ? double(float(x)) : x;
}

double drawNumber(const FormDefinition &form, const FormParam &param, const Shape &shape, uint64_t seed,
                  uint32_t index) {
  Draws draws(seed, kScalarStream + index, shape);
  return param.isReal() ? drawReal(param, draws) : drawInteger(form, param, shape, draws);
}

void drawTensor(const FormParam &param, const Shape &shape, uint64_t seed, uint32_t index, FormTensor &tensor) {
  Draws draws(seed, kTensorStream + index, shape);
  if (param.isAscending)
    return drawAscending(param, shape, tensor, draws);
  const NormalStream normals(seed, kTensorStream + index);
  const Integers range = elementRange(param, shape);
  const bool hasRange = std::isfinite(param.low) || std::isfinite(param.high);
  for (size_t i = 0; i < tensor.values.size(); ++i)
    tensor.values[i] = !param.isReal()
                           ? double(draws.within(range.low, std::max(range.low, range.high)))
                           : roundedToElement(param, hasRange ? drawReal(param, draws) : kRealSpread * normals.at(i));
  if (!param.isReal())
    repeat(tensor, Draws(seed, kRepeatStream + index, shape));
}

} // namespace fagen::lab
