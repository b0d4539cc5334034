// fagen: how many registers fragments take where products are issued.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include <vector>

namespace fagen {

/// Addresses, loop counters, descriptors: what no role that multiplies does without in addition to its fragments.
inline constexpr unsigned kLeastBesideFragments = 12;

struct HeldRegisters {
  const ir::Op *product = nullptr;            ///< null: the role issues none
  std::vector<const ir::Buffer *> fragments; ///< what a later op reads, and what the product takes
  unsigned registers = 0;                     ///< of these, a thread
};
/// The product of the role at which most is held.
HeldRegisters mostHeldAtProduct(const ir::Role &role);

} // namespace fagen
