// fagen: a kernel's text to a library of host code, by the system's C++ compiler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace fagen::emulator {

/// The name that the compiler is given for the kernel's file, so that a cached library serves any place of the file.
inline constexpr char kKernelFile[] = "<kernel>";

/// The kernel's library, from the cache or compiled. Empty with `error` set where the compiler refuses the text.
/// MachineError.
std::string compileKernel(const std::string &cuPath, std::string &error);

} // namespace fagen::emulator
