// fagen: "did you mean".
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/Suggest.h"

#include <algorithm>
#include <vector>

using namespace llvm;

namespace fagen {

/// Insertions, removals, replacements and swaps of neighbours that make one word of the other; each counts one.
static unsigned distanceOf(StringRef a, StringRef b) {
  std::vector<unsigned> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last.back();
}

StringRef nearestWord(StringRef word, ArrayRef<StringRef> candidates) {
  unsigned limit = std::max<unsigned>(1, word.size() / 3);
  StringRef best;
  for (StringRef candidate : candidates) {
    if (word.equals_insensitive(candidate))
      return candidate;
    if (word.size() == 1 || candidate.size() == 1)
      continue; // every letter is one replacement away
    const size_t gap = std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    if (gap > limit)
      continue;
    const unsigned distance = distanceOf(word, candidate);
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
