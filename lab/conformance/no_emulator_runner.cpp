// fagen: stands in for the emulator's runner in builds without the emulator (no Boost.Context).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conformance.h"
#include "lab/device/device.h"

namespace fagen::lab {

std::unique_ptr<KernelRunner> makeEmulatorRunner() { throw UserError(kNoEmulator); }

} // namespace fagen::lab
