// fagen: kernels for tests of the hazard analysis: lowered by the passes themselves, up to allocate-shared.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Passes/Passes.h"
#include "fagen/Spec/Spec.h"

#include "llvm/Support/SourceMgr.h"

namespace fagen::test {

struct Shape {
  const char *name;
  Mma mma;
  Copy copy;
  unsigned tileRows, tileKeys, warps, stages;
  unsigned headDim = 64;
  unsigned rowWarps = 0, keyWarps = 1; ///< rowWarps 0: all warps
  OperandPlace qIn = OperandPlace::Shared;
  Reduce reduce = Reduce::Warp;
  unsigned vectorBytes = 16;
};

/// A variant with that schedule, and diagnostics kept as text.
class Lowering {
public:
  explicit Lowering(const Shape &shape, BarrierPolicy policy = BarrierPolicy::Minimal,
                    std::vector<std::string> places = {});

  /// Every pass up to allocate-shared.
  void lower();
  PassContext context() { return {diags, &variant, nullptr}; }
  /// Without a variant, as fagen-opt has it: mistakes are those of the text.
  PassContext textContext() { return {diags, nullptr, nullptr}; }

  ir::Block &body() { return kernel.roles.front().body; }
  /// How many barriers of a scope the body of loop number `loop` has.
  unsigned countIn(unsigned loop, llvm::StringRef scope);
  unsigned count(llvm::StringRef scope);
  /// Barriers and waits, in program order.
  std::vector<ir::Op *> sites();

  ir::Kernel kernel;
  Variant variant;
  std::string messages;

private:
  llvm::SourceMgr sources;
  llvm::raw_string_ostream stream{messages};

public:
  Diagnostics diags{sources, stream};
};

/// Shapes of every kind of kernel the compiler makes: both backends, copies, depths, warp grids and places of Q.
std::vector<Shape> shapes();

} // namespace fagen::test
