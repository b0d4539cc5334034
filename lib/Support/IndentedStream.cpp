// fagen: an output stream that indents each line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/IndentedStream.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace fagen {

IndentedStream::~IndentedStream() {
  flush();
  if (!open.empty())
    writeBroken(open, level * width);
}

void IndentedStream::write_impl(const char *text, size_t size) {
  StringRef rest(text, size);
  while (!rest.empty()) {
    StringRef piece = rest.take_front(rest.find('\n'));
    bool ended = piece.size() != rest.size();
    if (columns != 0) {
      open += piece;
      if (ended)
        writeBroken(std::exchange(open, {}), level * width);
    } else {
      if (atLineStart && !piece.empty())
        os.indent(level * width);
      os << piece;
      if (ended)
        os << '\n';
      atLineStart = ended;
      line += ended;
    }
    rest = rest.drop_front(piece.size() + ended);
  }
}

static bool isComment(StringRef text) { return text.starts_with("//"); }

/// Where a comment that follows code begins; npos where none does.
static size_t commentBehind(StringRef code) {
  const size_t at = code.rfind(" // ");
  return at == StringRef::npos || code.take_front(at).count('"') % 2 != 0 ? StringRef::npos : at;
}

/// Brackets; and angles of template arguments, which stand beside no blanks as those of comparisons do.
static bool opens(StringRef text, size_t i) {
  return StringRef("([{").contains(text[i]) || (text[i] == '<' && i > 0 && text[i - 1] != ' ');
}
static bool closes(StringRef text, size_t i) {
  return StringRef(")]}").contains(text[i]) || (text[i] == '>' && i > 0 && text[i - 1] != ' ' && text[i - 1] != '-');
}

/// How much of the text comes on a line of so many columns.
static size_t breakOf(StringRef text, size_t columns) {
  if (isComment(text)) {
    const size_t blank = text.take_front(columns + 1).rfind(' ');
    return blank == StringRef::npos || blank < 4 ? text.size() : blank;
  }
  size_t best = 0, blank = text.size();
  int depth = 0, least = 1 << 20;
  bool isQuoted = false;
  for (size_t i = 0; i + 1 < text.size() && i < columns; ++i) {
    isQuoted ^= text[i] == '"';
    if (isQuoted)
      continue;
    depth += opens(text, i) - closes(text, i);
    if (text[i + 1] != ' ')
      continue;
    blank = i + 1;
    if (!(text[i] == ',' || (text[i] == ';' && !text.substr(i + 1).starts_with(" }"))) || depth > least)
      continue;
    least = depth;
    best = i + 1;
  }
  return best == 0 ? blank : best;
}

/// A line, or as many as it takes; what comes after the first is indented twice.
void IndentedStream::writeBroken(StringRef text, unsigned indent) {
  const std::string own(text); // which may start with blanks of its own
  const unsigned blanks = own.size() - StringRef(own).ltrim(' ').size(), first = indent + blanks;
  StringRef rest = StringRef(own).drop_front(blanks);
  const std::string prefix = isComment(rest) ? rest.take_while([](char c) { return c == '/'; }).str() + " " : "";
  const size_t comment = isComment(rest) ? StringRef::npos : commentBehind(rest);
  if (first + rest.size() > columns && comment != StringRef::npos) {
    writeBroken(rest.drop_front(comment + 1), first);
    rest = rest.take_front(comment);
  }
  for (unsigned at = first; !rest.empty(); at = first + (prefix.empty() ? 2 * width : 0)) {
    const bool isFirst = rest.data() == own.data() + blanks;
    const size_t used = at + (isFirst ? 0 : prefix.size());
    const size_t size = used + rest.size() <= columns || used >= columns ? rest.size() : breakOf(rest, columns - used);
    os.indent(at) << (isFirst ? "" : prefix) << rest.take_front(size) << '\n';
    ++line;
    rest = rest.drop_front(size).ltrim(' ');
  }
  if (own.size() == blanks) {
    os << '\n';
    ++line;
  }
}

} // namespace fagen
