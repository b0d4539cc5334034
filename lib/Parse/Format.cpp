// fagen: a spec in its canonical layout: pieces to lines, lines to text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Parse/Format.h"

#include "Pieces.h"
#include "fagen/Parse/Parser.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace fagen {

static constexpr unsigned kColumns = 120;
static constexpr unsigned kIndent = 2;
static constexpr unsigned kContinuation = 4;
static constexpr size_t kKeyColumns = 8; ///< `head_dim`, `barriers`: `=` of all blocks stand below each other

// Statements

/// Whether an operand ends with the piece, so that an operator after it has two.
static bool endsOperand(const Piece &piece) {
  return piece.kind == Piece::Word || piece.kind == Piece::Number || piece.is(")") || piece.is("]");
}

/// Pieces of a statement with blanks where they belong. Comments in it are words, with a line end after those that ask
/// for one.
class StatementText {
public:
  explicit StatementText(ArrayRef<Piece> pieces) : pieces(pieces) {}

  /// Lines, of which the second and all others are to be indented. `relation` pads the second piece to so many columns,
  /// `key` the first.
  std::vector<std::string> lines(unsigned indent, size_t key = 0, size_t relation = 0) const {
    std::vector<std::string> lines(1);
    unsigned left = indent;
    for (size_t i = 0; i != pieces.size(); ++i) {
      std::string word = (isSpaced(i) ? " " : "") + pieces[i].text.str();
      const bool mustBreak = i != 0 && pieces[i - 1].kind == Piece::LineComment;
      const bool fits = left + lines.back().size() + lengthToBreak(i) <= kColumns;
      if (mustBreak || (i != 0 && mayBreakBefore(i) && !fits)) {
        lines.emplace_back();
        left = indent + kContinuation;
        word = pieces[i].text.str();
      }
      lines.back() += word;
      if (i == 0 && pieces.size() > 1 && key > word.size())
        lines.back().append(key - word.size(), ' ');
      if (i == 1 && relation > pieces[i].text.size())
        lines.back().append(relation - pieces[i].text.size(), ' ');
    }
    return lines;
  }

private:
  bool isKeyword(size_t i) const { return i == 0 && (pieces[i].is("when") || pieces[i].is("claim")); }

  bool isUnary(size_t i) const {
    return (pieces[i].is("-") || pieces[i].is("!")) && (i == 0 || isKeyword(i - 1) || !endsOperand(pieces[i - 1]));
  }

  /// Whether a blank stands before the piece.
  bool isSpaced(size_t i) const {
    if (i == 0)
      return false;
    const Piece &before = pieces[i - 1], &here = pieces[i];
    if (before.isComment() || here.isComment())
      return true;
    if (here.is(",") || here.is(";") || here.is(")") || here.is("]") || before.is("(") || before.is("["))
      return false;
    const bool isCall = here.is("(") && before.kind == Piece::Word && !isKeyword(i - 1);
    const bool isOfParam = here.is(":") && i == 2 && pieces.front().is("param");
    const bool isRead = here.is("[") && before.kind == Piece::Word && !before.is("in");
    return !isCall && !isRead && !isOfParam && !isUnary(i - 1);
  }

  bool mayBreakBefore(size_t i) const {
    const Piece &before = pieces[i - 1];
    return (before.is(",") && !pieces[i].isComment()) || pieces[i].is("&&") || pieces[i].is("||");
  }

  /// Columns from the piece to the next place where the line may end.
  size_t lengthToBreak(size_t i) const {
    size_t length = isSpaced(i) + pieces[i].text.size();
    for (size_t next = i + 1; next != pieces.size() && !mayBreakBefore(next); ++next)
      length += isSpaced(next) + pieces[next].text.size();
    return length;
  }

  ArrayRef<Piece> pieces;
};

// Lines

namespace {

struct Line {
  unsigned indent = 0;
  std::string text;
  std::string comment;         ///< after the text
  bool hasEmptyBefore = false; ///< an empty line stands before it
};

class Formatter {
public:
  explicit Formatter(ArrayRef<Piece> pieces) : pieces(pieces) {}

  std::string format() {
    while (at != pieces.size())
      formatBlock(0);
    return text();
  }

private:
  void formatBlock(unsigned indent);
  void formatStatement(unsigned indent, size_t key, size_t relation);
  bool formatInOneLine(unsigned indent, size_t open);
  void addComment(unsigned indent);
  void addLines(std::vector<std::string> texts, unsigned indent, bool hasEmptyBefore);
  size_t statementEnd(size_t begin) const;
  size_t closeOf(size_t open) const;
  bool isSetting(size_t begin) const;
  std::pair<size_t, size_t> widths() const;
  std::string text() const;

  ArrayRef<Piece> pieces;
  size_t at = 0;
  std::vector<Line> lines;
  bool atBlockStart = true; ///< nothing of the block was printed: no empty line, and no comment after it
};

} // namespace

/// One after the `;` that ends the statement, or at its `{`.
size_t Formatter::statementEnd(size_t begin) const {
  size_t i = begin;
  while (i != pieces.size() && !pieces[i].is("{") && !pieces[i].is("}") && !pieces[i].is(";"))
    ++i;
  return i != pieces.size() && pieces[i].is(";") ? i + 1 : i;
}

size_t Formatter::closeOf(size_t open) const {
  size_t depth = 0;
  for (size_t i = open; i != pieces.size(); ++i) {
    depth += pieces[i].is("{");
    if (pieces[i].is("}") && --depth == 0)
      return i;
  }
  return pieces.size();
}

/// Whether a key and `=`, or a gate and its relation, begin the statement, without a comment between.
bool Formatter::isSetting(size_t begin) const {
  static constexpr StringLiteral kSecond[] = {"=", "==", "!=", "<=", "<", ">=", ">"};
  return begin + 1 < pieces.size() && pieces[begin].kind == Piece::Word &&
         any_of(kSecond, [&](StringRef second) { return pieces[begin + 1].is(second); });
}

/// Of the keys and the relations of the block that begins here, without those of blocks inside.
std::pair<size_t, size_t> Formatter::widths() const {
  size_t key = 0, relation = 0;
  bool hasKeys = false;
  for (size_t i = at; i != pieces.size() && !pieces[i].is("}");) {
    if (pieces[i].isComment()) {
      ++i;
      continue;
    }
    if (isSetting(i)) {
      key = std::max(key, pieces[i].text.size());
      relation = std::max(relation, pieces[i + 1].text.size());
      hasKeys |= pieces[i + 1].is("=");
    }
    i = statementEnd(i);
    if (i != pieces.size() && pieces[i].is("{"))
      i = closeOf(i) + (closeOf(i) != pieces.size());
  }
  return {hasKeys ? std::max(key, kKeyColumns) : key, relation};
}

/// The statements up to the `}` of a block, which is left, or to the end of the file.
void Formatter::formatBlock(unsigned indent) {
  const auto [key, relation] = widths();
  atBlockStart = true;
  while (at != pieces.size()) {
    if (pieces[at].is("}") && indent != 0)
      return;
    if (pieces[at].isComment())
      addComment(indent);
    else
      formatStatement(indent, key, relation);
    atBlockStart = false;
  }
}

/// A comment that no statement is around: after the last line, or in one of its own.
void Formatter::addComment(unsigned indent) {
  const Piece &comment = pieces[at++];
  if (comment.lineEnds == 0 && !lines.empty()) {
    std::string &last = lines.back().comment;
    last += (last.empty() ? "" : " ") + comment.text.str();
    return;
  }
  addLines({comment.text.str()}, indent, comment.lineEnds > 1 && !atBlockStart);
}

void Formatter::addLines(std::vector<std::string> texts, unsigned indent, bool hasEmptyBefore) {
  for (auto [number, text] : enumerate(texts))
    lines.push_back({indent + (number == 0 ? 0 : kContinuation), std::move(text), "", number == 0 && hasEmptyBefore});
}

/// `head { a; b; }` where it was written so and has room. `at` is its first piece, `open` its `{`.
bool Formatter::formatInOneLine(unsigned indent, size_t open) {
  const size_t close = closeOf(open);
  for (size_t i = at + 1; i <= close; ++i)
    if ((i > open && (pieces[i].lineEnds != 0 || pieces[i].is("{"))) || pieces[i].kind == Piece::LineComment ||
        (pieces[i].isComment() && pieces[i].text.contains('\n')))
      return false;
  std::string text = join(StatementText(pieces.slice(at, open - at)).lines(0), " ") + " {";
  for (size_t i = open + 1; i != close;) {
    const size_t end = std::min(statementEnd(i), close);
    text += " " + join(StatementText(pieces.slice(i, end - i)).lines(0), " ");
    i = end;
  }
  text += close == open + 1 ? "}" : " }";
  if (indent + text.size() > kColumns)
    return false;
  addLines({text}, indent, pieces[at].lineEnds > 1 && !atBlockStart);
  at = close + 1;
  return true;
}

void Formatter::formatStatement(unsigned indent, size_t key, size_t relation) {
  const size_t end = statementEnd(at);
  const bool hasEmptyBefore = pieces[at].lineEnds > 1 && !atBlockStart;
  if (end == pieces.size() || !pieces[end].is("{")) {
    const bool isAligned = isSetting(at);
    const StatementText statement(pieces.slice(at, end - at));
    addLines(statement.lines(indent, isAligned ? key : 0, isAligned ? relation : 0), indent, hasEmptyBefore);
    at = end;
    return;
  }
  if (formatInOneLine(indent, end))
    return;
  addLines(StatementText(pieces.slice(at, end + 1 - at)).lines(indent), indent, hasEmptyBefore);
  at = end + 1;
  formatBlock(indent + kIndent);
  addLines({"}"}, indent, false);
  ++at;
}

// Text

/// The lines from `begin` on whose comments begin in one column: neighbours that all have one. At least one line.
static ArrayRef<Line> runAt(ArrayRef<Line> lines, size_t begin) {
  size_t end = begin + 1;
  if (!lines[begin].comment.empty())
    while (end != lines.size() && !lines[end].comment.empty() && !lines[end].hasEmptyBefore &&
           lines[end].indent == lines[begin].indent)
      ++end;
  return lines.slice(begin, end - begin);
}

std::string Formatter::text() const {
  std::string result;
  for (size_t begin = 0; begin != lines.size();) {
    const ArrayRef<Line> run = runAt(lines, begin);
    size_t column = 0;
    for (const Line &line : run)
      column = std::max(column, line.indent + line.text.size() + 1);
    for (const Line &line : run) {
      result += line.hasEmptyBefore ? "\n" : "";
      result.append(line.indent, ' ') += line.text;
      if (!line.comment.empty())
        result.append(column - line.indent - line.text.size(), ' ') += line.comment;
      result += "\n";
    }
    begin += run.size();
  }
  return result;
}

static bool isSame(const Piece &a, const Piece &b) { return a.kind == b.kind && a.text == b.text; }

std::optional<std::string> formatSpec(StringRef text, Diagnostics &diags) {
  const unsigned before = diags.errorCount();
  parseSpec(text, diags);
  if (diags.errorCount() != before)
    return std::nullopt;
  const std::vector<Piece> pieces = piecesOf(text);
  std::string formatted = Formatter(pieces).format();
  const std::vector<Piece> again = piecesOf(formatted);
  if (!std::equal(pieces.begin(), pieces.end(), again.begin(), again.end(), isSame)) {
    diags.internalError("the formatter", "it would change the spec");
    return std::nullopt;
  }
  return formatted;
}

} // namespace fagen
