// fagen: the sections of a CTA's work, and their clocks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Analysis/TimeModel.h"

namespace fagen::model {

/// The one role whose products the others serve; null where several multiply, or none does.
const ir::Role *multiplyingRole(const ir::Kernel &kernel);
/// Rows of scores that the role's warps compute together.
int64_t rowsOfTile(const ir::Kernel &kernel, const ir::Role &role);

/// Where the rows begin: those of the tile, and in it those of a group of warps.
struct RowsOfGroup {
  int64_t tile = 0, inTile = 0;
};

class CtaModel {
public:
  CtaModel(const ir::Kernel &kernel, const ir::Role &role, const GpuRates &gpu, const Shape &shape);

  /// How often each section runs for the tile of these rows; empty when a bound cannot be told.
  std::vector<double> stepsOf(int64_t rowBegin) const;
  /// Clocks of a tile, and of what a CTA does but once for all of its tiles, with `resident` CTAs an SM.
  double clocksOf(llvm::ArrayRef<double> steps, unsigned resident) const;
  double clocksOnce(unsigned resident) const;

  std::vector<Section> sections;                                                  ///< the first is what happens once
  double clocksOf(const Section &section, double turns, unsigned resident) const; ///< of so many in a row

private:
  void addSection(std::string name, const ir::Block &body, const ir::Op *loop);
  void addCopiesForWaits(Section &section, llvm::ArrayRef<const ir::Op *> ops) const;
  double exposedLoads(llvm::ArrayRef<const ir::Op *> body) const;
  /// On average of the groups of warps, which see keys of their own.
  std::optional<double> turnsOf(const ir::Op &loop, int64_t rowBegin) const;
  std::optional<int64_t> value(const ir::Expr &expr, const RowsOfGroup &rows) const;

  const ir::Kernel &kernel;
  const ir::Role &role;
  const GpuRates &gpu;
  const Shape &shape;
  bool isServed = false;             ///< other roles bring its tiles, or its products run during what follows
  bool takesTiles = false;           ///< a CTA does, one after another
  std::vector<const ir::Op *> loops; ///< in addition to the sections; null for what is outside of loops
};

} // namespace fagen::model
