// fagen: from a variant to a program that has all its buffers, where what it takes of shared memory can be read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel has the shared memory that its passes give it; nobody computes it next to them. So the checks of a spec
// lower each variant through the passes that add buffers, which takes a twentieth of a millisecond, and the driver goes
// on from there. Where the buffers would lie is asked of assign-layouts and allocate-shared, on a copy of them.
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/Passes/Passes.h"
#include "fagen/Spec/Spec.h"

#include "llvm/ADT/StringMap.h"

#include <memory>

namespace fagen {

/// A program that no pass has seen: resolve-options and build-tiles fill it from the variant.
std::unique_ptr<ir::Program> beginProgram(const Variant &variant);

/// The passes after those that add buffers, in order: what is left of the pipeline for a program of Lowering::take().
std::vector<std::string> passesBehindBuffers();

/// Lowers each variant once: what measure() made is kept until it is taken.
class Lowering final : public SharedMeter {
public:
  /// Side by side. A variant that the passes refuse is not measured; who lowers it again hears why.
  std::vector<MeasuredSchedule> measure(llvm::ArrayRef<const Variant *> variants) override;

  /// The variant's program with all its buffers, where measure() has made it of this very schedule; null otherwise, and
  /// when it was taken before. Of different variants from several threads.
  std::unique_ptr<ir::Program> take(const Variant &variant);
  /// How the variant is arranged so that it fits: for passes that lower it again. Likewise from several threads.
  Arranged arrangedOf(const Variant &variant);

private:
  struct Kept {
    Schedule schedule; ///< that was lowered
    Arranged arranged;
    std::unique_ptr<ir::Program> program;
  };
  Kept *find(const Variant &variant); ///< what was made of this very schedule, or null

  llvm::StringMap<Kept> kept; ///< by symbol
};

} // namespace fagen
