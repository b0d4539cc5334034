// fagen: the list of conformance cases.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cases.h"

#include <fmt/format.h>

namespace fagen::lab {

const std::vector<ConformanceCase> &conformanceCases() {
  static const std::vector<ConformanceCase> all = [] {
    std::vector<ConformanceCase> cases;
    addArithmeticCases(cases);
    addMemoryCases(cases);
    addWarpCases(cases);
    addMatrixCases(cases);
    addBulkCases(cases);
    addWarpGroupCases(cases);
    addByteCases(cases);
    return cases;
  }();
  return all;
}

std::vector<const ConformanceCase *> conformanceCases(const std::string &pattern) {
  std::vector<const ConformanceCase *> chosen;
  for (const ConformanceCase &c : conformanceCases())
    if (c.name.find(pattern) != std::string::npos)
      chosen.push_back(&c);
  if (chosen.empty())
    throw UserError(fmt::format("no conformance case has '{}' in its name; --list shows all {}", pattern,
                                conformanceCases().size()));
  return chosen;
}

WordList conformanceInput(const ConformanceCase &testCase, uint64_t seed, unsigned round) {
  Words random(seed, testCase.name, round);
  WordList in(testCase.inWords);
  testCase.fill(random, round, in);
  return in;
}

} // namespace fagen::lab
