// fagen: characters of a spec to tokens.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Parse/Lexer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace fagen {

static constexpr int64_t kIntegerLimit = int64_t(1) << 31;

static constexpr StringLiteral kKnown = "{}[](),;:=<>!+-*/%&|^?";

static bool isQuote(char c) { return c == '"' || c == '\''; }
static bool isWordStart(char c) { return isAlpha(c) || c == '_'; }
static bool isWordPart(char c) { return isAlnum(c) || c == '_'; }

Token Lexer::make(Token::Kind kind, const char *begin) {
  Token token;
  token.kind = kind;
  token.text = StringRef(begin, position - begin);
  afterInteger = kind == Token::Integer;
  afterWord = kind == Token::Word && token.text != "x";
  return token;
}

void Lexer::skipBlockComment() {
  const char *begin = position;
  size_t close = StringRef(position, end - position).find("*/", 2);
  if (close != StringRef::npos) {
    position += close + 2;
    return;
  }
  position = end;
  diags.error(SMRange(SMLoc::getFromPointer(begin), SMLoc::getFromPointer(begin + 2)), "this comment has no '*/'");
}

void Lexer::skipSpace() {
  while (position != end) {
    if (isSpace(*position)) {
      ++position;
    } else if (peek() == '/' && peek(1) == '/') {
      while (position != end && *position != '\n')
        ++position;
    } else if (peek() == '/' && peek(1) == '*') {
      skipBlockComment();
    } else {
      return;
    }
    afterInteger = false;
  }
}

std::string unitHint(StringRef letters) {
  static constexpr std::pair<StringLiteral, StringLiteral> kHints[] = {
      {"k", "write KiB"},
      {"kb", "write KiB"},
      {"kib", "write KiB"},
      {"b", "write B"},
      {"byte", "write B"},
      {"bytes", "write B"},
      {"m", "1 MiB is 1024 KiB"},
      {"mb", "1 MiB is 1024 KiB"},
      {"mib", "1 MiB is 1024 KiB"},
      {"s", "a time is a number of microseconds, without a unit"},
      {"ms", "a time is a number of microseconds, without a unit"},
      {"us", "a time is a number of microseconds, without a unit"},
      {"ns", "a time is a number of microseconds, without a unit"},
      {"f", "a decimal has no suffix"},
      {"x", "a tile is written 128 x 64, a product 2 * x"},
      {"by", "a tile is written 128 x 64"},
  };
  for (const auto &[unit, hint] : kHints)
    if (letters.equals_insensitive(unit))
      return ("; " + hint).str();
  if (StringRef exponent = letters; exponent.consume_front_insensitive("e") && all_of(exponent, isDigit))
    return "; a decimal is written out: 0.001";
  return letters.starts_with("_") ? "; digits stand without _" : "; a count has no unit";
}

// What follows a number at once: nothing, `x` and a digit, or a unit. Anything else is skipped as one mistake.
bool Lexer::checkSuffix(const char *begin, bool isName) {
  const char *suffix = position;
  const char *suffixEnd = suffix;
  while (suffixEnd != end && isWordPart(*suffixEnd))
    ++suffixEnd;
  StringRef letters(suffix, suffixEnd - suffix);
  if (letters.empty() || letters == "B" || letters == "KiB")
    return true;
  if (letters.size() >= 2 && letters[0] == 'x' && isDigit(letters[1]))
    return true;
  position = suffixEnd;
  const StringRef text(begin, position - begin);
  diags.error(SMRange(SMLoc::getFromPointer(begin), SMLoc::getFromPointer(position)),
              isName ? "'" + text + "' is no name: names begin with a letter or _"
                     : "'" + text + "' is not a number; only 'x' and a digit, 'B' or 'KiB' may follow its digits" +
                           unitHint(letters));
  return false;
}

Token Lexer::number() {
  const char *begin = position;
  const bool isName = afterWord;
  while (isDigit(peek()))
    ++position;
  Token token;
  if (peek() == '.' && isDigit(peek(1))) {
    ++position;
    while (isDigit(peek()))
      ++position;
    token = make(Token::Decimal, begin);
    token.text.getAsDouble(token.decimal);
  } else {
    token = make(Token::Integer, begin);
    if (token.text.getAsInteger(10, token.integer) || token.integer >= kIntegerLimit) {
      diags.error(token.range(), "integer " + token.text + " is too large; integers are below 2147483648");
      token.kind = Token::Reported;
    }
  }
  return checkSuffix(begin, isName) ? token : make(Token::Reported, begin);
}

Token Lexer::word() {
  const char *begin = position;
  bool isTimes = afterInteger && peek() == 'x' && isDigit(peek(1));
  ++position;
  while (!isTimes && isWordPart(peek()))
    ++position;
  return make(Token::Word, begin);
}

Token Lexer::punctuation() {
  static constexpr StringLiteral kPairs[] = {"==", "!=", "<=", ">=", "&&", "||", "<<", ">>"};
  const char *begin = position;
  StringRef rest(position, end - position);
  for (StringRef pair : kPairs) {
    if (rest.starts_with(pair)) {
      position += 2;
      return make(Token::Punctuation, begin);
    }
  }
  ++position;
  return make(Token::Punctuation, begin);
}

/// "bf16": a word, once it was reported. "a.fa" is none.
Token Lexer::quoted() {
  const char *const begin = position++;
  Token inner = word();
  const StringRef rest(position, end - position);
  const size_t close = rest.take_until([](char c) { return c == '\n'; }).find(*begin);
  if (close != StringRef::npos)
    position += close + 1;
  if (close != StringRef::npos && close != 0)
    inner = make(Token::Reported, begin);
  const StringRef text = StringRef(begin + 1, position - begin - 1).trim(*begin);
  diags.error(SMRange(SMLoc::getFromPointer(begin), SMLoc::getFromPointer(position)),
              "words are written without quotes: " + text);
  return inner;
}

/// What to do about a character that only looks like one of a spec; empty: nothing is known of it.
static StringRef remedyFor(StringRef text) {
  static constexpr std::pair<StringLiteral, StringLiteral> kLookAlikes[] = {
      {"\u00D7", "write x"},
      {"\u2264", "write <="},
      {"\u2265", "write >="},
      {"\u2260", "write !="},
      {"\u2212", "write -"},
      {"\u2013", "write -"},
      {"\u2014", "write -"},
      {"\u00A0", "it is a blank that cannot be seen; write a plain one"},
      {"\u201C", "values are written without quotes"},
      {"\u201D", "values are written without quotes"},
      {"\u2018", "values are written without quotes"},
      {"\u2019", "values are written without quotes"},
      {"\"", "values are written without quotes"},
      {"'", "values are written without quotes"},
      {"..", "values are listed: [64, 128]"},
      {".", "words have _ in its place"},
      {"#", "a comment begins with //"},
  };
  for (const auto &[character, remedy] : kLookAlikes)
    if (text.starts_with(character))
      return remedy;
  return "";
}

/// A run of characters that no token begins with is one mistake. Where it stands for something the parser hears of it.
bool Lexer::skipUnknown() {
  const char *begin = position;
  while (position != end && !isSpace(*position) && !isAlnum(*position) && *position != '_' &&
         !kKnown.contains(*position))
    ++position;
  const StringRef text(begin, std::min<size_t>(position - begin, 16));
  std::string shown;
  if (json::isUTF8(text) && none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    shown = text.str();
  else
    raw_string_ostream(shown).write_escaped(text);
  const bool isControl = static_cast<unsigned char>(text.front()) < ' ';
  const StringRef remedy = isControl                        ? "it is no character of a text; take it out"
                           : text == "." && isDigit(peek()) ? "a decimal begins with a digit: 0.5"
                                                            : remedyFor(text);
  diags.error(SMRange(SMLoc::getFromPointer(begin), SMLoc::getFromPointer(position)),
              "unexpected '" + shown + "'" + (remedy.empty() ? "" : "; " + remedy));
  if (text.starts_with("#"))
    while (position != end && *position != '\n')
      ++position;
  return remedy.empty() || isControl || text.starts_with("#") || text.starts_with("\u00A0");
}

Token Lexer::next() {
  while (true) {
    skipSpace();
    if (position == end)
      return make(Token::End, end);
    if (isDigit(*position))
      return number();
    if (isWordStart(*position))
      return word();
    if (kKnown.contains(*position))
      return punctuation();
    if (isQuote(*position) && isWordStart(peek(1)))
      return quoted();
    const char *const begin = position;
    if (!skipUnknown())
      return make(Token::Reported, begin);
  }
}

} // namespace fagen
