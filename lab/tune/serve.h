// fagen: the process in which candidates are launched: it times what it is asked to, and may die of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Requests and answers are JSON, one a line. A request:
//   {"problem": case, "contestants": [{"directory": DIR, "variant": NAME}, ...], "reference": {...},
//    "rounds": N, "limit": X, "measure": "time"}
// The answer: {"results": [{"segments": [[us, ...], ...], "stopped": bool} or {"failure": why}, ...]}, or
// {"lost": why} when the device gave up: then the process ends. With "measure": "joules" segments have one number each,
// the millijoules of a launch.
// Contestants take turns, `rounds` times; without any they are only built, which leaves their code in the cache. One
// alone stops early when its first replays, or its median after a turn, are above the limit. The reference is the first
// to compute O: others that differ from it are refused.
#pragma once

#include "lab/support/text_table.h"
#include "lab/support/user_error.h"
#include "lab/time/timing_device.h"

#include <iosfwd>

namespace fagen::lab::tune {

void serveTiming(TimingDevice &device, std::istream &requests, std::ostream &answers);

} // namespace fagen::lab::tune
