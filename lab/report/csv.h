// fagen: a table of comma-separated values (RFC 4180) whose columns are found by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fagen::lab::page {

class Csv {
public:
  /// Reads a file with a head line. UserError with the file, the line, the reason and `remedy`; so do all errors below.
  static Csv read(const std::string &file, const std::string &remedy);

  size_t size() const { return rows.size(); }
  bool hasColumn(const std::string &column) const { return find(column).has_value(); }
  const std::string &text(size_t row, const std::string &column) const;
  /// Nothing where the cell is empty.
  std::optional<double> number(size_t row, const std::string &column) const;

private:
  struct Row {
    size_t line; ///< of the file
    std::vector<std::string> cells;
  };
  std::optional<size_t> find(const std::string &column) const;
  [[noreturn]] void fail(size_t line, const std::string &what) const;
  void parse(const std::string &text);

  std::string file, remedy;
  std::vector<std::string> head;
  std::vector<Row> rows;
};

} // namespace fagen::lab::page
