// fagen: tables for people.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "text_table.h"

#include <algorithm>
#include <fmt/format.h>

namespace fagen::lab {

std::string TextTable::text() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    widths.push_back(columns[i].head.size());
    for (const auto &row : rows)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  auto line = [&](auto cell) {
    std::string row;
    for (size_t i = 0; i < columns.size(); ++i)
      row +=
          columns[i].right ? fmt::format("{:>{}}  ", cell(i), widths[i]) : fmt::format("{:<{}}  ", cell(i), widths[i]);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  };
  line([&](size_t i) { return columns[i].head; });
  line([&](size_t i) { return std::string(widths[i], '-'); });
  for (const auto &row : rows)
    line([&](size_t i) { return row[i]; });
  return text;
}

} // namespace fagen::lab
