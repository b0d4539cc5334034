// fagen: stands in for what runs kernels in the emulator in builds without the emulator (no Boost.Context).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device.h"
#include "lab/conformance/conformance.h"
#include "lab/program/run.h"

namespace fagen::lab {

static const char *const kNoEmulator =
    "this build of fagen-run has no emulator; build it where Boost.Context is installed";

std::unique_ptr<TestDevice> makeEmulatorDevice(EmulatorHooks) { throw UserError(kNoEmulator); }

std::unique_ptr<KernelRunner> makeEmulatorRunner() { throw UserError(kNoEmulator); }

std::unique_ptr<ProgramRunner> makeEmulatedProgram() { throw UserError(kNoEmulator); }

} // namespace fagen::lab
