// fagen: how a matrix instruction adds.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "accumulation.h"
#include "exact_sum.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace fagen::lab {

namespace {

/// A finite number as significand * 2^exponent; `top` is the exponent of the format's leading bit, which subnormals
/// lack.
struct Number {
  int64_t significand;
  int exponent, top;
};

Number decode(uint32_t bits, int fractionBits, int bias, int width) {
  const uint32_t field = (1u << (width - 1 - fractionBits)) - 1;
  const uint32_t exponent = bits >> fractionBits & field;
  const int64_t fraction = bits & ((1u << fractionBits) - 1);
  const int64_t magnitude = exponent == 0 ? fraction : fraction | int64_t{1} << fractionBits;
  const int top = std::max<int>(static_cast<int>(exponent), 1) - bias;
  return {bits >> (width - 1) & 1 ? -magnitude : magnitude, top - fractionBits, top};
}

Number decodeFactor(Factor factor, uint16_t bits) {
  switch (factor) {
  case Factor::F16:
    return decode(bits, 10, 15, 16);
  case Factor::BF16:
    return decode(bits, 7, 127, 16);
  case Factor::E4M3:
    return decode(bits, 3, 7, 8);
  }
  return {};
}

float valueOf(Factor factor, uint16_t bits) {
  switch (factor) {
  case Factor::F16:
    return floatOfF16(bits);
  case Factor::BF16:
    return floatOfBF16(bits);
  case Factor::E4M3:
    break;
  }
  const Number number = decodeFactor(factor, bits);
  return (bits & 0x7f) == 0x7f ? std::numeric_limits<float>::quiet_NaN()
                               : std::ldexp(static_cast<float>(number.significand), number.exponent);
}
Number decodeAccumulator(bool half, uint32_t bits) {
  return half ? decode(bits & 0xffff, 10, 15, 16) : decode(bits, 23, 127, 32);
}

float accumulatorValue(bool half, uint32_t bits) {
  return half ? floatOfF16(static_cast<uint16_t>(bits)) : asFloat(bits);
}

/// The largest exponent of a step is never below that of the smallest normal f32.
constexpr int kLeastExponent = -126;

/// sum * 2^exponent to the accumulator's type, with `keptBits` bits of an f32's fraction. What rounds to zero is +0,
/// whatever its sign was.
uint32_t roundSum(int64_t sum, int exponent, bool half, bool truncate, int keptBits = 23) {
  const uint32_t sign = sum < 0 ? (half ? 0x8000u : 0x80000000u) : 0;
  const auto magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  if (magnitude == 0)
    return 0;
  const int fractionBits = half ? 10 : keptBits, lowest = half ? -14 : -126, highest = half ? 15 : 127;
  const int top = std::max(static_cast<int>(std::bit_width(magnitude)) - 1 + exponent, lowest);
  const int shift = top - fractionBits - exponent; // bits below the result's last place
  uint64_t kept = shift > 0 ? (shift < 64 ? magnitude >> shift : 0) : magnitude << -shift;
  if (!truncate && shift > 0 && shift < 64) {
    const uint64_t rest = magnitude & ((uint64_t{1} << shift) - 1), middle = uint64_t{1} << (shift - 1);
    kept += rest > middle || (rest == middle && (kept & 1));
  }
  // A leading bit makes the number normal, and a carry out of rounding moves into the exponent by itself.
  const uint64_t bits = kept + (static_cast<uint64_t>(top - lowest) << fractionBits);
  const uint64_t infinity = static_cast<uint64_t>(highest - lowest + 2) << fractionBits;
  const int below = half ? 0 : 23 - keptBits;
  return bits == 0 ? 0 : sign | static_cast<uint32_t>(std::min(bits, infinity) << below);
}

/// Terms of one step, added as the way says.
struct Step {
  struct Term {
    int64_t significand;
    int exponent, top;
  };
  Term terms[33];
  int count = 0;

  void add(int64_t significand, int exponent, int top) { terms[count++] = {significand, exponent, top}; }

  uint32_t sum(const Accumulation &way, bool half) const {
    int largest = kLeastExponent;
    for (int i = 0; i < count; ++i)
      if (way.zeros || terms[i].significand != 0)
        largest = std::max(largest, terms[i].top);
    const int unit = largest - way.fraction;
    int64_t total = 0;
    for (int i = 0; i < count; ++i) {
      if (terms[i].significand == 0)
        continue; // its exponent may lie above all others
      const int shift = terms[i].exponent - unit;
      const int64_t magnitude = std::abs(terms[i].significand);
      const int64_t kept = shift >= 0 ? magnitude << shift : shift > -63 ? magnitude >> -shift : 0;
      total += terms[i].significand < 0 ? -kept : kept;
    }
    return roundSum(total, unit, half, way.truncate, way.result);
  }
};

/// NaN, an infinity, or nothing special.
enum class Kind { Finite, Nan, Plus, Minus };

Kind kindOf(const Dot &dot) {
  bool plus = false, minus = false, nan = false;
  auto note = [&](float value) {
    nan |= std::isnan(value);
    plus |= value == std::numeric_limits<float>::infinity();
    minus |= value == -std::numeric_limits<float>::infinity();
  };
  note(accumulatorValue(dot.half, dot.c));
  for (size_t k = 0; k < depthOf(dot.factor); ++k) {
    const float a = valueOf(dot.factor, dot.a[k]), b = valueOf(dot.factor, dot.b[k]);
    if (!std::isfinite(a) || !std::isfinite(b))
      note(a * b);
  }
  return nan || (plus && minus) ? Kind::Nan : plus ? Kind::Plus : minus ? Kind::Minus : Kind::Finite;
}

uint32_t bitsOf(Kind kind, bool half) {
  if (kind == Kind::Nan)
    return half ? 0x7fff : 0x7fffffff;
  const uint32_t infinity = half ? 0x7c00 : 0x7f800000;
  return kind == Kind::Plus ? infinity : infinity | (half ? 0x8000u : 0x80000000u);
}

/// In f64 from the first product to the last, then the accumulator, rounded once. A sum of f64 rounded to f16 directly.
uint32_t idealSum(const Dot &dot) {
  double sum = 0;
  for (size_t k = 0; k < depthOf(dot.factor); ++k)
    sum += static_cast<double>(valueOf(dot.factor, dot.a[k])) * static_cast<double>(valueOf(dot.factor, dot.b[k]));
  sum += static_cast<double>(accumulatorValue(dot.half, dot.c));
  if (!dot.half)
    return asWord(static_cast<float>(sum)); // finite operands: never a NaN
  int exponent;
  const auto significand = static_cast<int64_t>(std::ldexp(std::frexp(sum, &exponent), 53));
  return roundSum(significand, exponent - 53, true, false) | (std::signbit(sum) ? 0x8000u : 0u);
}

} // namespace

std::string Accumulation::name() const {
  if (ideal)
    return "f64 in order, rounded once";
  return fmt::format("{} products, {} bits, {}{}{}{}", products, fraction, truncate ? "truncated" : "to nearest",
                     joined ? "" : ", accumulator added last", zeros ? ", zeros count" : "",
                     result == 23 ? "" : fmt::format(", results of {} bits", result));
}

const std::vector<Accumulation> &accumulations() {
  static const std::vector<Accumulation> all = [] {
    std::vector<Accumulation> ways;
    for (bool zeros : {false, true})
      for (bool joined : {true, false})
        for (int products : {16, 8, 4})
          for (int fraction : {25, 24, 23, 26, 27})
            for (bool truncate : {true, false})
              ways.push_back({products, fraction, truncate, joined, zeros});
    ways.push_back({.ideal = true});
    for (bool zeros : {false, true})
      for (bool joined : {true, false})
        for (int products : {32, 16, 8})
          for (int fraction : {13, 12, 14, 15, 22, 23})
            for (bool truncate : {true, false})
              for (int result : {13, 12, 14, 22, 23})
                if (products == 32 || result < 23 || fraction < 23) // else one of those above
                  ways.push_back({products, fraction, truncate, joined, zeros, result});
    return ways;
  }();
  return all;
}

bool isWayFor(Factor factor, const Accumulation &way) {
  const bool isOfBytes = way.products == 32 || way.result < 23 || way.fraction < 23;
  return way.ideal || (factor == Factor::E4M3) == isOfBytes;
}

Accumulation byteAccumulation() { return {.products = 32, .fraction = 13, .result = 13}; }

const Accumulation *findAccumulation(const std::string &name) {
  for (const Accumulation &way : accumulations())
    if (way.name() == name)
      return &way;
  return nullptr;
}

uint32_t accumulate(const Accumulation &way, const Dot &dot) {
  if (Kind kind = kindOf(dot); kind != Kind::Finite)
    return bitsOf(kind, dot.half);
  if (way.ideal)
    return idealSum(dot);
  uint32_t c = dot.c;
  const auto depth = static_cast<int>(depthOf(dot.factor));
  for (int first = 0; first < depth; first += way.products) {
    Step step;
    for (int k = first; k < std::min(first + way.products, depth); ++k) {
      const Number a = decodeFactor(dot.factor, dot.a[static_cast<size_t>(k)]);
      const Number b = decodeFactor(dot.factor, dot.b[static_cast<size_t>(k)]);
      step.add(a.significand * b.significand, a.exponent + b.exponent, a.top + b.top);
    }
    if (!way.joined) {
      const Number sum = decodeAccumulator(dot.half, step.sum(way, dot.half));
      step = {};
      step.add(sum.significand, sum.exponent, sum.top);
    }
    if (Kind kind = kindOf({.half = dot.half, .c = c}); kind != Kind::Finite)
      return bitsOf(kind, dot.half); // an earlier step overflowed
    const Number accumulator = decodeAccumulator(dot.half, c);
    step.add(accumulator.significand, accumulator.exponent, accumulator.top);
    c = step.sum(way, dot.half);
  }
  return c;
}

Deviation judgeDot(const Dot &dot, uint32_t got) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  if (Kind kind = kindOf(dot); kind != Kind::Finite)
    return {0, 0, got == bitsOf(kind, dot.half) ? 0 : kWrong};
  ExactSum error;
  int largest = kLeastExponent;
  const Number c = decodeAccumulator(dot.half, dot.c);
  error.add(c.significand, c.exponent);
  if (c.significand)
    largest = std::max(largest, c.top);
  for (size_t k = 0; k < depthOf(dot.factor); ++k) {
    const Number a = decodeFactor(dot.factor, dot.a[k]), b = decodeFactor(dot.factor, dot.b[k]);
    error.add(a.significand * b.significand, a.exponent + b.exponent);
    if (a.significand && b.significand)
      largest = std::max(largest, a.top + b.top);
  }
  const double truth = error.value();
  const int fractionBits = dot.half ? 10 : 23, lowest = dot.half ? -14 : -126;
  const double unit = std::ldexp(1.0, largest - 25); // of a term's last bit that is kept
  const double limit = dot.half ? 65520 : 0x1.ffffffp127;
  const float result = accumulatorValue(dot.half, got);
  if (std::isnan(result))
    return {0, 0, kWrong};
  if (std::isinf(result)) // right when the sum is beyond the largest number, or within the bound of it
    return {0, 0, std::signbit(result) == (truth < 0) && std::abs(truth) + 17 * unit >= limit ? 0 : kWrong};
  const double magnitude = std::max(std::abs(truth), static_cast<double>(std::abs(result)));
  const int exponent = magnitude == 0 ? lowest : std::max(std::ilogb(magnitude), lowest);
  const double ulp = std::ldexp(1.0, exponent - fractionBits);
  error.add(-static_cast<double>(result));
  const double deviation = std::abs(error.value());
  if (deviation == 0)
    return {};
  return {deviation / std::ldexp(1.0, std::max(largest, exponent) - fractionBits), deviation,
          deviation / (17 * unit + ulp)};
}

ModelStudy::ModelStudy(std::string name) { counts.name = std::move(name); }

void ModelStudy::add(const ConformanceCase &testCase, const WordList &in, const WordList &out) {
  counts.values += out.size();
  for (size_t i = 0; i < out.size(); ++i) {
    const Dot dot = testCase.dot(in, i);
    if (ways.empty())
      for (const Accumulation &way : accumulations())
        if (isWayFor(dot.factor, way)) {
          ways.push_back(way);
          counts.candidates.push_back({way.name()});
        }
    for (size_t way = 0; way < counts.candidates.size(); ++way) {
      ModelReport::Candidate &candidate = counts.candidates[way];
      if (candidate.stopped)
        continue;
      candidate.different += accumulate(ways[way], dot) != out[i];
      candidate.stopped = candidate.different >= ModelReport::kEnough;
    }
  }
}

ModelReport ModelStudy::report() const {
  ModelReport sorted = counts;
  std::stable_sort(sorted.candidates.begin(), sorted.candidates.end(),
                   [](const auto &a, const auto &b) { return a.different < b.different; });
  return sorted;
}

} // namespace fagen::lab
