// fagen: how a search went on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "progress_chart.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace fagen::lab::page {

static constexpr double kLeft = 64, kTop = 26, kWidth = 460, kHeight = 220, kRight = 80, kAxis = 40, kLegend = 24;

std::vector<std::optional<double>> bestSoFar(const std::vector<Evaluation> &evaluations) {
  std::vector<std::optional<double>> best;
  std::optional<double> least;
  for (const Evaluation &evaluation : evaluations) {
    if (evaluation.counts && evaluation.microseconds && (!least || *evaluation.microseconds < *least))
      least = evaluation.microseconds;
    best.push_back(least);
  }
  return best;
}

namespace {

/// Of what was timed and of what ships; slow outliers may be far away, so by logarithm.
std::optional<Scale> timesScale(const std::vector<Evaluation> &evaluations, std::optional<double> shipped) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  const auto take = [&](double microseconds) {
    low = std::min(low, microseconds);
    high = std::max(high, microseconds);
  };
  for (const Evaluation &evaluation : evaluations)
    if (evaluation.microseconds)
      take(*evaluation.microseconds);
  if (shipped)
    take(*shipped);
  if (high <= 0)
    return std::nullopt;
  return Scale::logarithmic(low * 0.95, high * 1.05, kTop + kHeight, kTop);
}

void drawBest(Canvas &canvas, const Scale &x, const Scale &y, const std::vector<Evaluation> &evaluations) {
  std::vector<std::pair<double, double>> steps;
  const auto best = bestSoFar(evaluations);
  for (size_t i = 0; i < best.size(); ++i) {
    if (!best[i])
      continue;
    const double at = x.at(static_cast<double>(i + 1)), height = y.at(*best[i]);
    if (!steps.empty() && steps.back().second != height)
      steps.push_back({at, steps.back().second});
    steps.push_back({at, height});
  }
  if (steps.empty())
    return;
  canvas.path(steps, "curve");
  canvas.text(steps.back().first + 8, steps.back().second + 4, Anchor::Start, numberText(*best.back()) + " us",
              "strong");
}

void drawEvaluation(Canvas &canvas, const Evaluation &evaluation, double x, const std::optional<Scale> &y) {
  const std::string hint =
      evaluation.candidate + ": " + evaluation.outcome +
      (evaluation.microseconds ? ", " + numberText(*evaluation.microseconds) + " us" : std::string());
  if (!evaluation.microseconds)
    canvas.cross(x, kTop - 10, 3, "bad", hint);
  else
    canvas.circle(x, y->at(*evaluation.microseconds), 2.6, evaluation.counts ? "dot" : "hollow", hint);
}

void drawLegend(Canvas &canvas, double y) {
  canvas.circle(kLeft + 4, y - 4, 2.6, "dot");
  canvas.text(kLeft + 12, y, Anchor::Start, "timed");
  canvas.circle(kLeft + 64, y - 4, 2.6, "hollow");
  canvas.text(kLeft + 72, y, Anchor::Start, "stopped early");
  canvas.cross(kLeft + 164, y - 4, 3, "bad");
  canvas.text(kLeft + 172, y, Anchor::Start, "no time (refused, wrong, hung, crashed)");
}

} // namespace

Chart progressChart(const std::string &id, const std::string &title, const std::vector<Evaluation> &evaluations,
                    std::optional<double> shippedMicros) {
  const double bottom = kTop + kHeight;
  Canvas canvas(id, title, kLeft + kWidth + kRight, bottom + kAxis + kLegend);
  const Scale x = Scale::linear(0, static_cast<double>(std::max<size_t>(evaluations.size(), 1)), kLeft, kLeft + kWidth);
  const std::optional<Scale> y = timesScale(evaluations, shippedMicros);
  canvas.bottomAxis(x, kTop, bottom, "evaluations", 8);
  if (y)
    canvas.leftAxis(*y, kLeft, kLeft + kWidth, "us a launch", 5);
  if (shippedMicros) {
    canvas.line(kLeft, y->at(*shippedMicros), kLeft + kWidth, y->at(*shippedMicros), "dashed");
    canvas.text(kLeft + kWidth + 8, y->at(*shippedMicros) - 6, Anchor::Start, "shipped");
  }
  for (size_t i = 0; i < evaluations.size(); ++i)
    drawEvaluation(canvas, evaluations[i], x.at(static_cast<double>(i + 1)), y);
  if (y)
    drawBest(canvas, x, *y, evaluations);
  drawLegend(canvas, bottom + kAxis + 14);
  return canvas.finish();
}

} // namespace fagen::lab::page
