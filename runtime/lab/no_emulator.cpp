// fagen: stands in for emulator_device.cpp in builds without the emulator (no Boost.Context).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device.h"

namespace fagen::lab {

std::unique_ptr<TestDevice> makeEmulatorDevice(EmulatorHooks) {
  throw UserError("this build of fagen-run has no emulator; build it where Boost.Context is installed");
}

} // namespace fagen::lab
