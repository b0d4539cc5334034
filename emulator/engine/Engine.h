// fagen: the table through which a loaded kernel calls the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::emulator {

extern const device::ptx::Engine kEngine;

} // namespace fagen::emulator
