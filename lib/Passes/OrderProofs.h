// fagen: what was proven of kernels: types of the same size, and the same kernel again, take no second proof.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Analysis/Cover.h"

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace fagen {

/// Everything that Analysis/Order.h and Hazards.h look at, and no more: no symbol, place, note or site, no test of
/// a vote; bf16 is f16.
std::string proofKey(const ir::Kernel &kernel);

/// Of a kernel of roles, what a proof sees of its tiles' sizes in place of these: who meets on which bytes, and of the
/// bytes of copies their proportions. Kernels of two head dims may have the same.
std::string proofKeyOfRoles(const ir::Kernel &kernel);

/// Of all kernels with the same key. Who looks at it, or makes it, holds its mutex: who comes meanwhile waits.
struct OrderProof {
  std::mutex mutex;
  std::optional<std::vector<std::string>>
      covers; ///< the ledger's text for each site, where there are roles; nothing: not found sound so far
  bool readsItsTiles = false; ///< as far as somebody asked
  // Of a kernel of one role; nothing: not asked so far.
  std::optional<std::vector<Placement>> missing;  ///< the barriers that it lacks, if barriers can mend it
  std::optional<std::vector<std::string>> ledger; ///< its text for each site, sound or not
  bool isCovered = false;                         ///< its hazards are, as far as somebody asked
  OrderProof *ofRoles = nullptr;                  ///< by proofKeyOfRoles: what stands for it; null: not asked so far
};
OrderProof &proofOf(const std::string &key);
/// Of a kernel of roles.
OrderProof &proofOfRoles(const ir::Kernel &kernel);

} // namespace fagen
