// fagen: a reader of JSON, each of whose values knows its line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fagen {

struct Json {
  enum Kind : uint8_t { Null, Boolean, Whole, Decimal, Text, List, Object };

  Kind kind = Null;
  unsigned line = 1;             ///< where it begins
  int64_t whole = 0;             ///< of Boolean and Whole
  double decimal = 0;            ///< of Whole and Decimal
  std::string text;              ///< UTF-8, without control characters but tab and line feed
  std::vector<Json> items;       ///< of a List and an Object
  std::vector<std::string> keys; ///< of an Object, one for each item; none twice

  /// An object's value; null when it has none of this key, or is no object.
  const Json *find(std::string_view key) const;
};

/// What is wrong with a text, and in which line.
struct JsonError : std::runtime_error {
  JsonError(unsigned line, const std::string &what) : std::runtime_error(what), line(line) {}
  unsigned line;
};

/// The one value of a text. JsonError for a text that is not JSON in UTF-8, or nests deeper than 64 values.
Json parseJson(std::string_view text);

/// For messages: the text in quotes, cut where it is long, '?' for what no line can show.
std::string inQuotes(std::string_view text);

} // namespace fagen
