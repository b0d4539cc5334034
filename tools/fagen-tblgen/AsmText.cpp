// fagen: pieces of inline assembly that the emitters of device functions share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AsmText.h"

#include "llvm/ADT/StringRef.h"

using namespace llvm;

namespace fagen::tblgen {

std::string operandList(int64_t first, int64_t count) {
  std::string result = "{";
  for (int64_t i = 0; i != count; ++i)
    result += (i == 0 ? "%" : ", %") + std::to_string(first + i);
  return result + "}";
}

std::vector<std::string> constraints(StringRef constraint, StringRef array, int64_t count) {
  std::vector<std::string> result;
  for (int64_t i = 0; i != count; ++i)
    result.push_back("\"" + constraint.str() + "\"(" + array.str() + "[" + std::to_string(i) + "])");
  return result;
}

void emitList(raw_ostream &os, size_t indent, const std::vector<std::string> &list, StringRef end) {
  std::string line = std::string(indent, ' ') + ":";
  for (size_t i = 0; i != list.size(); ++i) {
    const std::string item = list[i] + (i + 1 != list.size() ? "," : end.str());
    if (line.size() + 1 + item.size() > kColumns) {
      os << line << '\n';
      line = std::string(indent + 1, ' ');
    }
    line += " " + item;
  }
  os << line << '\n';
}

void emitLiterals(raw_ostream &os, size_t indent, StringRef text) {
  const size_t room = kColumns - indent - 2; // two quotes
  for (bool isFirst = true; !text.empty(); isFirst = false) {
    const size_t end = text.size() <= room ? text.size() : text.rfind(' ', room - 1) + 1;
    os << (isFirst ? "" : std::string(indent, ' ')) << '"' << text.take_front(end) << "\"\n";
    text = text.drop_front(end);
  }
}

} // namespace fagen::tblgen
