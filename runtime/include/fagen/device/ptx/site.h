// fagen: the place of a call, carried to the ptx functions. Empty on the GPU; the emulator's has file and line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::device::ptx {

struct Site {
  static __device__ constexpr Site here() { return {}; }
};

} // namespace fagen::device::ptx
