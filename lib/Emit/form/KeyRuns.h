// fagen: a mask with an element for each key, asked for runs of keys.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/Support/IndentedStream.h"

#include <string>
#include <vector>

namespace fagen {

/// `tensor(indices)` with k for the last index or what goes up with it, or stays: a run of elements, called `name`.
struct KeyRunRead {
  std::string name;
  ir::Expr read;
};

/// A condition on q and k whose reads are elements of runs. All must hold: what words with a bit for each key of a run
/// tell together, and what is asked for each key alone.
struct ConditionByRuns {
  struct Word {
    ir::Expr begin = {}, end = {}; ///< keys from `begin` on and before `end`; null where nothing bounds them
    std::string run = {};          ///< those whose element in this run is not 0
    bool isOpposite = false;       ///< whose element is 0
  };
  std::vector<KeyRunRead> runs;
  std::string first, read, place; ///< the lambdas' names for a run's first key, what reads it, a key's place in it
  std::vector<Word> words;
  ir::Expr condition; ///< names elements as runs[place]; null where words tell all

  ConditionByRuns(const ir::Kernel &kernel, const ir::Expr &condition);
};

/// The body of a lambda of q, a run's first key and what reads runs that makes a bit for each key for which the
/// condition holds. The form is a member of `holder`, "cta." or nothing.
void emitSeenOfRun(IndentedStream &out, const ConditionByRuns &condition, llvm::StringRef holder,
                   llvm::function_ref<std::string(const ir::Expr &)> spell);

/// Of a tensor that may be empty, known ? 0 : tensor[...], the read; else nothing.
ir::Expr guardedRead(const ir::Kernel &kernel, const ir::Expr &expr);
/// Whether it reads an element, not a box.
bool isReadOfElement(const ir::Kernel &kernel, const ir::Expr &expr);

} // namespace fagen
