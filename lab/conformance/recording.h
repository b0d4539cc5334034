// fagen: results of a GPU, kept in a file, so that machines without one can compare the emulator with it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "conformance.h"

namespace fagen::lab {

/// The part of a result's JSON that is a GPU's: hashes and deviations by function, and the models of addition.
class Recording {
public:
  /// UserError when the file is missing, damaged, or has no GPU's results.
  static Recording load(const std::string &path);

  const std::string &device() const { return gpu; }
  uint64_t seed() const { return result.at("seed"); }
  unsigned rounds() const { return result.at("rounds"); }

  /// What of a report of this machine (made with seed() and rounds()) does not agree with the recording, a line each:
  /// an exact function's bits, a deviation beyond the bound, a function that was not recorded, results of a matrix
  /// instruction that are not those of the model that was found.
  std::vector<std::string> disagreements(const ConformanceReport &report) const;

private:
  const Json *resultOf(const std::string &name) const;
  std::string disagreement(const ConformanceCase &c, const Measurement &m) const;
  std::string modelOf(const std::string &name) const;

  Json result;
  std::string gpu;
};

} // namespace fagen::lab
