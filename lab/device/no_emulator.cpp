// fagen: stands in for what runs kernels in the emulator in builds without the emulator (no Boost.Context).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device.h"

namespace fagen::lab {

std::unique_ptr<TestDevice> makeEmulatorDevice(EmulatorHooks) { throw UserError(kNoEmulator); }

} // namespace fagen::lab
