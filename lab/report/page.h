// fagen: all parts of a report as one HTML file that needs no other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "section.h"

namespace fagen::lab::page {

/// Files that the other commands wrote; where there is none, the part says what would write one.
struct Inputs {
  std::vector<std::string> times, gates, breakdowns, profiles, resources;
  std::vector<std::string> tunings; ///< directories
};

/// In the order in which they are read. UserError for an input that is missing or wrong.
std::vector<Section> sectionsOf(const Inputs &inputs);

/// Well-formed as XML too; no script, nothing from elsewhere.
std::string pageOf(const std::string &title, const std::vector<std::string> &notes,
                   const std::vector<Section> &sections);

} // namespace fagen::lab::page
