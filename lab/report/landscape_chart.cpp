// fagen: what a search found, over the two axes that explain most of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "landscape_chart.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace fagen::lab::page {

static constexpr double kCellWidth = 74, kCellHeight = 36, kTop = 46, kRight = 16, kLegend = 28;
/// A cell within so much of the least time of all is as good as the best, or near it.
static constexpr double kBest = 1.02, kNear = 1.15;

bool naturalLess(const std::string &a, const std::string &b) {
  size_t i = 0, j = 0;
  const auto isDigit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (i < a.size() && j < b.size()) {
    if (isDigit(a[i]) && isDigit(b[j])) {
      const auto run = [&](const std::string &text, size_t &at) {
        const size_t begin = at;
        while (at < text.size() && isDigit(text[at]))
          ++at;
        const std::string digits = text.substr(begin, at - begin);
        const size_t first = digits.find_first_not_of('0');
        return first == std::string::npos ? std::string() : digits.substr(first);
      };
      const std::string x = run(a, i), y = run(b, j);
      if (x != y)
        return x.size() != y.size() ? x.size() < y.size() : x < y;
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i, ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

namespace {

struct Group {
  double sum = 0;
  double count = 0;
};

/// The variance between the values of an axis; 0 for an axis of one value.
double influenceOf(const std::string &axis, const std::vector<Found> &found) {
  std::map<std::string, Group> groups;
  Group all;
  for (const Found &candidate : found) {
    const auto value = candidate.settings.find(axis);
    Group &group = groups[value == candidate.settings.end() ? "" : value->second];
    for (Group *of : {&group, &all}) {
      of->sum += std::log(candidate.microseconds);
      of->count += 1;
    }
  }
  double between = 0;
  for (const auto &[value, group] : groups)
    between += group.count * std::pow(group.sum / group.count - all.sum / all.count, 2);
  return groups.size() < 2 ? -1 : between / all.count;
}

} // namespace

std::vector<std::string> axesByInfluence(const std::vector<Found> &found) {
  std::map<std::string, double> influence;
  for (const Found &candidate : found)
    for (const auto &[axis, value] : candidate.settings)
      if (!influence.count(axis))
        influence[axis] = influenceOf(axis, found);
  std::vector<std::string> axes;
  for (const auto &[axis, strength] : influence)
    if (strength >= 0)
      axes.push_back(axis);
  std::stable_sort(axes.begin(), axes.end(),
                   [&](const std::string &a, const std::string &b) { return influence[a] > influence[b]; });
  return axes;
}

namespace {

struct Cell {
  double least = std::numeric_limits<double>::infinity();
  int count = 0;
};

struct Landscape {
  std::string rowAxis, columnAxis; ///< the latter may be empty
  std::vector<std::string> rows, columns;
  std::map<std::pair<std::string, std::string>, Cell> cells;
  double least = std::numeric_limits<double>::infinity();
};

std::string valueOf(const Found &candidate, const std::string &axis) {
  const auto value = candidate.settings.find(axis);
  return value == candidate.settings.end() ? "-" : value->second;
}

void addValue(std::vector<std::string> &values, const std::string &value) {
  if (std::find(values.begin(), values.end(), value) == values.end())
    values.push_back(value);
}

Landscape gather(const std::vector<Found> &found, const std::vector<std::string> &axes) {
  Landscape landscape;
  landscape.rowAxis = axes[0];
  landscape.columnAxis = axes.size() > 1 ? axes[1] : "";
  for (const Found &candidate : found) {
    const std::string row = valueOf(candidate, landscape.rowAxis);
    const std::string column = axes.size() > 1 ? valueOf(candidate, landscape.columnAxis) : "all";
    addValue(landscape.rows, row);
    addValue(landscape.columns, column);
    Cell &cell = landscape.cells[{row, column}];
    cell.least = std::min(cell.least, candidate.microseconds);
    ++cell.count;
    landscape.least = std::min(landscape.least, candidate.microseconds);
  }
  std::sort(landscape.rows.begin(), landscape.rows.end(), naturalLess);
  std::sort(landscape.columns.begin(), landscape.columns.end(), naturalLess);
  return landscape;
}

void drawCell(Canvas &canvas, const Landscape &landscape, const Cell *cell, double x, double y) {
  if (!cell) {
    canvas.text(x + kCellWidth / 2, y + kCellHeight / 2 + 4, Anchor::Middle, "-", "dim");
    return;
  }
  const double slowdown = cell->least / landscape.least;
  const bool isBest = slowdown <= kBest;
  canvas.rect(x + 1, y + 1, kCellWidth - 2, kCellHeight - 2, isBest ? "part2" : slowdown <= kNear ? "part0" : "part1");
  canvas.text(x + kCellWidth / 2, y + 16, Anchor::Middle, numberText(cell->least), isBest ? "strong" : "");
  canvas.text(x + kCellWidth / 2, y + 29, Anchor::Middle, fmt::format("of {}", cell->count), "");
  if (slowdown == 1)
    canvas.rect(x + 2, y + 2, kCellWidth - 4, kCellHeight - 4, "best");
}

} // namespace

std::optional<Chart> landscapeChart(const std::string &id, const std::string &title, const std::vector<Found> &found) {
  const std::vector<std::string> axes = axesByInfluence(found);
  if (axes.empty())
    return std::nullopt;
  const Landscape landscape = gather(found, axes);
  double left = textWidth(landscape.rowAxis) + 16;
  for (const std::string &row : landscape.rows)
    left = std::max(left, textWidth(row) + 16);
  const std::string legend = fmt::format("least us, of how many candidates; framed: the best; dark: within {:.0f} %, "
                                         "light: within {:.0f} % of it",
                                         100 * (kBest - 1), 100 * (kNear - 1));
  const double width =
      std::max(left + kCellWidth * static_cast<double>(landscape.columns.size()) + kRight, textWidth(legend) + 20);
  const double bottom = kTop + kCellHeight * static_cast<double>(landscape.rows.size());
  Canvas canvas(id, title, width, bottom + kLegend);
  canvas.text(left, 16, Anchor::Start, landscape.columnAxis, "strong");
  canvas.text(left - 8, kTop - 8, Anchor::End, landscape.rowAxis, "strong");
  for (size_t j = 0; j < landscape.columns.size(); ++j)
    canvas.text(left + kCellWidth * (static_cast<double>(j) + 0.5), kTop - 8, Anchor::Middle, landscape.columns[j]);
  for (size_t i = 0; i < landscape.rows.size(); ++i) {
    const double y = kTop + kCellHeight * static_cast<double>(i);
    canvas.text(left - 8, y + kCellHeight / 2 + 4, Anchor::End, landscape.rows[i]);
    for (size_t j = 0; j < landscape.columns.size(); ++j) {
      const auto cell = landscape.cells.find({landscape.rows[i], landscape.columns[j]});
      drawCell(canvas, landscape, cell == landscape.cells.end() ? nullptr : &cell->second,
               left + kCellWidth * static_cast<double>(j), y);
    }
  }
  canvas.text(8, bottom + 18, Anchor::Start, legend, "dim");
  return canvas.finish();
}

} // namespace fagen::lab::page
