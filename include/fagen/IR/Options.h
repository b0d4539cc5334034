// fagen: what a kernel is asked for, where passes decide by it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys with named values are those of a spec (SpecOptions.td); numbers are what the compiler arranges. In textual IR:
//
//   options {refill = late loc("l4_fp16.fa":24:5), load_warps = kLoadWarps, barriers = minimal}
#pragma once

#include "fagen/IR/Count.h"
#include "fagen/Spec/SpecOptions.h" // generated: the enumerations
#include "fagen/Support/Location.h"

#include <optional>

namespace fagen::ir {

template <typename Value> struct Option {
  Value value;
  Location location; ///< the spec line that it comes from
};

struct Options {
  std::optional<Option<Refill>> refill;
  std::optional<Option<Overlap>> overlap;
  std::optional<Option<RescalePolicy>> rescale;
  std::optional<Option<Grid>> grid;
  std::optional<Option<Count>> loadWarps;     ///< warps that copy, the first of the CTA
  std::optional<Option<Count>> loadRegisters; ///< of a thread of these
  std::optional<Option<Count>> mathRegisters; ///< of one of the others
  std::optional<Option<Count>> querySlots;    ///< slots of Q, through which results leave
  std::optional<Option<Count>> stagedColumns; ///< columns of results that leave at once, through a place of their own
  std::optional<Option<Swizzle>> swizzle;
  std::optional<Option<BarrierPolicy>> barriers;

  /// Calls `visit` with the name of each option, and its value if it is given. Self is Options or const Options.
  template <typename Self, typename Visitor> static void forEach(Self &self, Visitor visit) {
    visit("refill", self.refill);
    visit("overlap", self.overlap);
    visit("rescale", self.rescale);
    visit("grid", self.grid);
    visit("load_warps", self.loadWarps);
    visit("load_registers", self.loadRegisters);
    visit("math_registers", self.mathRegisters);
    visit("query_slots", self.querySlots);
    visit("staged_columns", self.stagedColumns);
    visit("swizzle", self.swizzle);
    visit("barriers", self.barriers);
  }
};

/// What was asked for, or the fallback.
template <typename Enum> Enum valueOr(const std::optional<Option<Enum>> &option, Enum fallback) {
  return option ? option->value : fallback;
}

} // namespace fagen::ir
