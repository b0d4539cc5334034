// fagen: "did you mean".
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/Suggest.h"

#include <algorithm>

using namespace llvm;

namespace fagen {

StringRef nearestWord(StringRef word, ArrayRef<StringRef> candidates) {
  unsigned limit = std::max<unsigned>(1, word.size() / 3);
  StringRef best;
  for (StringRef candidate : candidates) {
    unsigned distance = word.edit_distance(candidate, /*AllowReplacements=*/true, limit);
    if (distance > limit)
      continue;
    best = candidate;
    if (distance == 0)
      break;
    limit = distance - 1;
  }
  return best;
}

std::string alternatives(ArrayRef<StringRef> words) {
  std::string result;
  for (size_t i = 0; i != words.size(); ++i)
    result += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i].str();
  return result;
}

} // namespace fagen
