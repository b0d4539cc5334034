// fagen: an output stream that indents each line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/IndentedStream.h"

#include "llvm/ADT/StringRef.h"

using namespace llvm;

namespace fagen {

void IndentedStream::write_impl(const char *text, size_t size) {
  StringRef rest(text, size);
  while (!rest.empty()) {
    StringRef piece = rest.take_front(rest.find('\n'));
    bool ended = piece.size() != rest.size();
    if (atLineStart && !piece.empty())
      os.indent(level * width);
    os << piece;
    if (ended)
      os << '\n';
    atLineStart = ended;
    line += ended;
    rest = rest.drop_front(piece.size() + ended);
  }
}

} // namespace fagen
