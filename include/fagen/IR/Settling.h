// fagen: a step of an online softmax whose terms were computed by the maximum of the steps before, as ops that stand
// side by side. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   map alpha = 1
//   reduce sums = sum(s)
//   vote !(sums <= bound) fenced {              // kSettledSum of ops/settle.h, by the type of q
//     vote !(sums <= 2^100) {                   // or no number
//       mma s = q k^T; what shapes the scores: map s = ..., map s = visible ? s : -inf
//       reduce m_new = max(m, s); alpha, l, m as in Rescaling.h; map s = exp2(s c - m c); reduce sums = sum(s)
//     }
//     reduce m_new = sum(sums) of rows; map m_new = m + max(log2(m_new) - bits, 0) / c  // kLoweredBits
//     map s, sums, alpha, l, each times exp2((m - m_new) c); map m = m_new
//   }
//   ...                                         // ops that tell others that q or k is read
//   map l = l + sums
#pragma once

#include "fagen/IR/Rescaling.h"

namespace fagen::ir {

struct Settling {
  const Buffer *s = nullptr, *sums = nullptr, *alpha = nullptr, *l = nullptr, *m = nullptr, *mNew = nullptr;
  Expr factor = {};            ///< c
  ExponentOrder order = {};    ///< of the terms
  const Op *product = nullptr; ///< which is done again: an mma or mma_issue
  /// The maps between the product and the maximum, masks among them, which are, too.
  llvm::SmallVector<const Op *, 2> shaping = {};
  bool isApart = false; ///< the vote's body has its text outside of the loop
  const Op *vote = nullptr, *sum = nullptr;
};
inline constexpr size_t kSettlingOps = 3; ///< side by side; l follows after them
/// Where one begins with the first of the ops.
std::optional<Settling> asSettling(llvm::ArrayRef<const Op *> ops);
Ops makeSettling(const Settling &settling, const Location &location);
/// The first product of warps of their own (mma) that is no part of a settling; null where there is none.
const Op *findUnsettling(const Block &block);
/// Whether it is known how far terms of the product's operands may grow: those of f16, bf16 and e4m3.
bool canSettle(const Op &product);

} // namespace fagen::ir
