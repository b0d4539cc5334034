// fagen: the ledger in a kernel's head: what orders the threads, a line an object.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

namespace fagen {

/// A line for buffers that mbarriers guard alike, and one for other barriers, for turns and for waits:
///
///   ring     k         filled by bulk copies of load (k_full), released by 8 warps (k_empty): RAW, WAR, WAW
///   barrier  of the CTA: RAW mbarriers; of each warp: RAW q, WAR k q
///
/// Where nothing is guarded, a line a barrier or wait, by its site, with the pairs that it orders, or their buffers;
/// sites that order the same share one. --emit=barriers and the manifest list all pairs.
std::vector<std::string> ledgerOf(const ir::Kernel &kernel);

} // namespace fagen
