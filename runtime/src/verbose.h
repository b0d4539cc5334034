// fagen: lines on standard error about what is loaded and compiled, when FAGEN_VERBOSE is set.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen {

[[gnu::format(printf, 1, 2)]] void verbose(const char *format, ...);

} // namespace fagen
