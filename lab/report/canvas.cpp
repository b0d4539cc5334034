// fagen: what charts are drawn on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "canvas.h"

#include <fmt/format.h>

namespace fagen::lab::page {

/// Of one letter of the 11 pixel sans-serif, also of a wide or bold one.
static constexpr double kLetterWidth = 6.7;

std::string chartStyle() {
  return R"(:root { --page: #fff; --ink: #1b1d21; --dim: #59616b; --rule: #d3d7dd; --fill: #2b5d8a; --onfill: #fff;
 --pale: #c7d8e8; --mid: #86abcb; --alarm: #9c2c1a }
@media screen and (prefers-color-scheme: dark) {
:root { --page: #15171b; --ink: #e3e6ea; --dim: #a2abb5; --rule: #3a4048; --fill: #7fb2e0; --onfill: #10151a;
 --pale: #2a4157; --mid: #4a769c; --alarm: #ff9c86 }
}
svg text { font: 11px sans-serif; fill: var(--ink) }
svg .dim { fill: var(--dim) }
svg .strong { font-weight: bold }
svg .inverse { fill: var(--onfill) }
svg .page { fill: var(--page) }
svg .grid { stroke: var(--rule); stroke-width: 0.7 }
svg .axis { stroke: var(--dim); stroke-width: 1 }
svg .ours { fill: var(--fill); stroke: var(--ink); stroke-width: 0.8 }
svg .other { fill: var(--page); stroke: var(--ink); stroke-width: 1 }
svg .whisker { stroke: var(--ink); stroke-width: 1.4 }
svg .part0 { fill: var(--pale); stroke: var(--ink); stroke-width: 0.6 }
svg .part1 { fill: var(--page); stroke: var(--ink); stroke-width: 0.6 }
svg .part2 { fill: var(--mid); stroke: var(--ink); stroke-width: 0.6 }
svg .roof { fill: none; stroke: var(--ink); stroke-width: 1.6 }
svg .curve { fill: none; stroke: var(--fill); stroke-width: 1.8 }
svg .dashed { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 5 3 }
svg .drop { stroke: var(--dim); stroke-width: 1; stroke-dasharray: 2 2 }
svg .dot { fill: var(--fill); stroke: var(--ink); stroke-width: 0.6 }
svg .hollow { fill: var(--page); stroke: var(--ink); stroke-width: 1.2 }
svg .bad { fill: none; stroke: var(--alarm); stroke-width: 1.3 }
svg .best { fill: none; stroke: var(--ink); stroke-width: 2.4 }
)";
}

std::string Chart::standalone() const {
  const size_t head = body.find('>') + 1;
  return body.substr(0, head) + "<style>" + chartStyle() + "</style>" + body.substr(head) + "\n";
}

double textWidth(const std::string &text) {
  double letters = 0;
  for (char byte : text)
    letters += (static_cast<unsigned char>(byte) & 0xc0) != 0x80; // the first byte of each character
  return letters * kLetterWidth;
}

void Canvas::shape(const std::string &name, std::vector<Attribute> attributes, const std::string &hint) {
  body += element(name, attributes, hint.empty() ? "" : textElement("title", {}, hint)) + "\n";
}

void Canvas::rect(double x, double y, double w, double h, const std::string &style, const std::string &hint) {
  shape("rect", {{"class", style}, {"x", pixels(x)}, {"y", pixels(y)}, {"width", pixels(w)}, {"height", pixels(h)}},
        hint);
}

void Canvas::line(double x1, double y1, double x2, double y2, const std::string &style) {
  shape("line", {{"class", style}, {"x1", pixels(x1)}, {"y1", pixels(y1)}, {"x2", pixels(x2)}, {"y2", pixels(y2)}}, "");
}

void Canvas::circle(double x, double y, double radius, const std::string &style, const std::string &hint) {
  shape("circle", {{"class", style}, {"cx", pixels(x)}, {"cy", pixels(y)}, {"r", pixels(radius)}}, hint);
}

void Canvas::cross(double x, double y, double radius, const std::string &style, const std::string &hint) {
  const std::string size = pixels(2 * radius);
  shape("path",
        {{"class", style},
         {"d", fmt::format("M{} {}l{} {}m-{} 0l{} -{}", pixels(x - radius), pixels(y - radius), size, size, size, size,
                           size)}},
        hint);
}

void Canvas::path(const std::vector<std::pair<double, double>> &points, const std::string &style) {
  std::string d;
  for (const auto &[x, y] : points)
    d += fmt::format("{}{} {}", d.empty() ? "M" : "L", pixels(x), pixels(y));
  shape("path", {{"class", style}, {"d", d}}, "");
}

static std::string_view nameOf(Anchor anchor) {
  return anchor == Anchor::Start ? "start" : anchor == Anchor::Middle ? "middle" : "end";
}

void Canvas::text(double x, double y, Anchor anchor, const std::string &text, const std::string &style) {
  std::vector<Attribute> attributes = {
      {"x", pixels(x)}, {"y", pixels(y)}, {"text-anchor", std::string(nameOf(anchor))}};
  if (!style.empty())
    attributes.push_back({"class", style});
  body += textElement("text", attributes, text) + "\n";
}

void Canvas::upright(double x, double y, const std::string &text, const std::string &style) {
  body += textElement("text",
                      {{"x", pixels(x)},
                       {"y", pixels(y)},
                       {"text-anchor", "middle"},
                       {"class", style},
                       {"transform", fmt::format("rotate(-90 {} {})", pixels(x), pixels(y))}},
                      text) +
          "\n";
}

void Canvas::bottomAxis(const Scale &scale, double top, double bottom, const std::string &label, int ticks) {
  for (double tick : scale.ticks(ticks)) {
    line(scale.at(tick), top, scale.at(tick), bottom, "grid");
    text(scale.at(tick), bottom + 14, Anchor::Middle, numberText(tick), "dim");
  }
  line(scale.begin(), bottom, scale.end(), bottom, "axis");
  text((scale.begin() + scale.end()) / 2, bottom + 29, Anchor::Middle, label, "dim");
}

void Canvas::leftAxis(const Scale &scale, double left, double right, const std::string &label, int ticks) {
  for (double tick : scale.ticks(ticks)) {
    line(left, scale.at(tick), right, scale.at(tick), "grid");
    text(left - 6, scale.at(tick) + 4, Anchor::End, numberText(tick), "dim");
  }
  line(left, scale.begin(), left, scale.end(), "axis");
  upright(12, (scale.begin() + scale.end()) / 2, label, "dim");
}

Chart Canvas::finish() const {
  const std::string inside =
      textElement("title", {{"id", id + "-title"}}, title) + "\n" +
      element("rect", {{"class", "page"}, {"width", pixels(width)}, {"height", pixels(height)}}) + "\n" + body;
  return {id, element("svg",
                      {{"xmlns", "http://www.w3.org/2000/svg"},
                       {"id", id},
                       {"role", "img"},
                       {"aria-labelledby", id + "-title"},
                       {"width", pixels(width)},
                       {"height", pixels(height)},
                       {"viewBox", fmt::format("0 0 {} {}", pixels(width), pixels(height))}},
                      inside)};
}

} // namespace fagen::lab::page
