// fagen: conformance of the functions of numbers: math.h, and recompute.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cases.h"
#include "lab/kernels/numeric.h"

#include <cmath>
#include <limits>

namespace fagen::lab {

namespace {

constexpr unsigned kElements = 65536;
/// The one NaN that f32 instructions give; cvt to a 16-bit type gives 0x7fff.
constexpr uint32_t kNan = 0x7fffffff;

uint32_t canonical(float value) { return std::isnan(value) ? kNan : asWord(value); }

uint16_t rounded(DType dtype, uint32_t bits) {
  const float value = asFloat(bits);
  return std::isnan(value) ? 0x7fff : halfOfFloat(dtype, value);
}

/// Minus zero is less than zero; a number wins over a NaN.
uint32_t larger(uint32_t a, uint32_t b) {
  const float x = asFloat(a), y = asFloat(b);
  if (std::isnan(x))
    return canonical(y);
  if (std::isnan(y) || x > y)
    return a;
  return x == y ? (std::signbit(x) ? b : a) : b;
}

bool oneIsNan(const uint32_t *x) { return std::isnan(asFloat(x[0])) || std::isnan(asFloat(x[1])); }

using Exact = uint32_t (*)(const uint32_t *operands);
using Fill = void (*)(Words &random, unsigned round, uint32_t index, uint32_t *operands);

ConformanceCase elementCase(const char *name, const char *function, const char *symbol, size_t operands, Fill fill) {
  ConformanceCase c;
  c.name = name;
  c.functions = {function};
  c.symbol = symbol;
  c.grid = kElements / kThreads;
  c.threads = kThreads;
  c.operands = operands;
  c.inWords = kElements * operands;
  c.outWords = kElements;
  c.fill = [=](Words &random, unsigned round, WordList &in) {
    for (uint32_t i = 0; i < kElements; ++i)
      fill(random, round, i, &in[i * operands]);
  };
  return c;
}

ConformanceCase exactCase(const char *name, const char *function, const char *symbol, size_t operands, Fill fill,
                          Exact exact) {
  ConformanceCase c = elementCase(name, function, symbol, operands, fill);
  c.inputs = "floats of every kind";
  c.expect = [=](const WordList &in, WordList &out) {
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = exact(&in[i * operands]);
  };
  return c;
}

void anyWord(Words &random, unsigned, uint32_t, uint32_t *x) { x[0] = random.next(); }
void everyHalf(Words &, unsigned, uint32_t index, uint32_t *x) { x[0] = index; }

void anyTwo(Words &random, unsigned, uint32_t, uint32_t *x) {
  x[0] = random.anyFloat();
  x[1] = random.oneIn(8) ? x[0] ^ (random.next() & 0x80000001u) : random.anyFloat();
}

/// Half of the sums have operands of near exponents, some cancel.
void summands(Words &random, unsigned round, uint32_t index, uint32_t *x) {
  anyTwo(random, round, index, x);
  if (!random.oneIn(2))
    return;
  const int exponent = static_cast<int>(random.below(200)) - 100;
  x[0] = random.floatOf(exponent, exponent);
  x[1] = random.oneIn(4) ? (x[0] ^ 0x80000000u) + random.below(9) - 4 : random.floatOf(exponent - 26, exponent + 26);
}

/// Half of the third operands nearly cancel the product.
void factorsAndSummand(Words &random, unsigned round, uint32_t index, uint32_t *x) {
  anyTwo(random, round, index, x);
  x[2] = random.anyFloat();
  if (!random.oneIn(2))
    return;
  x[0] = random.floatOf(-40, 40);
  x[1] = random.floatOf(-40, 40);
  const uint32_t product = asWord(asFloat(x[0]) * asFloat(x[1]));
  x[2] = (product ^ (random.oneIn(4) ? 0 : 0x80000000u)) + random.below(9) - 4;
  if (random.oneIn(4)) // further apart, so that rounding decides
    x[2] = (x[2] & 0x807fffffu) | ((x[2] >> 23 & 0xff) - 26 + random.below(52)) << 23;
}

/// Half of the quotients are near a value or half way between two.
void dividends(Words &random, unsigned round, uint32_t index, uint32_t *x) {
  anyTwo(random, round, index, x);
  if (!random.oneIn(2))
    return;
  x[1] = random.floatOf(-30, 30);
  x[0] = asWord(asFloat(random.floatOf(-30, 30)) * asFloat(x[1])) + random.below(3) - 1;
}

/// The first four rounds take every finite 16-bit value: itself, the middle to the next, and that middle's neighbours.
template <DType kType> void ties(Words &random, unsigned round, uint32_t index, uint32_t *x) {
  if (round >= 4) {
    x[0] = random.anyFloat();
    return;
  }
  static constexpr uint32_t kOffset[] = {0, 1, 0, 2};
  const uint32_t value = asWord(floatOfHalf(kType, static_cast<uint16_t>(index)));
  const uint32_t next = asWord(floatOfHalf(kType, static_cast<uint16_t>(index + 1)));
  const bool finite = (index & 0x7fffu) + 1 < (kType == DType::F16 ? 0x7c00u : 0x7f80u);
  if (round == 0 || !finite)
    x[0] = value;
  else // the middle is exact in f32: an f16 or bf16 leaves bits below
    x[0] = asWord(asFloat(value) * 0.5f + asFloat(next) * 0.5f) - 1 + kOffset[round];
}

void addExactCases(std::vector<ConformanceCase> &cases) {
  cases.push_back(exactCase("fma", "fma", "conformance_fma", 3, factorsAndSummand, [](const uint32_t *x) {
    return canonical(std::fma(asFloat(x[0]), asFloat(x[1]), asFloat(x[2])));
  }));
  cases.push_back(exactCase("mul", "mul", "conformance_mul", 2, anyTwo,
                            [](const uint32_t *x) { return canonical(asFloat(x[0]) * asFloat(x[1])); }));
  cases.push_back(exactCase("add", "add", "conformance_add", 2, summands,
                            [](const uint32_t *x) { return canonical(asFloat(x[0]) + asFloat(x[1])); }));
  cases.push_back(exactCase("div", "div", "conformance_div", 2, dividends,
                            [](const uint32_t *x) { return canonical(asFloat(x[0]) / asFloat(x[1])); }));
  cases.push_back(exactCase("sqrt", "sqrt", "conformance_sqrt", 1, anyWord,
                            [](const uint32_t *x) { return canonical(std::sqrt(asFloat(x[0]))); }));
  cases.push_back(
      exactCase("max", "max", "conformance_max", 2, anyTwo, [](const uint32_t *x) { return larger(x[0], x[1]); }));
  cases.push_back(exactCase("max_or_nan", "max_or_nan", "conformance_max_or_nan", 2, anyTwo,
                            [](const uint32_t *x) { return oneIsNan(x) ? kNan : larger(x[0], x[1]); }));
  cases.push_back(exactCase("min_or_nan", "min_or_nan", "conformance_min_or_nan", 2, anyTwo, [](const uint32_t *x) {
    return oneIsNan(x) ? kNan : larger(x[0], x[1]) == x[0] ? x[1] : x[0];
  }));
  cases.push_back(exactCase("negative_infinity", "negative_infinity", "conformance_negative_infinity", 1, anyWord,
                            [](const uint32_t *) { return 0xff800000u; }));
  cases.push_back(
      exactCase("recompute", "recompute", "conformance_recompute", 1, anyWord, [](const uint32_t *x) { return x[0]; }));
}

void addConversions(std::vector<ConformanceCase> &cases) {
  auto add = [&](const char *name, const char *function, const char *symbol, size_t operands, Fill fill, Exact exact,
                 const char *inputs) {
    cases.push_back(exactCase(name, function, symbol, operands, fill, exact));
    cases.back().inputs = inputs;
  };
  const char *ties16 = "every 16-bit value, every tie and its neighbours; then floats of every kind";
  add(
      "round_to<f16>", "round_to", "conformance_round_to_f16", 1, ties<DType::F16>,
      [](const uint32_t *x) { return uint32_t{rounded(DType::F16, x[0])}; }, ties16);
  add(
      "round_to<bf16>", "round_to", "conformance_round_to_bf16", 1, ties<DType::BF16>,
      [](const uint32_t *x) { return uint32_t{rounded(DType::BF16, x[0])}; }, ties16);
  const char *pairs = "pairs of floats of every kind";
  add(
      "round_pair<f16>", "round_pair", "conformance_round_pair_f16", 2, anyTwo,
      [](const uint32_t *x) { return rounded(DType::F16, x[0]) | uint32_t{rounded(DType::F16, x[1])} << 16; }, pairs);
  add(
      "round_pair<bf16>", "round_pair", "conformance_round_pair_bf16", 2, anyTwo,
      [](const uint32_t *x) { return rounded(DType::BF16, x[0]) | uint32_t{rounded(DType::BF16, x[1])} << 16; }, pairs);
  add(
      "to_float(f16)", "to_float", "conformance_to_float_f16", 1, everyHalf,
      [](const uint32_t *x) { return canonical(floatOfF16(static_cast<uint16_t>(x[0]))); }, "all 65536 values");
  add(
      "to_float(bf16)", "to_float", "conformance_to_float_bf16", 1, everyHalf,
      [](const uint32_t *x) { return x[0] << 16; }, "all 65536 values");
}

float flushed(float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

/// The distance of adjacent f32 around x.
double ulpOf(double x) { return std::ldexp(1.0, std::max(x == 0 ? -126 : std::ilogb(x), -126) - 23); }

constexpr double kWrong = std::numeric_limits<double>::infinity();

Deviation sameWord(uint32_t got, uint32_t wanted) { return {0, 0, got == wanted ? 0 : kWrong}; }

/// As NVIDIA counts: from the correctly rounded result.
constexpr double kExp2Ulp = 2;

Deviation judgeExp2(uint32_t operand, uint32_t got) {
  const float x = flushed(asFloat(operand)), result = asFloat(got);
  if (std::isnan(x))
    return sameWord(got, kNan);
  const double truth = std::exp2(static_cast<double>(x));
  const double rounded = static_cast<double>(static_cast<float>(truth));
  if (truth == 0 || std::isinf(rounded))
    return sameWord(got, truth == 0 ? 0 : 0x7f800000);
  // Subnormal results become zero. Around the smallest normal, either side is right within the bound.
  const double allowed = kExp2Ulp * ulpOf(truth);
  if (result == 0)
    return std::signbit(result) || rounded - 0x1p-126 > allowed ? Deviation{0, 0, kWrong} : Deviation{};
  if (std::isnan(result) || (truth < 0x1p-126 && result != 0x1p-126f))
    return {0, 0, kWrong};
  const double value = std::isinf(result) && result > 0 ? 0x1p128 : static_cast<double>(result);
  const double error = std::abs(value - truth);
  return {error / ulpOf(truth), error, std::abs(value - rounded) / allowed};
}

constexpr double kLog2Error = 0x1p-22;

Deviation judgeLog2(uint32_t operand, uint32_t got) {
  const float x = flushed(asFloat(operand));
  if (std::isnan(x) || x < 0)
    return sameWord(got, kNan);
  if (x == 0 || std::isinf(x))
    return sameWord(got, x == 0 ? 0xff800000 : 0x7f800000);
  const double truth = std::log2(static_cast<double>(x));
  const double error = std::abs(static_cast<double>(asFloat(got)) - truth);
  if (std::isnan(error))
    return {0, 0, kWrong};
  if (x > 0.5f && x < 2) // the result may be near zero, where an ulp says nothing
    return {0, error, error / kLog2Error};
  return {error / ulpOf(truth), 0, error / (kLog2Error * std::abs(truth))};
}

constexpr double kTanhError = 0x1p-11;

/// PTX bounds the relative error. Subnormal inputs count: tanh.approx has no ftz.
Deviation judgeTanh(uint32_t operand, uint32_t got) {
  const float x = asFloat(operand);
  if (std::isnan(x))
    return sameWord(got, kNan);
  if (x == 0 || std::isinf(x))
    return sameWord(got, asWord(x == 0 ? x : std::copysign(1.0f, x)));
  const double truth = std::tanh(static_cast<double>(x));
  const double error = std::abs(static_cast<double>(asFloat(got)) - truth);
  if (std::isnan(error))
    return {0, 0, kWrong};
  return {error / ulpOf(truth), error, error / (kTanhError * std::abs(truth))};
}

void slopes(Words &random, unsigned, uint32_t, uint32_t *x) {
  x[0] = random.anyFloat();
  if (random.oneIn(2)) // where the result is neither the operand nor 1
    x[0] = random.floatOf(-8, 3);
}

void exponents(Words &random, unsigned, uint32_t, uint32_t *x) {
  x[0] = random.anyFloat();
  if (random.oneIn(2)) // results that are numbers, each exponent equally often
    x[0] = asWord(static_cast<float>(static_cast<int>(random.below(280)) - 150) +
                  static_cast<float>(random.next() >> 8) * 0x1p-24f);
}

void positives(Words &random, unsigned, uint32_t, uint32_t *x) {
  x[0] = random.anyFloat();
  if (random.oneIn(4))
    x[0] = random.floatOf(-1, 0) & 0x7fffffffu; // 1/2 to 2
  else if (!random.oneIn(4))
    x[0] &= 0x7fffffffu;
}

void addBoundedCases(std::vector<ConformanceCase> &cases) {
  auto add = [&](const char *name, const char *symbol, Fill fill, Deviation (*judge)(uint32_t, uint32_t)) {
    ConformanceCase c = elementCase(name, name, symbol, 1, fill);
    c.judge = [judge](const WordList &in, const WordList &out, std::vector<Deviation> &deviations) {
      for (size_t i = 0; i < out.size(); ++i)
        deviations[i] = judge(in[i], out[i]);
    };
    cases.push_back(std::move(c));
  };
  add("exp2", "conformance_exp2", exponents, judgeExp2);
  cases.back().inputs = "-150 to 130, and floats of every kind";
  cases.back().bound = "2 ulp from the rounded result; subnormals are zero";
  add("log2", "conformance_log2", positives, judgeLog2);
  cases.back().isAbsolute = true;
  cases.back().inputs = "1/2 to 2, positive floats, and floats of every kind";
  cases.back().bound = "2^-22 between 1/2 and 2, else 2^-22 of the result; subnormals are zero";
  add("tanh", "conformance_tanh", slopes, judgeTanh);
  cases.back().inputs = "2^-8 to 16 of either sign, and floats of every kind";
  cases.back().bound = "2^-11 of the result";
}

} // namespace

void addArithmeticCases(std::vector<ConformanceCase> &cases) {
  addExactCases(cases);
  addConversions(cases);
  addBoundedCases(cases);
}

} // namespace fagen::lab
