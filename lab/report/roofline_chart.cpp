// fagen: the roofline.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "roofline_chart.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fagen::lab::page {

static constexpr double kLeft = 64, kTop = 14, kWidth = 440, kHeight = 280, kRight = 20, kAxis = 40, kLegendRow = 16;

namespace {

struct Place {
  double intensity, teraflops; ///< FLOP a byte, TFLOP a second
};

Place floorOf(const RooflinePoint &point) {
  return {point.flops / point.leastBytes, point.flops / point.floorMicros / 1e6};
}

Place measuredOf(const RooflinePoint &point) {
  const double bytes = point.movedBytes > 0 ? point.movedBytes : point.leastBytes;
  return {point.flops / bytes, point.flops / point.microseconds / 1e6};
}

/// Where the two roofs meet, in FLOP a byte.
double ridgeOf(const Roof &roof) { return roof.teraflops * 1e3 / roof.gigabytes; }

struct Axes {
  Scale intensity, teraflops;
};

Axes axesFor(const Roof &roof, const std::vector<RooflinePoint> &points) {
  double left = ridgeOf(roof) / 3, right = ridgeOf(roof) * 3, low = roof.teraflops / 3, high = roof.teraflops * 1.2;
  for (const RooflinePoint &point : points)
    for (const Place &place : {floorOf(point), measuredOf(point)}) {
      left = std::min(left, place.intensity / 1.5);
      right = std::max(right, place.intensity * 1.5);
      low = std::min(low, place.teraflops / 1.5);
      high = std::max(high, place.teraflops * 1.2);
    }
  return {Scale::logarithmic(left, right, kLeft, kLeft + kWidth), Scale::logarithmic(low, high, kTop + kHeight, kTop)};
}

void drawRoofs(Canvas &canvas, const Axes &axes, const Roof &roof) {
  const double ridge = ridgeOf(roof), bottom = axes.teraflops.low();
  const double left = std::max(axes.intensity.low(), bottom * 1e3 / roof.gigabytes);
  canvas.path({{axes.intensity.at(left), axes.teraflops.at(left * roof.gigabytes / 1e3)},
               {axes.intensity.at(ridge), axes.teraflops.at(roof.teraflops)},
               {axes.intensity.end(), axes.teraflops.at(roof.teraflops)}},
              "roof");
  canvas.text(axes.intensity.end(), axes.teraflops.at(roof.teraflops) - 5, Anchor::End,
              numberText(roof.teraflops) + " TFLOP/s");
  const double middle = std::pow(left, 0.85) * std::pow(ridge, 0.15);
  canvas.text(axes.intensity.at(middle) + 8, axes.teraflops.at(middle * roof.gigabytes / 1e3) + 14, Anchor::Start,
              numberText(roof.gigabytes) + " GB/s");
}

void drawPoint(Canvas &canvas, const Axes &axes, const RooflinePoint &point, const std::string &number) {
  const Place floor = floorOf(point), measured = measuredOf(point);
  const double x = axes.intensity.at(measured.intensity), y = axes.teraflops.at(measured.teraflops);
  const double floorX = axes.intensity.at(floor.intensity), floorY = axes.teraflops.at(floor.teraflops);
  canvas.line(x, y, floorX, floorY, "drop");
  canvas.circle(floorX, floorY, 4, "hollow",
                fmt::format("{}: floor {} us, {} TFLOP/s", point.label, numberText(point.floorMicros),
                            numberText(floor.teraflops)));
  canvas.circle(x, y, 4, "dot",
                fmt::format("{}: {} us, {} TFLOP/s at {} FLOP/byte", point.label, numberText(point.microseconds),
                            numberText(measured.teraflops), numberText(measured.intensity)));
  canvas.text(x + 7, y + 4, Anchor::Start, number);
}

} // namespace

Chart rooflineChart(const std::string &id, const std::string &title, const Roof &roof,
                    const std::vector<RooflinePoint> &points) {
  const double bottom = kTop + kHeight, legend = bottom + kAxis + 14;
  double width = kLeft + kWidth + kRight;
  for (const RooflinePoint &point : points)
    width = std::max(width, kLeft + 30 + textWidth(point.label) + 20);
  Canvas canvas(id, title, width, legend + kLegendRow * static_cast<double>(points.size() + 1));
  const Axes axes = axesFor(roof, points);
  canvas.bottomAxis(axes.intensity, kTop, bottom, "FLOP per byte of DRAM", 6);
  canvas.leftAxis(axes.teraflops, kLeft, kLeft + kWidth, "TFLOP/s", 6);
  drawRoofs(canvas, axes, roof);
  canvas.circle(kLeft + 4, legend - 4, 4, "dot");
  canvas.text(kLeft + 14, legend, Anchor::Start, "measured");
  canvas.circle(kLeft + 94, legend - 4, 4, "hollow");
  canvas.text(kLeft + 104, legend, Anchor::Start, "the floor of the same problem");
  for (size_t i = 0; i < points.size(); ++i) {
    const std::string number = fmt::format("{}", i + 1);
    drawPoint(canvas, axes, points[i], number);
    canvas.text(kLeft, legend + kLegendRow * static_cast<double>(i + 1), Anchor::Start,
                number + "  " + points[i].label);
  }
  return canvas.finish();
}

} // namespace fagen::lab::page
