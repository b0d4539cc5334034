// fagen: what registers hold before they are written, in the emulator: a pattern that its findings know.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

template <class Array> struct Registers {
  Array value;

  Registers() {
    unsigned *words = reinterpret_cast<unsigned *>(&value);
    for (unsigned i = 0; i < sizeof(value) / sizeof(unsigned); ++i)
      words[i] = kUninitialised;
  }
};

} // namespace fagen::device::ptx
