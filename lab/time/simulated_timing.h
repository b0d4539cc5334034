// fagen: times from a file instead of a GPU, so that everything above a timing device is tested without one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file:
//   {"device": {"name": "recorded H200", "compute_capability": 90, "sms": 132},
//    "entries": [{"name": "l4_fp16_short_f16_d64_none", "shape": "mission", "mask": "none", "dtype": "f16",
//                 "us": [8.1, 8.2], ...}, ...]}
// With "peer": true sdpa is left to the peer process (baselines/peer.h), as on a GPU.
// The first entry whose name is that of the contestant, and whose shape, mask, dtype and l2 are the problem's or are
// not given, says what happens:
//   us                 the times of its replays, over and over; or
//   median_us, noise   seeded times around a median; noise is their relative standard deviation (0.01)
//   clock_mhz, watts, celsius    a number, or a list with one for each turn, the last one repeated
//   registers, local_bytes, library    what the driver would tell, and whose work it is
//   fails, refuses     a message: the launch fails, the contestant cannot be prepared
//   hangs, crashes     true: the first replay never returns, or aborts the process
// Time is virtual: sleeping and replaying only move the clock.
#pragma once

#include "timing_device.h"

#include <filesystem>

namespace fagen::lab {

/// UserError when the file is missing or says something else.
std::unique_ptr<TimingDevice> makeSimulatedTiming(const std::filesystem::path &file);

} // namespace fagen::lab
