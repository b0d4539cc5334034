// fagen: what commands print: tables for people, JSON for scripts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fagen::lab {

using Json = nlohmann::ordered_json;

/// Aligned columns with a rule under the head; numbers are the caller's text, right-aligned when `right` says so.
class TextTable {
public:
  struct Column {
    std::string head;
    bool right = false;
  };
  explicit TextTable(std::vector<Column> columns) : columns(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  std::string text() const;

private:
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

} // namespace fagen::lab
