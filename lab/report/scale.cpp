// fagen: from values to pixels, and which values an axis names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scale.h"

#include "lab/support/user_error.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fagen::lab::page {

/// Of a tick's distance: what rounding may cost.
static constexpr double kSlack = 1e-9;
/// Of a scale's numbers: what is no wider than this is one number, between which no tick can be told from the next.
static constexpr double kNarrow = 1e-12;

Scale::Scale(bool isLog, double low, double high, double begin, double end)
    : isLog(isLog), lowest(std::min(low, high)), highest(std::max(low, high)), first(begin), last(end) {
  if (!std::isfinite(low) || !std::isfinite(high) || (isLog && lowest <= 0))
    throw UserError(fmt::format("the inputs have numbers that no chart can show: there is no {} scale from {} to {}",
                                isLog ? "logarithmic" : "linear", low, high));
  if (highest - lowest <= kNarrow * std::max(std::abs(lowest), std::abs(highest))) {
    const double margin = isLog ? 0 : std::max(std::abs(lowest) / 2, 0.5);
    lowest = isLog ? lowest / 2 : lowest - margin;
    highest = isLog ? highest * 2 : highest + margin;
  }
}

Scale Scale::linear(double low, double high, double begin, double end) { return {false, low, high, begin, end}; }
Scale Scale::logarithmic(double low, double high, double begin, double end) { return {true, low, high, begin, end}; }

double Scale::at(double value) const {
  const double part =
      isLog ? std::log(value / lowest) / std::log(highest / lowest) : (value - lowest) / (highest - lowest);
  return first + part * (last - first);
}

double roundStep(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (double factor : {1, 2, 5})
    if (factor * power >= step * (1 - kSlack))
      return factor * power;
  return 10 * power;
}

std::vector<double> Scale::linearTicks(int wanted) const {
  const double step = roundStep((highest - lowest) / wanted);
  std::vector<double> ticks;
  const double end = std::floor(highest / step + kSlack);
  for (double i = std::ceil(lowest / step - kSlack); i <= end; ++i)
    ticks.push_back(i * step);
  return ticks;
}

/// Powers of ten; with few of them in the scale also 2 and 5 times; with too many every second, third, ... one. A scale
/// too narrow for three of these is nearly linear.
std::vector<double> Scale::logTicks(int wanted) const {
  const double begin = std::floor(std::log10(lowest) + kSlack), end = std::ceil(std::log10(highest) - kSlack);
  const double stride = std::max(1.0, std::ceil((end - begin) / wanted));
  const auto ticksOf = [&](bool isDense) {
    std::vector<double> ticks;
    for (double power = begin; power <= end; power += stride)
      for (double factor : {1, 2, 5})
        if (const double tick = factor * std::pow(10, power);
            (factor == 1 || isDense) && tick >= lowest * (1 - kSlack) && tick <= highest * (1 + kSlack))
          ticks.push_back(tick);
    return ticks;
  };
  std::vector<double> ticks = ticksOf((end - begin) * 3 <= wanted);
  if (ticks.size() < 3)
    ticks = ticksOf(true);
  return ticks.size() < 3 ? linearTicks(wanted) : ticks;
}

std::vector<double> Scale::ticks(int wanted) const { return isLog ? logTicks(wanted) : linearTicks(wanted); }

Scale Scale::rounded(int wantedTicks) const {
  if (isLog)
    return {true, std::pow(10, std::floor(std::log10(lowest) + kSlack)),
            std::pow(10, std::ceil(std::log10(highest) - kSlack)), first, last};
  const double step = roundStep((highest - lowest) / wantedTicks);
  return {false, std::floor(lowest / step + kSlack) * step, std::ceil(highest / step - kSlack) * step, first, last};
}

std::string numberText(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value))
    return "-";
  if (size >= 1e12 || (size > 0 && size < 1e-3))
    return fmt::format("{:.3g}", value);
  const int whole = size < 1 ? 1 : static_cast<int>(std::floor(std::log10(size) + kSlack)) + 1;
  std::string text = fmt::format("{:.{}f}", value, std::max(0, 4 - whole));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
      text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

} // namespace fagen::lab::page
