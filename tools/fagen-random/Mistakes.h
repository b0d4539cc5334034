// fagen: one mistake in a spec that was right.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Text.h"

namespace fagen::random {

struct Mistake {
  llvm::StringRef name;
  /// Makes it and marks where; false where the spec has no place for it, and then nothing is changed.
  bool (*inText)(std::vector<Node> &nodes, Random &random);
};

/// Mistakes of text and blocks, of single values, of expressions.
std::vector<Mistake> blockMistakes();
std::vector<Mistake> valueMistakes();
std::vector<Mistake> expressionMistakes();

/// A value that breaks the rule, alone or with others that it brings. The settings to blame are marked; false where
/// none is found.
bool breakRule(llvm::StringRef rule, bool isAlone, Spec &spec, Random &random);

struct WrongSpec {
  std::string mistake; ///< its name
  std::vector<Node> nodes;
};

/// A random mistake of all kinds; `first` says which kind is tried first, so that consecutive seeds show them all.
WrongSpec drawWrongSpec(Random &random, const TargetInfo *target, uint64_t first);

/// The names of all kinds.
std::vector<std::string> allMistakes();

} // namespace fagen::random
