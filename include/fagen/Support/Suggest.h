// fagen: "did you mean": the nearest of the words that would be accepted.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace fagen {

/// The candidate with the smallest edit distance to `word`, in which a swap of neighbours counts one, the first of
/// equals; empty when none is within a third of the word's length (at least 1). One letter is near its capital only.
llvm::StringRef nearestWord(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> candidates);

/// "a", "a or b", "a, b or c".
std::string alternatives(llvm::ArrayRef<llvm::StringRef> words);

} // namespace fagen
