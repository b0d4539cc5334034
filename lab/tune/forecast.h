// fagen: what the compiler's time model expects of a problem's schedules. Nothing is run, and no GPU is needed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "tune.h"

namespace fagen::lab::tune {

/// A GPU that need not be here.
struct ForecastGpu {
  std::string name;
  uint32_t sm = 0, sms = 0;
};

/// The schedules of one problem, those that are expected to be fastest first.
struct Forecast {
  Case problem;
  BaseKernel base;
  Space space; ///< its estimates are the model's; the first of its points is what the spec ships
  std::vector<Point> ranked;
};

/// Ranks the schedules of each problem. UserError where no row of the spec computes a problem on the GPU, and where the
/// model knows nothing of the kernels on it.
std::vector<Forecast> forecast(const TuneOptions &options, const ForecastGpu &gpu, const TuneProgress &progress);

/// The first schedules of each problem next to what is shipped.
std::string forecastTable(const std::vector<Forecast> &forecasts, const ForecastGpu &gpu);
Json forecastJson(const std::vector<Forecast> &forecasts, const ForecastGpu &gpu);

} // namespace fagen::lab::tune
