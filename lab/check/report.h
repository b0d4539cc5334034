// fagen: results as tables for people and as JSON for scripts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "check.h"

#include <nlohmann/json.hpp>

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

/// "580.159.04" of the line that the NVIDIA driver says of itself in /proc; the line itself when there is none in it.
std::string driverVersionOf(const std::string &line);
/// CPU, operating system, and, when given, GPU, driver and NVRTC.
Json describeMachine(const class Gpu *gpu);

std::string checkTable(const CheckReport &report);
/// Failures with the command that shows each again; at most `limit`, then how many more there are.
std::string checkFailures(const CheckReport &report, const CheckOptions &options, size_t limit = 20);
Json checkJson(const CheckReport &report, const CheckOptions &options);

} // namespace fagen::lab
