// fagen: counts one launch with Nsight Compute's command line, in a process of its own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "counter_device.h"

namespace fagen::lab {

/// Runs ncu (the file that FAGEN_NCU names, on PATH, or /usr/local/cuda/bin/ncu) on `fagen-run profile ... --counters
/// none`. Clocks and caches are left as they are. CountersRefused with what ncu said.
Reading countWithNcu(const ProfiledRow &row, const std::vector<std::string> &metrics);

/// The command, for a fagen-run at `program`.
std::vector<std::string> ncuCommand(const std::string &ncu, const std::string &program, const ProfiledRow &row,
                                    const std::vector<std::string> &metrics);

/// Of `ncu --page raw --csv`: the metrics of the only launch. CountersRefused when it is no such page, or of another
/// kernel; what ncu could not tell is missing.
Counters parseNcuPage(const std::string &page, const std::string &symbol, const std::vector<std::string> &metrics);

} // namespace fagen::lab
