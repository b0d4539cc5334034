// fagen: a reader of JSON, each of whose values knows its line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace fagen {
namespace {

constexpr unsigned kMostNested = 64;
constexpr size_t kShown = 60; // characters of a text that a message quotes

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// How many bytes the character has that a text begins with; 0 where it is not UTF-8.
size_t characterBytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t bytes = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (bytes > text.size())
    return 0;
  for (size_t i = 1; i < bytes; ++i) {
    // Of the second byte, the ends keep out longer spellings than a character needs, surrogates, and what is too large.
    const unsigned low = i > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = i > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (const auto byte = static_cast<unsigned char>(text[i]); byte < low || byte > high)
      return 0;
  }
  return bytes;
}

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = characterBytes(text);
    if (bytes == 0)
      return false;
    text.remove_prefix(bytes);
  }
  return true;
}

class Parser {
public:
  explicit Parser(std::string_view text) : text(text) {}

  Json parse() {
    Json value;
    readValue(value, 0);
    skipSpace();
    if (at < text.size())
      fail("has " + shown() + " after its value");
    return value;
  }

private:
  [[noreturn]] void fail(const std::string &what) const { throw JsonError(line, what); }

  /// What stands here, for messages.
  std::string shown() const { return at < text.size() ? inQuotes(text.substr(at, 1)) : "nothing more"; }

  char peek() const { return at < text.size() ? text[at] : '\0'; }

  void skipSpace() {
    for (; at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t'); ++at)
      line += text[at] == '\n';
  }

  /// Whether this character comes next; if so, goes past it.
  bool take(char c) {
    skipSpace();
    const bool isNext = at < text.size() && text[at] == c;
    at += isNext;
    return isNext;
  }

  void readValue(Json &value, unsigned depth) {
    skipSpace();
    value.line = line;
    if (depth > kMostNested)
      fail("nests deeper than " + std::to_string(kMostNested) + " values");
    const char first = peek();
    if (first == '{' || first == '[')
      readItems(value, depth);
    else if (first == '"')
      value.kind = Json::Text, value.text = readText();
    else if (first == '-' || isDigit(first))
      readNumber(value);
    else
      readWord(value);
  }

  void readItems(Json &value, unsigned depth) {
    const bool isObject = text[at++] == '{';
    const char end = isObject ? '}' : ']';
    value.kind = isObject ? Json::Object : Json::List;
    if (take(end))
      return;
    do {
      if (isObject)
        value.keys.push_back(readKey());
      readValue(value.items.emplace_back(), depth + 1);
    } while (take(','));
    if (!take(end))
      fail(std::string("has ") + shown() + " where ',' or '" + end + "' belongs");
    refuseTwins(value.keys);
  }

  std::string readKey() {
    skipSpace();
    if (peek() != '"')
      fail("has " + shown() + " where a key in quotes belongs");
    std::string key = readText();
    if (!take(':'))
      fail("has " + shown() + " where ':' belongs");
    return key;
  }

  void refuseTwins(const std::vector<std::string> &keys) const {
    std::vector<std::string_view> sorted(keys.begin(), keys.end());
    std::sort(sorted.begin(), sorted.end());
    if (auto twin = std::adjacent_find(sorted.begin(), sorted.end()); twin != sorted.end())
      fail("has the key " + inQuotes(*twin) + " twice");
  }

  std::string readText() {
    std::string result;
    for (++at; at < text.size() && text[at] != '"';) {
      const size_t plain = std::min(text.find_first_of("\"\\", at), text.size());
      for (; at < plain; ++at)
        if (static_cast<unsigned char>(text[at]) < ' ')
          fail("has a control character in a text");
        else
          result += text[at];
      if (peek() == '\\')
        readEscape(result);
    }
    if (at++ >= text.size())
      fail("ends within a text");
    if (!isUtf8(result))
      fail("has the text " + inQuotes(result) + ", which is not UTF-8");
    return result;
  }

  void readEscape(std::string &result) {
    static constexpr std::string_view kNames = "\"\\/tn", kCharacters = "\"\\/\t\n";
    ++at;
    const char name = peek();
    ++at;
    if (const size_t i = kNames.find(name); i != std::string_view::npos)
      result += kCharacters[i];
    else if (name == 'u')
      addUtf8(result, readCodePoint());
    else
      fail("has the escape " + inQuotes(std::string("\\") + name) + " in a text");
  }

  /// The four digits after \u, and those of the other half of a pair.
  uint32_t readCodePoint() {
    uint32_t point = readHex();
    if (point >= 0xD800 && point < 0xDC00 && text.substr(at, 2) == "\\u") {
      at += 2;
      const uint32_t low = readHex();
      point = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00) : 0;
    }
    if (point < ' ' && point != '\t' && point != '\n')
      fail("has a control character in a text");
    if (point >= 0xD800 && point < 0xE000)
      fail("has half a character in a text");
    return point;
  }

  uint32_t readHex() {
    uint32_t value = 0;
    const std::string_view digits = text.substr(std::min(at, text.size()), 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || digits.size() != 4 || end != digits.data() + 4)
      fail("has an escape \\u without four hexadecimal digits");
    at += 4;
    return value;
  }

  static void addUtf8(std::string &result, uint32_t point) {
    if (point < 0x80) {
      result += char(point);
      return;
    }
    const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    result += char((0xFF00 >> (more + 1) & 0xFF) | point >> 6 * more);
    for (int i = more - 1; i >= 0; --i)
      result += char(0x80 | (point >> 6 * i & 0x3F));
  }

  void skipDigits() {
    if (!isDigit(peek()))
      fail("has " + shown() + " where a digit belongs");
    while (isDigit(peek()))
      ++at;
  }

  void readNumber(Json &value) {
    const size_t begin = at;
    at += peek() == '-';
    if (peek() == '0')
      ++at;
    else
      skipDigits();
    bool isWhole = true;
    if (peek() == '.')
      isWhole = false, ++at, skipDigits();
    if (peek() == 'e' || peek() == 'E') {
      isWhole = false;
      ++at;
      at += peek() == '+' || peek() == '-';
      skipDigits();
    }
    const char *first = text.data() + begin, *last = text.data() + at;
    if (std::from_chars(first, last, value.decimal).ec != std::errc())
      fail("has the number " + inQuotes(text.substr(begin, at - begin)) + ", which is too large or too small");
    isWhole = isWhole && std::from_chars(first, last, value.whole).ec == std::errc();
    value.kind = isWhole ? Json::Whole : Json::Decimal;
  }

  void readWord(Json &value) {
    auto starts = [this](std::string_view word) { return text.substr(at, word.size()) == word; };
    if (starts("true"))
      value.kind = Json::Boolean, value.whole = 1, at += 4;
    else if (starts("false"))
      value.kind = Json::Boolean, at += 5;
    else if (starts("null"))
      at += 4;
    else
      fail("has " + shown() + " where a value belongs");
  }

  std::string_view text;
  size_t at = 0;
  unsigned line = 1;
};

} // namespace

const Json *Json::find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i] == key)
      return &items[i];
  return nullptr;
}

Json parseJson(std::string_view text) { return Parser(text).parse(); }

std::string inQuotes(std::string_view text) {
  std::string result = "'";
  for (char c : text.substr(0, kShown))
    result += c < ' ' || c > '~' ? '?' : c;
  return result + (text.size() > kShown ? "...'" : "'");
}

} // namespace fagen
