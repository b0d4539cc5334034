// fagen: a spec as tokens and comments, each with the line ends before it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Pieces.h"

#include "fagen/Parse/Lexer.h"

#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace fagen {

static Piece::Kind kindOf(const Token &token) {
  switch (token.kind) {
  case Token::Integer:
  case Token::Decimal:
    return Piece::Number;
  case Token::Word:
    return Piece::Word;
  default:
    return Piece::Punctuation;
  }
}

namespace {

class Collector {
public:
  /// The comments in what stands between two tokens.
  void addSpace(StringRef space) {
    while (!space.empty()) {
      if (space.starts_with("//")) {
        const StringRef comment = space.take_until([](char c) { return c == '\n'; });
        add(Piece::LineComment, comment.rtrim());
        space = space.drop_front(comment.size());
      } else if (space.starts_with("/*")) {
        const StringRef comment = space.take_front(space.find("*/", 2) + 2);
        add(Piece::BlockComment, comment);
        space = space.drop_front(comment.size());
      } else {
        lineEnds += space.front() == '\n';
        space = space.drop_front();
      }
    }
  }
  void add(Piece::Kind kind, StringRef text) {
    pieces.push_back({kind, text, lineEnds});
    lineEnds = 0;
  }
  std::vector<Piece> take() { return std::move(pieces); }

private:
  std::vector<Piece> pieces;
  unsigned lineEnds = 0;
};

} // namespace

std::vector<Piece> piecesOf(StringRef text) {
  SourceMgr sources;
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBuffer(text, "", /*RequiresNullTerminator=*/false), SMLoc());
  Diagnostics silent(sources, nulls());
  Lexer lexer(text, silent);
  Collector collector;
  const char *end = text.begin();
  for (Token token = lexer.next();; token = lexer.next()) {
    const char *begin = token.kind == Token::End ? text.end() : token.text.begin();
    collector.addSpace(StringRef(end, begin - end));
    if (token.kind == Token::End)
      return collector.take();
    collector.add(kindOf(token), token.text);
    end = token.text.end();
  }
}

} // namespace fagen
