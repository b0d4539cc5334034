// fagen: how sums and results of an online softmax follow a row's maximum, as maps that stand side by side.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   at once                               where a product still adds to o
//     map l = l f                           map alpha = f
//     map o = o f                           map l = l alpha
//     map m = m_new                         map m = m_new           ...   map o = o alpha
//
// with f = exp2((m - m_new) c); c is what takes the scores that are held to powers of two. Lazily, only in warps of
// which a row has grown by more than a factor of 2^kLazyBits (ops/softmax.h), they are the body of a vote, and alpha is
// 1 elsewhere.
#pragma once

#include "fagen/IR/Patterns.h"

namespace fagen::ir {

struct Rescaling {
  const Buffer *o = nullptr, *alpha = nullptr; ///< one of them
  const Buffer *l = nullptr, *m = nullptr, *mNew = nullptr;
  Expr factor = {}; ///< c
  bool isGuarded = false, isLazy = false;
  size_t count = 0; ///< of ops
  const Op *first = nullptr;
};
/// Where one begins with the first of the ops.
std::optional<Rescaling> asRescaling(llvm::ArrayRef<const Op *> ops);
/// `count` is not asked for.
Ops makeRescaling(const Rescaling &rescaling, const Location &location);

/// o = o alpha; lazily where alpha is not 1 in some row of the warp.
struct OutputRescaling {
  const Buffer *o = nullptr, *alpha = nullptr;
  bool isLazy = false;
};
std::optional<OutputRescaling> asOutputRescaling(const Op &op);
std::unique_ptr<Op> makeOutputRescaling(const OutputRescaling &rescaling, const Location &location);

/// Rows that have no maximum yet take that of their scores: vote m == -inf { m_new = max(m, s); m = m_new of these }
struct Beginning {
  const Buffer *s = nullptr, *m = nullptr, *mNew = nullptr;
};
std::optional<Beginning> asBeginning(const Op &op);
std::unique_ptr<Op> makeBeginning(const Beginning &beginning, const Location &location);

/// Whether it is a map of one of these, or a vote on them.
bool isOfRescaling(const Op &op);

/// The first one of a block's own ops, and where it begins.
struct FoundRescaling {
  Rescaling rescaling;
  size_t at;
};
std::optional<FoundRescaling> findRescaling(const Ops &ops);

llvm::SmallVector<const Op *, 16> pointersTo(const Ops &ops);

} // namespace fagen::ir
