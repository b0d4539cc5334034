// fagen: how deep a text of JSON nests, asked before a parser that calls itself for each level reads it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace fagen {

/// Files that fagen writes nest less than 10 values.
inline constexpr unsigned kMostNestedJson = 64;

/// The line, from 1, in which a text nests deeper than kMostNestedJson values. Nothing where it does not, whether it is
/// JSON or not.
inline std::optional<size_t> lineNestedTooDeep(std::string_view text) {
  unsigned depth = 0;
  size_t line = 1;
  bool isInText = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    line += c == '\n';
    if (isInText && c == '\\')
      ++i; // whatever it stands before is part of the text
    else if (c == '"')
      isInText = !isInText;
    else if (!isInText && (c == '[' || c == '{') && ++depth > kMostNestedJson)
      return line;
    else if (!isInText && (c == ']' || c == '}') && depth != 0)
      --depth;
  }
  return std::nullopt;
}

} // namespace fagen
