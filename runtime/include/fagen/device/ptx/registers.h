// fagen: what registers hold before they are written.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::device::ptx {

/// The elements of a fragment. Until they are written they hold anything; the emulator tells who uses that.
template <class Array> struct Registers {
  Array value;
};

} // namespace fagen::device::ptx
