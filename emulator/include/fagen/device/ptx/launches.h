// fagen: launches of a stream, in the emulator, where one ends before the next one begins.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::device::ptx {

inline void await_launches() {}
inline void release_launches() {}

} // namespace fagen::device::ptx
