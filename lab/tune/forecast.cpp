// fagen: what the compiler's time model expects of a problem's schedules.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast.h"
#include "lab/kernel_set/listing.h"
#include "lab/support/write_file.h"
#include "rank.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fmt/format.h>
#include <system_error>

namespace fagen::lab::tune {

namespace fs = std::filesystem;

namespace {

constexpr size_t kShown = 10; ///< schedules of a problem

/// A directory of this process, which goes with it.
class Scratch {
public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "fagen-forecast-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw UserError(fmt::format("cannot make a directory '{}': {}", name, std::generic_category().message(errno)));
    path = name;
  }
  ~Scratch() {
    std::error_code error;
    fs::remove_all(path, error);
  }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;

  fs::path path;
};

/// The row that dispatch picks on the GPU.
std::pair<const KernelSet *, const fagen_row *> rowFor(const std::vector<std::unique_ptr<KernelSet>> &sets,
                                                       const Case &problem, const ForecastGpu &gpu) {
  const Explanation found = explain(sets, problem, gpu.sm, gpu.sms);
  for (const auto &set : sets)
    for (const fagen_row *row : set->rows())
      if (found.status == FAGEN_OK && row->variant == found.variant && row->target == found.target)
        return {set.get(), row};
  throw UserError(
      fmt::format("no row of the spec computes {} on {}; fagen-run explain says why, and --target builds for "
                  "another target",
                  formatCase(problem), gpu.name));
}

double microsecondsOf(const Forecast &forecast, const Point &point) {
  return forecast.space.estimates.at(point).microseconds;
}

Forecast forecastOf(const Case &problem, const std::vector<std::unique_ptr<KernelSet>> &sets, const Compiler &compiler,
                    const TuneOptions &options, const ForecastGpu &gpu, const fs::path &scratch,
                    const TuneProgress &progress) {
  Forecast result;
  result.problem = problem;
  auto [set, row] = rowFor(sets, problem, gpu);
  result.base = Compiler::baseOf(*set, *row);
  result.space = compiler.spaceOf(result.base, options.derived, scratch);
  result.ranked =
      rankPoints(compiler, result.base, result.space, problem, gpu.sm, scratch, [&](size_t done, size_t total) {
        progress(done, total, formatShape(problem.shape) + " | asking the time model");
      });
  std::erase_if(result.ranked, [&](const Point &point) { return microsecondsOf(result, point) == 0; });
  if (result.ranked.empty())
    throw UserError(
        fmt::format("the time model knows nothing of {} on {}; docs/internals/Model.md says of what it does",
                    row->variant, gpu.name));
  return result;
}

/// The first of the ranking, and the shipped one.
std::vector<Point> shownOf(const Forecast &forecast) {
  std::vector<Point> shown(forecast.ranked.begin(), forecast.ranked.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                                  kShown, forecast.ranked.size())));
  const Point &shipped = forecast.space.points.front();
  if (std::find(shown.begin(), shown.end(), shipped) == shown.end())
    shown.push_back(shipped);
  return shown;
}

} // namespace

std::vector<Forecast> forecast(const TuneOptions &options, const ForecastGpu &gpu, const TuneProgress &progress) {
  const Scratch scratch;
  const Compiler compiler(options.spec, options.target);
  compiler.compileSpec(scratch.path / "spec");
  const auto sets = loadKernelSets({(scratch.path / "spec").string()});
  std::vector<Forecast> forecasts;
  for (const Case &problem : options.problems)
    forecasts.push_back(forecastOf(problem, sets, compiler, options, gpu, scratch.path, progress));
  return forecasts;
}

std::string forecastTable(const std::vector<Forecast> &forecasts, const ForecastGpu &gpu) {
  TextTable table({{"shape"}, {"mask"}, {"schedule"}, {"predicted us", true}, {"of shipped", true}, {""}});
  for (const Forecast &forecast : forecasts) {
    const Point &shipped = forecast.space.points.front();
    const double ofShipped = microsecondsOf(forecast, shipped);
    for (const Point &point : shownOf(forecast)) {
      const double microseconds = microsecondsOf(forecast, point);
      table.add({formatShape(forecast.problem.shape), std::string(nameOf(forecast.problem.mask)),
                 nameOf(forecast.space, point), microseconds ? fmt::format("{:.2f}", microseconds) : "-",
                 microseconds && ofShipped ? fmt::format("{:.3f}", microseconds / ofShipped) : "-",
                 point == shipped ? "shipped" : ""});
    }
  }
  return table.text() +
         fmt::format("These are predictions of the compiler's time model for {} (sm_{}, {} SMs). Nothing was run, and "
                     "nothing was measured: fagen --tuned takes measured times only.\n",
                     gpu.name, gpu.sm, gpu.sms);
}

Json forecastJson(const std::vector<Forecast> &forecasts, const ForecastGpu &gpu) {
  Json studies = Json::array();
  for (const Forecast &forecast : forecasts) {
    Json ranked = Json::array();
    for (const Point &point : forecast.ranked)
      ranked.push_back({{"schedule", nameOf(forecast.space, point)},
                        {"settings", settingsOf(forecast.space, point)},
                        {"predicted_us", microsecondsOf(forecast, point)}});
    studies.push_back({{"problem", formatCase(forecast.problem)},
                       {"shipped", nameOf(forecast.space, forecast.space.points.front())},
                       {"ranked", std::move(ranked)}});
  }
  return {{"gpu", gpu.name}, {"sm", gpu.sm}, {"sms", gpu.sms}, {"measured", false}, {"studies", std::move(studies)}};
}

} // namespace fagen::lab::tune
