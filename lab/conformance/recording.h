// fagen: results of a GPU, kept in a file, so that machines without one can compare the emulator with it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "conformance.h"

#include <map>

namespace fagen::lab {

/// The part of a result's JSON that is a GPU's: hashes and deviations by function, and the models of addition.
class Recording {
public:
  /// UserError when the file is missing, damaged, or has no GPU's results.
  static Recording load(const std::string &path);

  const std::string &device() const { return gpu; }
  uint64_t seed() const { return firstSeed; }
  unsigned rounds() const { return roundCount; }

  /// What of a report of this machine (made with seed() and rounds()) does not agree with the recording, a line each:
  /// an exact function's bits, a deviation beyond the bound, a function that was not recorded, results of a matrix
  /// instruction that are not those of the model that was found.
  std::vector<std::string> disagreements(const ConformanceReport &report) const;

private:
  /// What the GPU gave for one function.
  struct Result {
    uint64_t wrong = 0;
    std::string hash;
    bool isWithinBound = false; ///< of a function that is not exact
  };

  static Recording read(const Json &result);
  std::string disagreement(const ConformanceCase &c, const Measurement &m) const;

  std::string gpu;
  uint64_t firstSeed = 0;
  unsigned roundCount = 0;
  std::map<std::string, Result> results;
  std::map<std::string, std::string> models; ///< the way to add that gave the GPU's bits everywhere, where one did
};

} // namespace fagen::lab
