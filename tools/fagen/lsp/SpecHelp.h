// fagen: what an editor shows at a place of a spec: the words that may stand there, and what a word means.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace fagen {

struct SuggestedWord {
  std::string text;
  std::string help;
};

/// The words that may stand at the offset: keys of the block, values of the key, targets, blocks of a kernel. Text may
/// have mistakes.
std::vector<SuggestedWord> wordsAt(llvm::StringRef text, size_t offset);

/// What the key, value or target at the offset means, as Markdown; empty for any other word.
std::string meaningAt(llvm::StringRef text, size_t offset);

} // namespace fagen
