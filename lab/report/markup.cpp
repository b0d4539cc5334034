// fagen: elements of HTML and SVG as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "markup.h"

#include "lab/support/user_error.h"

#include <cmath>
#include <fmt/format.h>

namespace fagen::lab::page {

/// Bytes of the UTF-8 character at the begin of `text`; 0 when it is none, or one that XML does not allow.
static size_t characterBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const size_t bytes = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (bytes <= 1)
    return bytes;
  if (text.size() < bytes)
    return 0;
  unsigned code = first & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (byte(i) >> 6 != 2)
      return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr unsigned kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool isSurrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[bytes] || code > 0x10ffff || isSurrogate || code == 0xfffe || code == 0xffff ? 0 : bytes;
}

static void appendCharacter(std::string &out, std::string_view character) {
  switch (character[0]) {
  case '&':
    out += "&amp;";
    return;
  case '<':
    out += "&lt;";
    return;
  case '>':
    out += "&gt;";
    return;
  case '"':
    out += "&quot;";
    return;
  default:
    if (static_cast<unsigned char>(character[0]) < 0x20 || character[0] == 0x7f)
      out += ' ';
    else
      out += character;
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = characterBytes(text);
    if (bytes == 0)
      out += "\xef\xbf\xbd";
    else
      appendCharacter(out, text.substr(0, bytes));
    text.remove_prefix(bytes ? bytes : 1);
  }
  return out;
}

std::string element(std::string_view name, const std::vector<Attribute> &attributes, std::string_view content) {
  std::string out = fmt::format("<{}", name);
  for (const Attribute &attribute : attributes)
    out += fmt::format(" {}=\"{}\"", attribute.name, escaped(attribute.value));
  return content.empty() ? out + "/>" : fmt::format("{}>{}</{}>", out, content, name);
}

std::string textElement(std::string_view name, const std::vector<Attribute> &attributes, std::string_view text) {
  return element(name, attributes, escaped(text));
}

std::string pixels(double value) {
  if (!std::isfinite(value))
    throw UserError(fmt::format("the inputs have numbers that no chart can show: a coordinate is {}", value));
  const double tenths = std::round(value * 10) / 10;
  return tenths == std::round(tenths) ? fmt::format("{:.0f}", tenths + 0.0) : fmt::format("{:.1f}", tenths);
}

} // namespace fagen::lab::page
