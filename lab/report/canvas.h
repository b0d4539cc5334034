// fagen: what charts are drawn on: shapes and text of an SVG picture.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "markup.h"
#include "scale.h"

namespace fagen::lab::page {

enum class Anchor { Start, Middle, End };

/// A finished picture. Its looks come from chartStyle(), of the page or its own.
struct Chart {
  std::string id;   ///< unique within a page; also the name of its file
  std::string body; ///< `<svg ...>` ... `</svg>` without style

  /// As a file of its own.
  std::string standalone() const;
};

/// CSS of every chart: on paper, on light and on dark screens.
std::string chartStyle();

class Canvas {
public:
  Canvas(std::string id, std::string title, double width, double height)
      : id(std::move(id)), title(std::move(title)), width(width), height(height) {}

  /// Each has a class of chartStyle(); `hint` shows where the pointer rests and is read aloud.
  void rect(double x, double y, double w, double h, const std::string &style, const std::string &hint = "");
  void line(double x1, double y1, double x2, double y2, const std::string &style);
  void circle(double x, double y, double radius, const std::string &style, const std::string &hint = "");
  /// A cross, where a circle would say too much.
  void cross(double x, double y, double radius, const std::string &style, const std::string &hint = "");
  void path(const std::vector<std::pair<double, double>> &points, const std::string &style);
  void text(double x, double y, Anchor anchor, const std::string &text, const std::string &style = "");
  /// Turned by a quarter, read upwards.
  void upright(double x, double y, const std::string &text, const std::string &style = "");

  /// Ticks with numbers below the plot from `top` to `bottom`, with light lines through it.
  void bottomAxis(const Scale &scale, double top, double bottom, const std::string &label, int ticks);
  /// The same at the left of the plot from `left` to `right`.
  void leftAxis(const Scale &scale, double left, double right, const std::string &label, int ticks);

  Chart finish() const;

private:
  void shape(const std::string &name, std::vector<Attribute> attributes, const std::string &hint);

  std::string id, title, body;
  double width, height;
};

/// About how wide a text of a chart is.
double textWidth(const std::string &text);

} // namespace fagen::lab::page
