// fagen: bars with confidence intervals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bar_chart.h"

#include <algorithm>

namespace fagen::lab::page {

static constexpr double kRow = 22, kBarHeight = 14, kTop = 8, kPlot = 300, kAxis = 40, kNumber = 60;

/// "10.1" or "10.1 (10 to 10.3)".
static std::string hintOf(const Bar &bar) {
  std::string text = bar.label + ": " + numberText(bar.value);
  if (bar.interval)
    text += " (" + numberText(bar.interval->low) + " to " + numberText(bar.interval->high) + ")";
  return text;
}

static void drawBar(Canvas &canvas, const Scale &scale, const Bar &bar, double top) {
  const double middle = top + kRow / 2;
  double end = scale.at(bar.value);
  canvas.text(scale.begin() - 6, middle + 4, Anchor::End, bar.label, bar.isOurs ? "strong" : "");
  canvas.rect(scale.begin(), middle - kBarHeight / 2, end - scale.begin(), kBarHeight, bar.isOurs ? "ours" : "other",
              hintOf(bar));
  if (bar.interval) {
    const double low = scale.at(bar.interval->low), high = scale.at(bar.interval->high);
    canvas.line(low, middle, high, middle, "whisker");
    for (double x : {low, high})
      canvas.line(x, middle - 4, x, middle + 4, "whisker");
    end = std::max(end, high);
  }
  canvas.text(end + 6, middle + 4, Anchor::Start, numberText(bar.value));
}

Chart barChart(const std::string &id, const std::string &title, const std::string &unit, const std::vector<Bar> &bars) {
  double left = 40, most = 0;
  for (const Bar &bar : bars) {
    left = std::max(left, textWidth(bar.label) + 14);
    most = std::max({most, bar.value, bar.interval ? bar.interval->high : 0});
  }
  const Scale scale = Scale::linear(0, most, left, left + kPlot).rounded(5);
  const double bottom = kTop + kRow * static_cast<double>(bars.size());
  Canvas canvas(id, title, left + kPlot + kNumber, bottom + kAxis);
  canvas.bottomAxis(scale, kTop, bottom, unit, 5);
  double top = kTop;
  for (const Bar &bar : bars) {
    drawBar(canvas, scale, bar, top);
    top += kRow;
  }
  return canvas.finish();
}

} // namespace fagen::lab::page
