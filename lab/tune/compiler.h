// fagen: the compiler as the tuner uses it: specs made from settings, what it takes of them, what it estimates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/kernel_set/manifest.h"
#include "lab/support/text_table.h"
#include "space.h"

#include <filesystem>

namespace fagen::lab::tune {

/// What stays the same in every candidate of a problem, and what the spec ships.
struct BaseKernel {
  std::string kernel, target, variant; ///< of the row that dispatch picks
  std::string schedule;                ///< its name; empty: unnamed
  std::string accum, dtype, mask;
  bool lse = true;
  std::string problem; ///< the text of the problem block
  std::string require; ///< the spec's gates but those on time; a whole block, or empty
  std::string mma;
  std::map<std::string, std::string> shipped; ///< every other key of the schedule: axes have these and others
  int headDimQK = 0, headDimV = 0;
};

/// "_f16_d64_none": what a candidate's name has after its schedule; the spec's own axes are none of a candidate's.
std::string problemSuffix(const BaseKernel &base);

class Compiler {
public:
  /// `spec`: the file that is tuned. UserError when there is no compiler, or no such spec.
  Compiler(std::filesystem::path spec, std::string target);

  const std::string &version() const { return identity; } ///< with a hash of the executable
  std::string specHash() const;
  /// Compiles the spec itself into `directory`; UserError with the compiler's message when it is refused.
  void compileSpec(const std::filesystem::path &directory) const;
  static BaseKernel baseOf(const KernelSet &set, const fagen_row &row);
  /// The derived space around what is shipped, or only what the spec's tune(...) has; refused points are left out.
  Space spaceOf(const BaseKernel &base, bool derived, const std::filesystem::path &scratch) const;
  /// What the compiler's time model says of these points for a problem on GPUs of `sm` (docs/internals/Model.md), in
  /// `space`; false: nothing of any of them.
  bool predict(const BaseKernel &base, Space &space, const std::vector<Point> &points, const Shape &shape, uint32_t sm,
               const std::filesystem::path &scratch) const;
  /// Compiles one point into `directory`; gives the reason when it is refused, else nothing.
  std::string compile(const BaseKernel &base, const Space &space, const Point &point,
                      const std::filesystem::path &directory, double seconds) const;

private:
  std::string run(const std::vector<std::string> &arguments, double seconds, std::string &errors) const;
  /// Axes and values, and what the compiler says of them.
  struct Choice {
    std::map<std::string, std::string> values;
    Estimate estimate = {};
  };
  using Choices = std::vector<Choice>;
  Choices choicesOf(const BaseKernel &base, const std::vector<Axis> &axes,
                    const std::map<std::string, std::string> &apart, const std::filesystem::path &scratch) const;
  static std::vector<Axis> axesOf(const BaseKernel &base, const Choices &choices);
  Choices derivedChoices(const BaseKernel &base, const std::filesystem::path &scratch) const;
  static Choices readChoices(const BaseKernel &base, const std::string &printed, const std::string &variant);

  std::filesystem::path spec;
  std::string target, executable, identity;
};

/// FNV-1a as sixteen hexadecimal digits.
std::string hashOf(const std::string &text);

} // namespace fagen::lab::tune
