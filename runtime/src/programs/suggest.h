// fagen: names that a caller may have meant.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../words.h"

#include <algorithm>
#include <cstring>

namespace fagen {

/// The nearest of the names that are added, and all of them: "; did you mean 'gemm'? there are gemm, norm".
class Suggestion {
public:
  explicit Suggestion(const char *wanted) : wanted(wanted), all(list, sizeof(list)) {}

  void add(const char *name) {
    if (count++ < kShown)
      all.add("%s%s", count == 1 ? "" : ", ", name);
    if (const unsigned distance = distanceTo(name); distance < least) {
      least = distance;
      nearest = name;
    }
  }

  const char *text() {
    Text whole(words, sizeof(words));
    if (count == 0)
      whole.add("; there is none");
    else if (least * 3 <= strlen(wanted) + 1)
      whole.add("; did you mean '%s'? there %s %s%s", nearest, count == 1 ? "is" : "are", list, more());
    else
      whole.add("; there %s %s%s", count == 1 ? "is" : "are", list, more());
    return words;
  }

private:
  static constexpr unsigned kShown = 16, kLongest = 63;

  const char *more() const { return count > kShown ? ", ..." : ""; }

  /// Characters to insert, remove or change; of long names a large number.
  unsigned distanceTo(const char *name) const {
    const size_t rows = strlen(wanted), columns = strlen(name);
    if (rows > kLongest || columns > kLongest)
      return kLongest;
    unsigned costs[kLongest + 1];
    for (unsigned c = 0; c <= columns; ++c)
      costs[c] = c;
    for (unsigned r = 1; r <= rows; ++r) {
      unsigned diagonal = costs[0];
      costs[0] = r;
      for (unsigned c = 1; c <= columns; ++c) {
        const unsigned changed = diagonal + (wanted[r - 1] != name[c - 1]);
        diagonal = costs[c];
        costs[c] = std::min({changed, costs[c] + 1, costs[c - 1] + 1});
      }
    }
    return costs[columns];
  }

  const char *const wanted;
  const char *nearest = nullptr;
  unsigned least = kLongest, count = 0;
  char list[512] = "", words[768] = "";
  Text all;
};

} // namespace fagen
