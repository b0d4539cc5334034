// fagen: the machine that results are of.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/support/text_table.h"

namespace fagen::lab {

/// "580.159.04" of the line that the NVIDIA driver says of itself in /proc; the line itself when there is none in it.
std::string driverVersionOf(const std::string &line);
/// CPU, operating system, and, when given, GPU, driver and NVRTC.
Json describeMachine(const class Gpu *gpu);

} // namespace fagen::lab
