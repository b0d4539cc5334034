// fagen: the place of a call, carried to the ptx functions: the emulator's findings name it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::device::ptx {

struct Site {
  const char *file;
  int line;

  /// As a default argument: the place of the call that left the argument out.
  static constexpr Site here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

} // namespace fagen::device::ptx
