// fagen: an output stream that indents each line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/IndentedStream.h"

#include "llvm/ADT/StringRef.h"

using namespace llvm;

namespace fagen {

void IndentedStream::write_impl(const char *text, size_t size) {
  StringRef rest(text, size);
  while (!rest.empty()) {
    StringRef line = rest.take_until([](char c) { return c == '\n'; });
    bool ended = line.size() != rest.size();
    if (atLineStart && !line.empty())
      os.indent(level * width);
    os << line;
    if (ended)
      os << '\n';
    atLineStart = ended;
    rest = rest.drop_front(line.size() + ended);
  }
}

} // namespace fagen
