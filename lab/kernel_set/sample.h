// fagen: one schedule of a kernel set, where the whole set takes too long.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "manifest.h"

namespace fagen::lab {

/// The variants of one schedule of a set, and the names of the schedules that are left out.
struct ScheduleSample {
  std::string kernel, schedule;
  std::vector<std::string> variants, leftOut;
};

/// Draws among the schedules that dispatch picks freely, each as likely as any other; the same for a seed and a kernel.
ScheduleSample drawSchedule(const KernelSet &set, uint64_t seed);

/// "l4_fp16: schedule medium, 4 variants; left out: prefill, short, unaligned".
std::string describe(const ScheduleSample &sample);

} // namespace fagen::lab
