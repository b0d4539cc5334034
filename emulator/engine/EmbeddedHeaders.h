// fagen: the text of the headers that kernels include, carried in the library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>
#include <vector>

namespace fagen::emulator {

struct EmbeddedHeader {
  std::string_view name; ///< as kernels include it: "fagen/device/..."
  std::string_view text;
};

const std::vector<EmbeddedHeader> &embeddedHeaders();

} // namespace fagen::emulator
