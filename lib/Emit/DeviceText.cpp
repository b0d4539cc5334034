// fagen: picks declarations of the device library by the identifiers that texts use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A header is a list of declarations in one namespace. A declaration is kept when an identifier that it declares stands
// in a kernel's text or in a declaration that is kept. Names are compared without their scopes, and all overloads of a
// name are one: that keeps too much rather than too little.

#include "DeviceText.h"

#include "SingleTexts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <cassert>

using namespace fagen;
using llvm::StringRef;

namespace {

/// A word or a character of code. Comments, strings and white space are none.
struct Token {
  StringRef text;
  size_t begin;

  bool is(StringRef other) const { return text == other; }
  bool isWord() const { return llvm::isAlpha(text[0]) || text[0] == '_'; }
};

bool isWordChar(char c) { return llvm::isAlnum(c) || c == '_'; }

/// The end of a comment or literal that begins at `at`; `at` where none does.
size_t endOfUntokened(StringRef text, size_t at) {
  if (text.substr(at).starts_with("//"))
    return std::min(text.find('\n', at), text.size());
  if (text.substr(at).starts_with("/*"))
    return std::min(text.find("*/", at + 2), text.size() - 2) + 2;
  if (text[at] != '"' && text[at] != '\'')
    return at;
  size_t end = at + 1;
  while (end < text.size() && text[end] != text[at])
    end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

std::vector<Token> tokensOf(StringRef text) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < text.size();) {
    if (const size_t next = endOfUntokened(text, at); next != at) {
      at = next;
      continue;
    }
    size_t end = at + 1;
    if (isWordChar(text[at]))
      end = at + text.substr(at).take_while(isWordChar).size();
    if (!llvm::isSpace(text[at]))
      tokens.push_back({text.slice(at, end), at});
    at = end;
  }
  return tokens;
}

/// One declaration of a header, with its comment.
struct Declaration {
  StringRef text;
  llvm::SmallVector<StringRef> names; ///< that it declares
  llvm::StringSet<> words;            ///< that it uses, its own among them
};

struct Header {
  StringRef name, space; ///< "fagen/device/ptx/mma.h", "fagen::device::ptx"
  std::vector<Declaration> declarations;
  std::vector<StringRef> includes;
};

/// The token after the angle bracket that closes the one at i.
size_t afterAngles(llvm::ArrayRef<Token> tokens, size_t i) {
  int depth = 0;
  for (; i < tokens.size(); ++i) {
    depth += tokens[i].is("<") ? 1 : tokens[i].is(">") ? -1 : 0;
    if (depth == 0)
      return i + 1;
  }
  return i;
}

/// The token after `template <...>`, with which a declaration may begin.
size_t afterTemplate(llvm::ArrayRef<Token> tokens) {
  size_t i = 0;
  while (i < tokens.size() && tokens[i].is("template"))
    i = afterAngles(tokens, i + 1);
  return i;
}

/// The token after an attribute with parentheses, alignas(64), that begins at i.
size_t afterAttribute(llvm::ArrayRef<Token> tokens, size_t i) {
  if (!tokens[i].is("alignas"))
    return i;
  while (i < tokens.size() && !tokens[i].is(")"))
    ++i;
  return i + 1;
}

/// Whether a declared name ends before the character at i. It does not at a scope, at the arguments of a template
/// that is the type, and at a function that gives a reference to an array: float (&elements(...))[4].
bool endsName(llvm::ArrayRef<Token> tokens, size_t i) {
  const StringRef next = i + 1 < tokens.size() ? tokens[i + 1].text : "";
  if (tokens[i].is(":"))
    return next != ":" && !tokens[i - 1].is(":");
  if (tokens[i].is("("))
    return next != "&";
  if (tokens[i].is("<")) {
    const size_t next = afterAngles(tokens, i);
    return next == tokens.size() || !tokens[next].isWord();
  }
  return StringRef("={[;").contains(tokens[i].text);
}

/// The values of an enumeration that is no class, and its name.
llvm::SmallVector<StringRef> wordsOf(llvm::ArrayRef<Token> tokens) {
  llvm::SmallVector<StringRef> words;
  for (const Token &token : tokens)
    if (token.isWord())
      words.push_back(token.text);
  return words;
}

/// The names that a declaration declares: a type's, an enumeration's with its values, a function's, a variable's.
llvm::SmallVector<StringRef> declaredBy(llvm::ArrayRef<Token> tokens) {
  StringRef word; // the last one
  for (size_t i = afterTemplate(tokens); i < tokens.size(); ++i) {
    i = afterAttribute(tokens, i);
    if (tokens[i].is("enum") && !tokens[i + 1].is("class"))
      return wordsOf(tokens.drop_front(i + 1));
    if (tokens[i].isWord())
      word = tokens[i].text;
    else if (!word.empty() && endsName(tokens, i))
      break;
    else if (tokens[i].is("<"))
      i = afterAngles(tokens, i) - 1;
  }
  return {word};
}

std::vector<Declaration> declarationsOf(StringRef text) {
  std::vector<Declaration> declarations;
  const std::vector<Token> tokens = tokensOf(text);
  size_t first = 0, begin = 0;
  int braces = 0, parentheses = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token &token = tokens[i];
    braces += token.is("{") ? 1 : token.is("}") ? -1 : 0;
    parentheses += token.is("(") ? 1 : token.is(")") ? -1 : 0;
    const bool isBehindBody = token.is("}") && (i + 1 == tokens.size() || !tokens[i + 1].is(";"));
    if (braces || parentheses || !(token.is(";") || isBehindBody))
      continue;
    const size_t end = token.begin + 1;
    Declaration one{text.slice(begin, end).trim(), declaredBy(llvm::ArrayRef(tokens).slice(first, i + 1 - first)), {}};
    for (size_t word = first; word <= i; ++word)
      if (tokens[word].isWord())
        one.words.insert(tokens[word].text);
    declarations.push_back(std::move(one));
    first = i + 1;
    begin = end;
  }
  return declarations;
}

Header parseHeader(const EmbeddedHeader &embedded) {
  const StringRef text = embedded.text, opening = "\nnamespace ";
  Header header{embedded.name, {}, {}, deviceIncludesOf(text)};
  const size_t space = text.find(opening), body = text.find('{', space);
  assert(space != StringRef::npos && "a device header is a namespace");
  header.space = text.slice(space + opening.size(), body).trim();
  header.declarations = declarationsOf(text.slice(body + 1, text.rfind("\n} // namespace")));
  return header;
}

const std::vector<Header> &headers() {
  static const std::vector<Header> all = [] {
    std::vector<Header> parsed;
    for (unsigned i = 0; i < kDeviceHeaderCount; ++i)
      parsed.push_back(parseHeader(kDeviceHeaders[i]));
    return parsed;
  }();
  return all;
}

/// Those that the includes lead to, each after those that it includes.
void collect(StringRef name, std::vector<const Header *> &ordered) {
  const auto header = llvm::find_if(headers(), [&](const Header &one) { return one.name == name; });
  assert(header != headers().end() && "kernels include headers of the device library only");
  if (llvm::is_contained(ordered, &*header))
    return;
  for (StringRef include : header->includes)
    collect(include, ordered);
  if (!llvm::is_contained(ordered, &*header))
    ordered.push_back(&*header);
}

/// The columns of the product that a declaration's instruction computes; 0 where that is none of many.
unsigned columnsOf(StringRef declaration) {
  unsigned columns = 0;
  const StringRef mark = ".aligned.m64n";
  const size_t at = declaration.find(mark);
  if (at != StringRef::npos)
    declaration.drop_front(at + mark.size()).consumeInteger(10, columns);
  return columns;
}

/// Grows the set of words by those of declarations that it names, until none is new.
std::set<const Declaration *> reach(llvm::ArrayRef<const Header *> ordered, llvm::StringSet<> words,
                                    const std::set<unsigned> &columns) {
  std::set<const Declaration *> kept;
  size_t before = 0;
  do {
    before = kept.size();
    for (const Header *header : ordered)
      for (const Declaration &one : header->declarations) {
        const unsigned of = columnsOf(one.text);
        const bool isUsed = llvm::any_of(one.names, [&](StringRef name) { return words.contains(name); });
        if (!isUsed || (of && !columns.count(of)) || !kept.insert(&one).second)
          continue;
        for (const auto &word : one.words)
          words.insert(word.first());
      }
  } while (before != kept.size());
  return kept;
}

} // namespace

std::vector<StringRef> fagen::deviceIncludesOf(StringRef text) {
  std::vector<StringRef> includes;
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines)
    if (line.consume_front("#include <") && line.starts_with("fagen/device/"))
      includes.push_back(line.take_until([](char c) { return c == '>'; }));
  return includes;
}

std::string fagen::markConstexpr(StringRef text) {
  const std::vector<Token> tokens = tokensOf(text);
  std::string marked;
  size_t done = 0;
  bool isMarked = false; // the declaration says already where it runs
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (StringRef("{};").contains(tokens[i].text))
      isMarked = false;
    isMarked |= tokens[i].is("__device__");
    if (!tokens[i].is("constexpr") || isMarked || (i && tokens[i - 1].is("if")))
      continue;
    size_t next = i;
    while (next < tokens.size() && !StringRef("(={;").contains(tokens[next].text))
      ++next;
    if (next == tokens.size() || !tokens[next].is("("))
      continue;
    marked += text.slice(done, tokens[i].begin).str() + "__host__ __device__ ";
    done = tokens[i].begin;
  }
  return marked + text.substr(done).str();
}

std::string fagen::pickDeviceText(llvm::ArrayRef<std::string> texts, llvm::ArrayRef<StringRef> includes,
                                  const std::set<unsigned> &columns) {
  std::vector<const Header *> ordered;
  for (StringRef include : includes)
    collect(include, ordered);
  llvm::StringSet<> words;
  for (const std::string &text : texts)
    for (const Token &token : tokensOf(text))
      if (token.isWord())
        words.insert(token.text);
  const std::set<const Declaration *> kept = reach(ordered, std::move(words), columns);
  std::string result;
  for (const Header *header : ordered) {
    std::string part;
    for (const Declaration &one : header->declarations)
      if (kept.count(&one))
        part += "\n" + markConstexpr(one.text) + "\n";
    if (!part.empty())
      result += ("//===-- " + header->name + "\n\nnamespace " + header->space + " {\n").str() + part +
                ("\n} // namespace " + header->space + "\n\n").str();
  }
  return result;
}
