// fagen: integer expressions over a program's sizes: shapes, grids, scalars.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace fagen::lab {

/// Named integers: the sizes that the user gave, and `sms`.
using Sizes = std::map<std::string, int64_t>;

/// An integer expression in postfix order, as in a set's manifest: numbers, names, operations.
class SizeExpr {
public:
  SizeExpr() = default;
  /// From a JSON array of integers and strings, dumped; UserError where it is malformed.
  explicit SizeExpr(std::vector<std::variant<int64_t, std::string>> terms);

  /// UserError for a name without a value, a division by zero, or a value beyond 64 bits.
  int64_t evaluate(const Sizes &sizes) const;
  /// The names in it that are no operations.
  std::vector<std::string> names() const;

private:
  std::vector<std::variant<int64_t, std::string>> terms;
};

} // namespace fagen::lab
