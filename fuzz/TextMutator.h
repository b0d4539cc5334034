// fagen: edits of text that keep most of it well-formed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

namespace fagen::fuzz {

/// Some edits that the seed decides: of numbers, words, lines.
void mutateText(std::string &text, uint64_t seed);

/// Some edits of bytes: another one, one more or less, the end cut off.
void mutateBytes(std::string &text, uint64_t seed);

} // namespace fagen::fuzz
