// fagen: functions of one number, in f64, with the error that the GPU's instructions have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "function.h"

#include <algorithm>
#include <cmath>

namespace fagen::lab {

/// PTX bounds tanh.approx.f32 by this, relative.
static constexpr double kTanhError = 0x1p-11;

static double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

static constexpr Function kFunctions[] = {
    {"relu", [](double x) { return std::max(x, 0.0); }, 1, [](double) { return 0.0; }},
    {"tanh", [](double x) { return std::tanh(x); }, 1, [](double x) { return kTanhError * std::abs(std::tanh(x)); }},
    {"gelu", gelu, 1.13, [](double x) { return 0.5 * std::abs(x) * kTanhError; }},
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
