// fagen: edits of text that keep most of it well-formed; libFuzzer's own edits of bytes seldom do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TextMutator.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

namespace fagen::fuzz {

namespace {

/// A piece of text: where it begins, and how long it is.
using Piece = std::pair<size_t, size_t>;

class Mutator {
public:
  Mutator(std::string &text, uint64_t seed) : text(text), random(seed) {}

  void edit() {
    switch (random() % 8) {
    case 0:
    case 1:
      return replaceNumber();
    case 2:
    case 3:
      return replaceWord();
    case 4:
      return moveLine(/*isCopy=*/true);
    case 5:
      return moveLine(/*isCopy=*/false);
    case 6:
      return dropLine();
    default:
      return swapWords();
    }
  }

private:
  static bool isWordPart(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%'; }

  /// Runs of letters, digits, _ and %; of digits only if asked for.
  std::vector<Piece> words(bool onlyNumbers) const {
    std::vector<Piece> found;
    for (size_t i = 0; i < text.size();) {
      size_t end = i;
      while (end < text.size() && isWordPart(text[end]))
        ++end;
      const bool isNumber =
          std::all_of(text.begin() + i, text.begin() + end, [](char c) { return c >= '0' && c <= '9'; });
      if (end != i && (isNumber || !onlyNumbers))
        found.push_back({i, end - i});
      i = std::max(end, i + 1);
    }
    return found;
  }

  std::vector<Piece> lines() const {
    std::vector<Piece> found;
    for (size_t i = 0; i < text.size();) {
      const size_t newline = text.find('\n', i), end = newline == std::string::npos ? text.size() : newline + 1;
      found.push_back({i, end - i});
      i = end;
    }
    return found;
  }

  template <typename T> const T &pick(const std::vector<T> &from) { return from[random() % from.size()]; }

  void replaceNumber() {
    static constexpr const char *kNumbers[] = {
        "0",   "1",    "2",     "3",          "4",          "5",          "7",
        "8",   "16",   "17",    "31",         "32",         "33",         "63",
        "64",  "65",   "96",    "128",        "255",        "256",        "1000",
        "513", "4096", "65536", "2147483647", "4294967295", "4294967296", "9223372036854775807"};
    const std::vector<Piece> numbers = words(true);
    if (!numbers.empty()) {
      const auto [at, length] = pick(numbers);
      text.replace(at, length, kNumbers[random() % std::size(kNumbers)]);
    }
  }

  void replaceWord() {
    const std::vector<Piece> all = words(false);
    if (all.empty())
      return;
    const auto [from, fromLength] = pick(all);
    const auto [at, length] = pick(all);
    text.replace(at, length, text.substr(from, fromLength));
  }

  void swapWords() {
    const std::vector<Piece> all = words(false);
    if (all.empty())
      return;
    Piece first = pick(all), second = pick(all);
    if (second < first)
      std::swap(first, second);
    if (first == second)
      return;
    const std::string a = text.substr(first.first, first.second), b = text.substr(second.first, second.second);
    text.replace(second.first, second.second, a);
    text.replace(first.first, first.second, b);
  }

  void moveLine(bool isCopy) {
    const std::vector<Piece> all = lines();
    if (all.empty())
      return;
    const auto [from, length] = pick(all);
    const std::string line = text.substr(from, length);
    if (!isCopy)
      text.erase(from, length);
    const std::vector<Piece> rest = lines();
    text.insert(rest.empty() ? 0 : pick(rest).first, line);
  }

  void dropLine() {
    const std::vector<Piece> all = lines();
    if (all.empty())
      return;
    const auto [at, length] = pick(all);
    text.erase(at, length);
  }

  std::string &text;
  std::mt19937_64 random;
};

} // namespace

void mutateText(std::string &text, uint64_t seed) {
  Mutator mutator(text, seed);
  for (unsigned edits = 1 + seed % 4; edits != 0; --edits)
    mutator.edit();
}

void mutateBytes(std::string &text, uint64_t seed) {
  static constexpr char kBytes[] = "\0\t\n\"\\'(),-.0:;<>=?@[]{}_e\x7f\x80\xc3\xff";
  std::mt19937_64 random(seed);
  for (unsigned edits = 1 + seed % 3; edits != 0 && !text.empty(); --edits) {
    const size_t at = random() % text.size();
    const char byte = kBytes[random() % (sizeof(kBytes) - 1)];
    switch (random() % 8) {
    case 0:
      text.resize(at);
      break;
    case 1:
    case 2:
      text.erase(at, 1);
      break;
    case 3:
    case 4:
      text.insert(at, 1, byte);
      break;
    default:
      text[at] = byte;
    }
  }
}

} // namespace fagen::fuzz
