// fagen: what the textual IR is read by: words, numbers, strings, expressions and places.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No token stream: the cursor is the rest of the buffer. The first error ends the parse, since .fair files are written
// by fagen and by tests. Members that return bool report what they miss.
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/IR/Names.h"
#include "fagen/Support/Diagnostics.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/StringExtras.h"

namespace fagen::ir {

class Lexer {
public:
  Lexer(llvm::StringRef text, Diagnostics &diags) : rest(text), diags(diags) {}

  bool error(const char *place, const llvm::Twine &message) {
    if (!failed)
      diags.error(llvm::SMRange(llvm::SMLoc::getFromPointer(place), llvm::SMLoc::getFromPointer(place)), message);
    failed = true;
    return false;
  }
  bool error(const llvm::Twine &message) { return error(position(), message); }

  const char *position() {
    skipSpace();
    return rest.data();
  }
  llvm::SMLoc location() { return llvm::SMLoc::getFromPointer(position()); }
  bool atEnd() {
    skipSpace();
    return rest.empty();
  }

  bool at(llvm::StringRef token) {
    skipSpace();
    if (!rest.starts_with(token))
      return false;
    return !isWordCharacter(token.back()) || rest.size() == token.size() || !isWordCharacter(rest[token.size()]);
  }
  /// Drops the token if it stands at the cursor.
  bool accept(llvm::StringRef token) {
    if (!at(token))
      return false;
    rest = rest.drop_front(token.size());
    return true;
  }
  bool expect(llvm::StringRef token) { return accept(token) || missing("'" + token + "'", token); }
  /// Reports that `what` is missing at the cursor, what stands there, and which of the candidates was probably meant.
  bool missing(const llvm::Twine &what, llvm::ArrayRef<llvm::StringRef> candidates = {}) {
    const std::string found = shownAtCursor();
    const llvm::StringRef near = nearestWord(peekWord(), candidates);
    return error("expected " + what + ", not " + found + (near.empty() ? "" : "; did you mean '" + near.str() + "'?"));
  }

  llvm::StringRef peekWord() {
    skipSpace();
    return rest.take_while(isWordCharacter);
  }
  bool word(llvm::StringRef &result, const llvm::Twine &what) {
    result = peekWord();
    if (result.empty() || llvm::isDigit(result.front()))
      return missing(what);
    rest = rest.drop_front(result.size());
    return true;
  }
  /// A name of digits is a name too: %0, @7.
  bool nameAfter(llvm::StringRef sigil, std::string &result, const llvm::Twine &what) {
    if (!expect(sigil))
      return false;
    result = rest.take_while(isWordCharacter).str();
    if (result.empty())
      return error("expected " + what + " after '" + sigil + "'");
    rest = rest.drop_front(result.size());
    return true;
  }

  template <typename Integer> bool number(Integer &result) {
    skipSpace();
    const bool negative = std::is_signed_v<Integer> && rest.starts_with("-");
    const llvm::StringRef digits = rest.drop_front(negative).take_while(llvm::isDigit);
    if (digits.empty())
      return missing("a number");
    const llvm::StringRef text = rest.take_front(digits.size() + negative);
    if (text.getAsInteger(10, result))
      return error("number '" + text + "' does not fit in " + llvm::Twine(8 * sizeof(Integer)) + " bits");
    rest = rest.drop_front(text.size());
    return true;
  }

  /// "text" with \\ and \HH.
  bool string(std::string &result) {
    if (!at("\""))
      return missing("a string, as in \"text\"");
    const char *begin = position();
    rest = rest.drop_front();
    result.clear();
    while (!rest.empty() && rest.front() != '"' && rest.front() != '\n')
      if (!stringCharacter(result))
        return false;
    if (!rest.consume_front("\""))
      return error(begin, "string has no end");
    return true;
  }

  /// Of integers and truth values.
  bool expression(Expr &result) {
    const char *begin = position();
    if (!anyExpression(result))
      return false;
    return isOfIntegers(result) ||
           error(begin, "expected an expression of integers; real numbers, '?:', '!' and elements of buffers stand in "
                        "the value of a map");
  }
  /// Where elements lie: integers, a choice between such, or elements of index tensors.
  bool place(Expr &result) {
    const char *begin = position();
    if (!anyExpression(result))
      return false;
    return isOfPlacesInMemory(result) ||
           error(begin, "expected an expression of integers; real numbers, '!' and elements of an op's operands stand "
                        "in the value of a map");
  }
  bool anyExpression(Expr &result) {
    std::string message;
    result = consumeExpr(rest, message);
    return result || error(rest.data(), message);
  }

  /// One of the values, by its name.
  template <typename Enum, typename Values>
  bool enumeration(Enum &result, const Values &values, const llvm::Twine &what) {
    const llvm::StringRef text = peekWord();
    if (std::optional<Enum> value = fromString<Enum>(text, values)) {
      result = *value;
      return accept(text);
    }
    const std::vector<llvm::StringRef> names = namesOf(values);
    return missing("a " + what + ": " + alternatives(names), names);
  }

  /// Nothing, or loc("file":line[:column])
  bool origin(Location &location) {
    if (!accept("loc"))
      return true;
    if (!expect("(") || !string(location.file) || !expect(":"))
      return false;
    const char *place = position();
    if (!number(location.line))
      return false;
    if (location.line == 0)
      return error(place, "lines count from 1");
    if (accept(":") && !number(location.column))
      return false;
    return expect(")");
  }

  /// Nothing, or note("text")
  bool note(std::string &note) { return !accept("note") || (expect("(") && string(note) && expect(")")); }

private:
  template <typename Range> static std::vector<llvm::StringRef> namesOf(const Range &values) {
    std::vector<llvm::StringRef> names;
    for (const auto &value : values)
      names.push_back(toString(value));
    return names;
  }

  /// The word, number or character at the cursor, in quotes.
  std::string shownAtCursor() {
    if (atEnd())
      return "the end of the file";
    const llvm::StringRef word = peekWord();
    return ("'" + (word.empty() ? rest.take_front(1) : word) + "'").str();
  }

  static bool isWordCharacter(char c) { return llvm::isAlnum(c) || c == '_'; }

  bool stringCharacter(std::string &result) {
    if (rest.front() != '\\') {
      result += rest.front();
      rest = rest.drop_front();
      return true;
    }
    if (rest.starts_with("\\\\")) {
      result += '\\';
      rest = rest.drop_front(2);
      return true;
    }
    if (rest.size() < 3 || !llvm::isHexDigit(rest[1]) || !llvm::isHexDigit(rest[2]))
      return error("expected two hexadecimal digits after '\\'");
    result += char(llvm::hexFromNibbles(rest[1], rest[2]));
    rest = rest.drop_front(3);
    return true;
  }

  void skipSpace() {
    for (;;) {
      rest = rest.ltrim();
      if (!rest.starts_with("//"))
        return;
      rest = rest.drop_until([](char c) { return c == '\n'; });
    }
  }

  llvm::StringRef rest;
  Diagnostics &diags;
  bool failed = false;
};

} // namespace fagen::ir
