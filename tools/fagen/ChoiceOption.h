// fagen: an option that takes one of a list of values, which manual pages and completions ask for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/CommandLine.h"

namespace fagen {

/// The values of each ChoiceOption that is alive. LLVM's base class of options does not tell them.
inline llvm::DenseMap<const llvm::cl::Option *, const llvm::cl::generic_parser_base *> &knownChoices() {
  static llvm::DenseMap<const llvm::cl::Option *, const llvm::cl::generic_parser_base *> choices;
  return choices;
}

template <typename T> class ChoiceOption : public llvm::cl::opt<T> {
public:
  template <typename... Mods> explicit ChoiceOption(const Mods &...mods) : llvm::cl::opt<T>(mods...) {
    knownChoices()[this] = &this->getParser();
  }
  ~ChoiceOption() { knownChoices().erase(this); }
};

} // namespace fagen
