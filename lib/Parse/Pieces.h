// fagen: a spec as tokens and comments, each with the line ends before it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Support/Diagnostics.h"

#include <vector>

namespace fagen {

struct Piece {
  enum Kind : uint8_t { Word, Number, Punctuation, LineComment, BlockComment };
  Kind kind;
  llvm::StringRef text;  ///< of a line comment without the blanks at its end
  unsigned lineEnds = 0; ///< between the piece before and this one

  bool isComment() const { return kind == LineComment || kind == BlockComment; }
  bool is(llvm::StringRef expected) const { return (kind == Word || kind == Punctuation) && text == expected; }
};

/// All pieces of a text that parses.
std::vector<Piece> piecesOf(llvm::StringRef text);

} // namespace fagen
