// fagen: a device that multiplies matrices in a given way, for tests of the study.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/conformance/accumulation.h"

#include <gtest/gtest.h>

namespace fagen::lab {

class ModelRunner : public KernelRunner {
public:
  explicit ModelRunner(const Accumulation &way) : way(way) {}

  std::string name() const override { return "model"; }

  std::string run(const KernelJob &job, const WordList &in, WordList &out) override {
    for (const ConformanceCase &c : conformanceCases())
      if (c.symbol == job.symbol) {
        for (size_t i = 0; i < out.size(); ++i)
          out[i] = accumulate(way, c.dot(in, i));
        return "";
      }
    return "no such kernel";
  }

private:
  Accumulation way;
};

/// Runs one device on the cases of a pattern.
inline ConformanceReport runOn(KernelRunner &runner, const std::string &pattern, unsigned rounds) {
  ConformanceOptions options;
  options.pattern = pattern;
  options.rounds = rounds;
  return runConformance({&runner}, options, [](size_t, size_t, const std::string &) {});
}

} // namespace fagen::lab
