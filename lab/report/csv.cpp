// fagen: a table of comma-separated values (RFC 4180) whose columns are found by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "csv.h"
#include "field.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fagen::lab::page {

Csv Csv::read(const std::string &file, const std::string &remedy) {
  Csv csv;
  csv.file = file;
  csv.remedy = remedy;
  csv.parse(readInput(file, remedy));
  if (csv.rows.empty())
    csv.fail(1, "there is no head line");
  csv.head = csv.rows.front().cells;
  csv.rows.erase(csv.rows.begin());
  for (const Row &row : csv.rows)
    if (row.cells.size() != csv.head.size())
      csv.fail(row.line, fmt::format("it has {} cells, and the head {}", row.cells.size(), csv.head.size()));
  return csv;
}

void Csv::fail(size_t line, const std::string &what) const {
  throw UserError(fmt::format("{}:{}: {}; {}", file, line, what, remedy));
}

void Csv::parse(const std::string &text) {
  Row row{1, {""}};
  size_t line = 1;
  bool isQuoted = false, isEmpty = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    line += letter == '\n';
    if (isQuoted && letter == '"' && text[i + 1] == '"') // a string ends with a 0
      row.cells.back() += text[++i];
    else if (letter == '"')
      isQuoted = !isQuoted;
    else if (isQuoted)
      row.cells.back() += letter;
    else if (letter == ',')
      row.cells.emplace_back();
    else if (letter == '\n') {
      if (!isEmpty)
        rows.push_back(std::move(row));
      row = {line, {""}};
      isEmpty = true;
      continue;
    } else if (letter != '\r')
      row.cells.back() += letter;
    isEmpty = isEmpty && letter == '\r';
  }
  if (isQuoted)
    fail(row.line, "a quote does not end");
  if (!isEmpty)
    rows.push_back(std::move(row));
}

std::optional<size_t> Csv::find(const std::string &column) const {
  const auto found = std::find(head.begin(), head.end(), column);
  return found == head.end() ? std::nullopt : std::optional<size_t>(found - head.begin());
}

const std::string &Csv::text(size_t row, const std::string &column) const {
  const std::optional<size_t> index = find(column);
  if (!index)
    fail(1, fmt::format("there is no column '{}'; it has {}", column, fmt::join(head, ", ")));
  return rows[row].cells[*index];
}

std::optional<double> Csv::number(size_t row, const std::string &column) const {
  const std::string &cell = text(row, column);
  if (cell.empty())
    return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !(std::abs(value) <= kMostNumber))
    fail(rows[row].line, fmt::format("{} '{}' is not a number", column, cell));
  return value;
}

} // namespace fagen::lab::page
