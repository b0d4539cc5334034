// fagen: characters of a spec to tokens.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An integer may be followed at once by `x` and a digit (128x64) or by a unit (16B, 99KiB); the lexer then gives two
// tokens, as if there were white space. Every other letter there is an error, reported once.
#pragma once

#include "fagen/Support/Diagnostics.h"

namespace fagen {

struct Token {
  enum Kind : uint8_t { Word, Integer, Decimal, Punctuation, Reported, End }; ///< Reported: was no token
  Kind kind = End;
  llvm::StringRef text;
  int64_t integer = 0;
  double decimal = 0;

  bool is(llvm::StringRef expected) const { return (kind == Word || kind == Punctuation) && text == expected; }
  llvm::SMRange range() const {
    return {llvm::SMLoc::getFromPointer(text.begin()), llvm::SMLoc::getFromPointer(text.end())};
  }
};

/// What to write where a number has letters after it that are no unit: "; write KiB".
std::string unitHint(llvm::StringRef letters);

class Lexer {
public:
  /// A byte order mark at the beginning is no part of the text.
  Lexer(llvm::StringRef text, Diagnostics &diags) : position(text.begin()), end(text.end()), diags(diags) {
    if (text.starts_with("\xEF\xBB\xBF"))
      position += 3;
  }

  /// The next token; End, again and again, after the last.
  Token next();

private:
  void skipSpace();
  void skipBlockComment();
  Token number();
  Token word();
  Token punctuation();
  Token quoted();
  bool skipUnknown();
  Token make(Token::Kind kind, const char *begin);
  bool checkSuffix(const char *begin, bool isName);
  char peek(size_t offset = 0) const { return size_t(end - position) > offset ? position[offset] : '\0'; }

  const char *position;
  const char *end;
  Diagnostics &diags;
  bool afterInteger = false; ///< the previous token is an integer that ended at `position`
  bool afterWord = false;    ///< the previous token is a word, which a value does not follow
};

} // namespace fagen
