// fagen: edits of spec and IR text that keep most of it well-formed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

namespace fagen::fuzz {

/// Some edits that the seed decides: of numbers, words, lines.
void mutateText(std::string &text, uint64_t seed);

} // namespace fagen::fuzz
