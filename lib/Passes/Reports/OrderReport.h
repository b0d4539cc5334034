// fagen: tells people what the roles of a kernel leave unordered.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Analysis/Order.h"
#include "fagen/Support/Diagnostics.h"

namespace fagen {

/// One error for each pair that nothing orders, naming both accesses, and for each way in which the roles do not fit
/// together; true when there is none. With `internal`, the name of a pass, they are mistakes of ours.
bool reportOrder(const ir::Kernel &kernel, const OrderInfo &info, Diagnostics &diags, llvm::StringRef internal);

/// As print-hazards lists it.
void printOrder(const ir::Kernel &kernel, const OrderInfo &info, llvm::raw_ostream &os);

/// Which accesses each op that synchronises orders, in program order.
std::vector<std::string> coversOf(const ir::Kernel &kernel, const OrderInfo &info);

/// Numbers what synchronises, from 1, and says so of each in the ledger.
void fillLedger(ir::Kernel &kernel, llvm::ArrayRef<std::string> covers);

} // namespace fagen
