// fagen: the values of a form's arguments that nobody gave.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "form_values.h"
#include "lab/support/random.h"

#include <algorithm>
#include <cmath>

namespace fagen::lab {

namespace {

/// Of Philox; below are those of Q, K and V.
constexpr uint32_t kScalarStream = 16, kTensorStream = 64;
/// Ranges as wide as this are the language's own, not the form's.
constexpr double kNoRange = 1 << 30;
constexpr double kRealSpread = 0.5, kRealEnd = 2;
constexpr int64_t kFewValues = 7; ///< and one more, from 0 up or about it
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

/// Whether scores, and not only masks, may depend on a param: large numbers would leave one key of a row then, or none
/// whose weight f32 can tell.
bool isScored(const FormDefinition &form, const FormParam &param) {
  const std::string word = param.isTensor() ? " " + param.name + "[" : " $" + param.name + " ";
  const auto reads = [&](const std::string &program) { return (" " + program + " ").find(word) != std::string::npos; };
  return reads(form.texts.score) || reads(form.texts.sink) ||
         std::any_of(form.texts.lets.begin(), form.texts.lets.end(), [&](auto &let) { return reads(let.second); });
}

/// Small ones more often, and the ends of the range, or of what matters of it.
double drawInteger(const FormDefinition &form, const FormParam &param, const Shape &shape, Draws &draws) {
  auto [low, high] = interesting(param, shape);
  const bool isExtentToo = isExtent(form, param), isBounded = isExtentToo || isScored(form, param);
  if (isExtentToo)
    high = std::max(low, std::min(high, kMostOfExtent));
  if (draws.oneIn(6))
    return isBounded || draws.oneIn(2) ? double(low) : param.low;
  if (draws.oneIn(8))
    return double(std::clamp<int64_t>(draws.within(0, 1), low, high));
  if (draws.oneIn(8))
    return isBounded || draws.oneIn(2) ? double(high) : param.high;
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

/// What of a tensor has values of one kind: all that differs in the last two indices only, or in the last one. So heads
/// and batches differ in more than the draw of each element.
struct Slices {
  int64_t rows = 1, columns = 1;
  Slices(const FormParam &param, const FormTensor &tensor) {
    const size_t rank = tensor.extents.size();
    if (isCount(param.extents.back())) // each number of a batch or head is one
      return;
    columns = tensor.extents[rank - 1];
    rows = rank > 1 && !isCount(param.extents[rank - 2]) ? tensor.extents[rank - 2] : 1;
  }
  int64_t size() const { return rows * columns; }
};

/// Runs of one value along the last index, each above the last; a run in two slices says where it begins, in the others
/// it is numbered. Numbers begin below 0, and in one slice of four the first and last are the ends of the range.
void drawAscending(const FormParam &param, bool isOfScore, const Shape &shape, FormTensor &tensor, Draws &draws) {
  const auto [low, high] = interesting(param, shape);
  const int64_t length = tensor.extents.back();
  int64_t value = 0, runs = 1;
  bool saysPlace = false, hasEnds = false;
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    const int64_t at = int64_t(i) % length;
    if (at == 0) {
      saysPlace = !saysPlace;
      hasEnds = draws.oneIn(4) && !param.isReal() && !isOfScore;
      runs = draws.within(1, 6);
      value = saysPlace ? 0 : draws.within(-3, 2);
    } else if (draws.oneIn(std::max<int64_t>(2, length / runs))) {
      value = saysPlace ? at : value + draws.within(1, 3);
    }
    const bool isLast = hasEnds && at >= length - length / 4, isFirst = hasEnds && at < length / 4 && !saysPlace;
    tensor.values[i] = roundedToElement(param, isLast    ? param.high
                                               : isFirst ? param.low
                                                         : double(std::clamp(value, low, high)));
  }
}

/// What the integers of a slice are drawn from.
struct Kind {
  Integers range;
  bool hasEnds; ///< one in four is an end of the param's range
};
Kind drawKind(const FormDefinition &form, const FormParam &param, const Shape &shape, Draws &draws) {
  const bool isBit = param.element == FAGEN_ELEMENT_BIT, isByte = param.element == FAGEN_ELEMENT_U8;
  const bool isOfScore = isScored(form, param), isWide = param.high - param.low >= kNoRange;
  const bool hasEnds = draws.oneIn(4) && !isBit && !isOfScore;
  if (isBit || (isByte && draws.oneIn(2)))
    return {{0, 1}, hasEnds};
  const Integers all = interesting(param, shape);
  if (draws.oneIn(3) && !isByte && !(isOfScore && isWide))
    return {all, hasEnds};
  const int64_t first = std::clamp<int64_t>(draws.oneIn(2) ? 0 : -kFewValues / 2, all.low, all.high);
  return {{first, std::min(all.high, first + kFewValues)}, hasEnds};
}

/// Integers of three slices in four repeat in squares, or in runs: then there are tiles of which no row sees a key, and
/// tiles that all see whole.
void drawSlice(const FormDefinition &form, const FormParam &param, const Shape &shape, const Slices &slices,
               Draws &draws, double *values) {
  const auto [range, hasEnds] = drawKind(form, param, shape, draws);
  const double extent = double(std::max(slices.rows, slices.columns));
  const int64_t side = draws.oneIn(4) ? 1 : int64_t(std::pow(extent, 0.3 + 0.7 * draws.unit()));
  for (int64_t i = 0; i < slices.size(); ++i) {
    const int64_t column = i % slices.columns, row = i / slices.columns;
    const int64_t first = i - column % side - row % side * slices.columns;
    if (first != i)
      values[i] = values[first];
    else if (hasEnds && draws.oneIn(4))
      values[i] = draws.oneIn(2) ? param.low : param.high;
    else
      values[i] = double(draws.within(range.low, range.high));
  }
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

void drawTensor(const FormDefinition &form, const FormParam &param, const Shape &shape, uint64_t seed, uint32_t index,
                FormTensor &tensor) {
  Draws draws(seed, kTensorStream + index, shape);
  if (param.isAscending)
    return drawAscending(param, isScored(form, param), shape, tensor, draws);
  if (!param.isReal()) {
    const Slices slices(param, tensor);
    for (size_t i = 0; i + 1 <= tensor.values.size(); i += size_t(slices.size()))
      drawSlice(form, param, shape, slices, draws, &tensor.values[i]);
    return;
  }
  const NormalStream normals(seed, kTensorStream + index);
  const bool hasRange = std::isfinite(param.low) || std::isfinite(param.high);
  for (size_t i = 0; i < tensor.values.size(); ++i)
    tensor.values[i] = roundedToElement(param, hasRange ? drawReal(param, draws) : kRealSpread * normals.at(i));
}

} // namespace fagen::lab
