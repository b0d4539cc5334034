// fagen: messages about text that has long lines, or quote long words, stay readable.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LongLines.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/WithColor.h"

#include <algorithm>

using namespace llvm;

namespace fagen {

static constexpr size_t kMostMessage = 1000, kMostSource = 160;
static constexpr StringLiteral kCut = "...";

/// Where the text may be cut, from `at` on: before a character of UTF-8, of which three bytes at most are after
/// its first.
static size_t nextCharacter(StringRef text, size_t at) {
  for (unsigned bytes = 0; bytes != 3 && at != 0 && at < text.size(); ++bytes, ++at)
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80)
      break;
  return std::min(at, text.size());
}

static std::string shortened(StringRef line) {
  if (line.size() <= kMostMessage)
    return line.str();
  const size_t head = nextCharacter(line, kMostMessage * 3 / 4);
  const size_t tail = nextCharacter(line, line.size() - kMostMessage / 4 + kCut.size() + 4); // of a character
  return (line.take_front(head) + kCut + line.drop_front(tail)).str();
}

std::string withShortLines(std::string message) {
  if (message.size() <= kMostMessage)
    return message;
  SmallVector<StringRef> lines;
  SplitString(message, lines, "\n");
  return join(map_range(lines, shortened), "\n");
}

/// What SMDiagnostic prints before the message, for the place that it has in the whole line.
static void printPlace(const SMDiagnostic &diagnostic, raw_ostream &os) {
  WithColor bold(os, raw_ostream::SAVEDCOLOR, /*Bold=*/true, /*BG=*/false,
                 os.has_colors() ? ColorMode::Auto : ColorMode::Disable);
  const StringRef file = diagnostic.getFilename();
  bold << (file == "-" ? "<stdin>" : file) << ":" << diagnostic.getLineNo() << ":" << diagnostic.getColumnNo() + 1
       << ": ";
}

void printWithShortLine(const SMDiagnostic &diagnostic, raw_ostream &os) {
  const StringRef line = diagnostic.getLineContents();
  const size_t caret = size_t(std::max(diagnostic.getColumnNo(), 0));
  if (line.size() <= kMostSource || caret > line.size())
    return diagnostic.print(nullptr, os, os.has_colors());
  const size_t begin =
      nextCharacter(line, std::min(caret - std::min(caret, kMostSource / 2), line.size() - kMostSource));
  const size_t end = nextCharacter(line, std::min(begin + kMostSource, line.size()));
  // In the place of bytes, so that columns stay what they are.
  std::string shown = line.slice(begin, end).str();
  if (begin != 0)
    shown.replace(0, kCut.size(), kCut.str());
  if (end != line.size())
    shown.replace(shown.size() - kCut.size(), kCut.size(), kCut.str());
  SmallVector<std::pair<unsigned, unsigned>> ranges;
  for (auto [from, to] : diagnostic.getRanges())
    if (const size_t first = std::max<size_t>(from, begin), last = std::min<size_t>(to, end); first < last)
      ranges.push_back({unsigned(first - begin), unsigned(last - begin)});
  printPlace(diagnostic, os);
  SMDiagnostic(*diagnostic.getSourceMgr(), diagnostic.getLoc(), diagnostic.getFilename(), diagnostic.getLineNo(),
               int(caret - begin), diagnostic.getKind(), diagnostic.getMessage(), shown, ranges, diagnostic.getFixIts())
      .print(nullptr, os, os.has_colors(), /*ShowKindLabel=*/true, /*ShowLocation=*/false);
}

} // namespace fagen
