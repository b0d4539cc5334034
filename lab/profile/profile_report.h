// fagen: profiles as text for people and as JSON for scripts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/support/text_table.h"
#include "profile.h"

namespace fagen::lab {

/// Figures, stalls, verdict, floor.
std::string profileText(const Profile &profile);
/// The two readings next to each other.
std::string comparisonText(const Profile &profile);
/// `comparison`: with the two readings next to each other. makeRecordedCounters() reads it.
Json profileJson(const Profile &profile, bool comparison);
/// With its unit; "-" when it is not told.
std::string formatQuantity(Unit unit, std::optional<double> value);

} // namespace fagen::lab
