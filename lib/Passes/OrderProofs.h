// fagen: what was proven of roles, by the text of their kernel: types of the same size, and the same kernel again, take
// no second proof.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include <optional>
#include <string>
#include <vector>

namespace fagen {

/// Everything that Analysis/Order.h looks at, and no more: no symbol, place, note or site; bf16 is f16.
std::string proofKey(const ir::Kernel &kernel);

/// The ledger's text for each site of a kernel of this key that was found sound; nothing if none was.
std::optional<std::vector<std::string>> findProof(const std::string &key);
void keepProof(const std::string &key, std::vector<std::string> covers);

} // namespace fagen
