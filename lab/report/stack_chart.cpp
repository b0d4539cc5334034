// fagen: bars made of parts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stack_chart.h"

#include <algorithm>
#include <fmt/format.h>

namespace fagen::lab::page {

static constexpr double kRow = 26, kBarHeight = 18, kTop = 8, kPlot = 420, kAxis = 40, kRight = 24, kLegendRow = 16;
static constexpr int kStyles = 3; ///< of parts; neighbours differ

std::string partKey(size_t index) {
  return std::string(1, static_cast<char>(index < 26 ? 'A' + index : 'a' + (index - 26) % 26));
}

static size_t indexOf(const std::vector<std::string> &names, const std::string &name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

static void drawStack(Canvas &canvas, const Scale &scale, const std::vector<std::string> &names, const Stack &stack,
                      double top) {
  const double middle = top + kRow / 2;
  canvas.text(scale.begin() - 6, middle + 4, Anchor::End, stack.label);
  double begin = 0;
  for (const StackPart &part : stack.parts) {
    const size_t index = indexOf(names, part.name);
    const double x = scale.at(100 * begin), width = scale.at(100 * (begin + part.share)) - x;
    const std::string key = partKey(index), percent = fmt::format("{:.0f}", 100 * part.share);
    canvas.rect(x, middle - kBarHeight / 2, width, kBarHeight, fmt::format("part{}", index % kStyles),
                fmt::format("{}: {} {:.1f} %", stack.label, part.name, 100 * part.share));
    if (width >= textWidth(key + " " + percent) + 4)
      canvas.text(x + width / 2, middle + 4, Anchor::Middle, key + " " + percent);
    else if (width >= textWidth(key) + 2)
      canvas.text(x + width / 2, middle + 4, Anchor::Middle, key);
    begin += part.share;
  }
}

/// Lines of "A name"; returns where they end.
static double drawLegend(Canvas &canvas, const std::vector<std::string> &names, double left, double width, double top) {
  double x = left;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string text = partKey(i) + " " + names[i];
    const double needed = 16 + textWidth(text) + 14;
    if (x > left && x + needed > left + width) {
      x = left;
      top += kLegendRow;
    }
    canvas.rect(x, top, 11, 11, fmt::format("part{}", i % kStyles));
    canvas.text(x + 16, top + 10, Anchor::Start, text);
    x += needed;
  }
  return top + kLegendRow;
}

Chart stackChart(const std::string &id, const std::string &title, const std::vector<std::string> &names,
                 const std::vector<Stack> &stacks) {
  double left = 40;
  for (const Stack &stack : stacks)
    left = std::max(left, textWidth(stack.label) + 14);
  const Scale scale = Scale::linear(0, 100, left, left + kPlot);
  const double bottom = kTop + kRow * static_cast<double>(stacks.size());
  Canvas measure(id, title, 0, 0); // for the legend's height alone
  const double end = drawLegend(measure, names, 8, left + kPlot, bottom + kAxis);
  Canvas canvas(id, title, left + kPlot + kRight, end + 4);
  canvas.bottomAxis(scale, kTop, bottom, "share of a warp's time, %", 5);
  double top = kTop;
  for (const Stack &stack : stacks) {
    drawStack(canvas, scale, names, stack, top);
    top += kRow;
  }
  drawLegend(canvas, names, 8, left + kPlot, bottom + kAxis);
  return canvas.finish();
}

} // namespace fagen::lab::page
