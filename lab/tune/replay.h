// fagen: strategies walked over a recorded landscape: how many evaluations each needs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/support/text_table.h"
#include "search.h"

#include <filesystem>
#include <map>

namespace fagen::lab::tune {

/// One study of a file that `tune --landscape` wrote.
struct Landscape {
  std::string problem;
  Space space;
  std::vector<Point> ranked; ///< as the search saw them
  std::map<Point, Measured> times;

  double optimum() const;
};

/// UserError when the file is missing or says something else, or when nothing in a study was timed.
std::vector<Landscape> readLandscapes(const std::filesystem::path &file);

struct ReplayOptions {
  std::vector<std::string> strategies; ///< empty: all but the exhaustive one
  int seeds = 20;
  double goal = 0.97; ///< of the optimum
  size_t generation = 6;
};

/// What a strategy needed, seed by seed; the space's size for one that did not get there.
struct ReplayResult {
  std::string problem, strategy;
  size_t points = 0;
  std::vector<double> needed;       ///< evaluations until optimum / best >= goal
  std::vector<double> afterQuarter; ///< optimum / best after a quarter of the space
};

std::vector<ReplayResult> replay(const std::vector<Landscape> &landscapes, const ReplayOptions &options);
std::string replayTable(const std::vector<ReplayResult> &results, const ReplayOptions &options);
Json replayJson(const std::vector<ReplayResult> &results, const ReplayOptions &options);

} // namespace fagen::lab::tune
