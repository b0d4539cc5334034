// fagen: functions of one number, in f64, with the error that the GPU's instructions have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "function.h"

#include "elements.h"

#include <algorithm>
#include <cmath>

namespace fagen::lab {

/// PTX bounds tanh.approx.f32 by this, relative.
static constexpr double kTanhError = 0x1p-11;
/// ex2.approx.ftz.f32, relative; lg2.approx.f32, absolute near 1 and relative elsewhere; sqrt and div.approx, relative.
static constexpr double kExp2Error = 0x1p-22, kLog2Error = 0x1p-22, kRootError = 0x1p-22;

static double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
static double itself(double x) { return x; }
static double sameError(double, double of) { return of; }

static double errorOfExp2(double x, double of) {
  return std::exp2(x) * (std::expm1(of * M_LN2) * (1 + kExp2Error) + kExp2Error);
}
static double errorOfLog2(double x, double of) {
  const double own = kLog2Error * std::max(1.0, std::abs(std::log2(x)));
  return of == 0 ? own : of < x ? own - std::log2(1 - of / x) : INFINITY;
}
static double errorOfSqrt(double x, double of) {
  const double root = std::sqrt(x);
  return kRootError * root + (of == 0 ? 0 : of / (root + std::sqrt(std::max(x - of, 0.0))));
}

static constexpr Function kFunctions[] = {
    {"relu", [](double x) { return std::max(x, 0.0); }, sameError},
    {"tanh", [](double x) { return std::tanh(x); },
     [](double x, double of) { return of + kTanhError * std::abs(std::tanh(x)); }},
    {"gelu", gelu, [](double x, double of) { return 1.13 * of + 0.5 * std::abs(x) * kTanhError; }},
    {"exp2", [](double x) { return std::exp2(x); }, errorOfExp2},
    {"log2", [](double x) { return std::log2(x); }, errorOfLog2},
    {"abs", [](double x) { return std::abs(x); }, sameError},
    {"sqrt", [](double x) { return std::sqrt(x); }, errorOfSqrt},
    {"f32", itself, sameError},
    // Rounded there, once; to which side of a tie is not known.
    {"f16", itself, [](double x, double of) { return of + 0x1p-11 * (std::abs(x) + of) + 0x1p-25; }},
    {"e4m3", [](double x) { return saturated(Element::E4M3, x); },
     [](double x, double of) { return of + 0x1p-4 * (std::abs(x) + of) + 0x1p-10; }},
    {"bf16", itself, [](double x, double of) { return of + 0x1p-8 * (std::abs(x) + of) + 0x1p-134; }},
};

const Function *functionNamed(const std::string &name) {
  const auto *const found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                         [&](const Function &function) { return function.name == name; });
  return found == std::end(kFunctions) ? nullptr : found;
}

std::string functionNames() {
  std::string names;
  for (const Function &function : kFunctions)
    names += (names.empty() ? "" : ", ") + std::string(function.name);
  return names;
}

} // namespace fagen::lab
