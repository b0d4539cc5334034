// fagen: a picture of one warp's request: which lane asks which bank of shared memory, and where they meet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "emulator/emulator.h"

#include <string>

namespace fagen::lab {

/// The worst request of a site as SVG: a column for each bank, a row for each lane, phase by phase; the colour says how
/// many different words the phase asks of the bank. Readable on paper, on light and on dark screens.
std::string bankMap(const emulator::BankSite &site, const std::string &title, const std::string &subtitle);

} // namespace fagen::lab
