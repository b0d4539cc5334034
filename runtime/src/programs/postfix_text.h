// fagen: words of manifests for the numbers of fagen.h and table.h.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../fields.h"

#include <fagen/table.h>

#include <string>
#include <vector>

namespace fagen {

/// A word and the number that it stands for.
struct Word {
  const char *word;
  uint32_t number;
};

/// The number of a field's word; FieldError with all words for another.
template <size_t N> uint32_t wordOf(const Field &field, const Word (&words)[N]) {
  std::string known;
  for (const Word &entry : words) {
    if (field.text() == entry.word)
      return entry.number;
    known += (known.empty() ? "" : ", ") + std::string(entry.word);
  }
  field.fail("is " + inQuotes(field.text()) + "; known: " + known);
}

/// Numbers, variables and operations in postfix order: ["seq_q", 32, "le"]. Of an extent and of shared tiles also
/// params of a form, and of a recipe its numbers, by the words that stand for them.
std::vector<fagen_op> readProgram(const Field &field, const std::vector<std::string> &params = {});

} // namespace fagen
