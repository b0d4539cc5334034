// fagen: runs a kernel's body with given trip counts and says whether any access was unordered.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shares nothing with the analysis but the enumeration of accesses. Every thread has a vector clock, every two bytes
// remember who last wrote and read them; copies in flight are writes that nobody has seen. What is a race then follows
// from the definition, not from scopes, paths and periods.
#pragma once

#include "fagen/IR/IR.h"

namespace fagen::test {

/// `lets`: values of the lets and run-time values that loops, positions and predicates name. At most 128 threads.
bool isFreeOfRaces(const ir::Kernel &kernel, const std::map<std::string, int64_t> &lets);

} // namespace fagen::test
