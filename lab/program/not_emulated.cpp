// fagen: stands in for programs in the emulator in builds without the emulator (no Boost.Context).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/device/device.h"
#include "run.h"

namespace fagen::lab {

std::unique_ptr<ProgramRunner> makeEmulatedProgram() { throw UserError(kNoEmulator); }

std::vector<Failure> emulateCall(const std::string &, const fagen_row &, const fagen_call &, int) {
  throw UserError(kNoEmulator);
}

} // namespace fagen::lab
