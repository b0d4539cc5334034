// fagen: what lowering decided for one variant, as table, manifest and --emit=plan show it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/Spec/Spec.h"

#include "llvm/Support/JSON.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fagen {

struct BufferPlan {
  std::string name;
  ir::Space space = ir::Space::Shared; ///< or Fragment
  std::string type;                    ///< "f16"
  unsigned rows = 0, columns = 0, stages = 1;
  uint64_t offset = 0; ///< bytes, of a shared buffer
  uint64_t bytes = 0;  ///< all stages together
  std::string layout;  ///< "xor", "row_major"
};

struct BarrierPlan {
  unsigned site = 0;
  std::string what;   ///< "barrier", "copy_wait 2"
  std::string covers; ///< the hazards
};

/// Where an op stands in the generated text: what the emulator reports by line is the work of this op.
struct OpPlan {
  unsigned line = 0;     ///< of the op's call of the device library, from 1
  std::string op;        ///< "copy_wait@9": ops are numbered in program order
  std::string spec;      ///< "l4_fp16.fa:20", the line that it comes from; empty when none did
  unsigned site = 0;     ///< of a barrier or wait; else 0
  bool isSilent = false; ///< a loop, a branch, or one that only works on registers: of these the emulator sees nothing
};

/// How many CTAs there are: FAGEN_GRID_... of <fagen/table.h>.
struct GridPlan : ir::CtaGrid {
  bool packsHeads = false; ///< a tile's rows are those of all heads that share a K/V head
};

/// As the manifest has it, and in upper case the table: "packed_tiles".
std::string nameOf(const GridPlan &grid);

struct LaunchPlan {
  std::string symbol;
  unsigned threads = 0;
  uint64_t sharedBytes = 0; ///< dynamic
  std::vector<OpPlan> ops;  ///< in the order of lines
  GridPlan grid = {};
  bool isDependent = false; ///< it may begin before the launch before it has ended, and waits for that
};

/// A part of the workspace.
struct WorkspacePlan {
  std::string name;
  std::vector<SelectOp> bytes; ///< over the problem's run-time values, in postfix order
  unsigned alignment = 1;
  bool isScratch = false; ///< may hold anything before a launch; such parts are the last ones
};

/// A tensor map among the kernels' parameters, and the box that one copy moves.
struct MapPlan {
  char tensor = 'q'; ///< q, k, v or o
  unsigned boxColumns = 0, boxRows = 0;
  unsigned swizzle = 0;   ///< bytes of a swizzled row: 128, 64, 32; 0: none
  unsigned boxPanels = 0; ///< panels of boxColumns in a box; 0: the map has no such dimension
};

struct EstimatePlan {
  unsigned registers = 0; ///< a thread
  unsigned ctasPerSm = 0;
  std::string limit; ///< which resource allows no more CTAs
};

/// Machine code that was made ahead of time.
struct BinaryPlan {
  std::string path;     ///< in the kernel's directory: "sm_89/l4_fp16_prefill_f16_d64_none.sm_89.cubin"
  unsigned sm = 0;      ///< compute capability that it was made for
  bool isExact = false; ///< and where alone it runs
  std::string madeFrom; ///< hash of the source: code of another text is not used
};

/// How a kernel knows which key tiles its rows see.
struct KeyTilesPlan {
  /// A condition of the mask that bounds no keys. If tiles are not judged by it either, those which it alone would rule
  /// out are visited and masked.
  struct Unknown {
    std::string condition;
    unsigned tier; ///< the lowest that could judge tiles by it
    bool isJudged; ///< by that one: when the kernel runs, or by a launch before
  };
  bool isMasked = false; ///< nothing is said of a kernel without a mask
  bool hasWhole = false; ///< some tiles are known to be seen whole
  bool hasGap = false;   ///< two ranges of keys
  std::vector<Unknown> unknown;
};

struct VariantPlan {
  const Variant *variant = nullptr;
  std::string sourcePath;           ///< in the kernel's directory: "sm_89/l4_fp16_prefill_f16_d64_none.cu"
  std::vector<BinaryPlan> binaries; ///< next to the source
  unsigned alignment = 0;           ///< bytes, of base pointers and strides
  std::vector<LaunchPlan> launches; ///< 1 to 4, in order
  std::vector<BufferPlan> buffers;
  std::vector<BarrierPlan> barriers;
  std::vector<WorkspacePlan> workspace; ///< one part after the other
  /// Key tiles that splits share, where as many of these as fill the GPU share fewer than all; else empty. Over the
  /// problem's sizes, the first row of a tile and scalars of the form: kFirstScalar and their place in its layout.
  std::vector<SelectOp> sharedTiles;
  std::vector<MapPlan> maps;
  KeyTilesPlan keyTiles;
  EstimatePlan estimates;
  /// Of a program: how its launches are made, as docs/Programs.md says; null of attention, whose parameters are known.
  std::shared_ptr<const llvm::json::Object> recipe;
  std::string row; ///< what the manifest says of all this, where emitRow was asked already
};

/// The grid of a launch, as the manifest has it, and in upper case the table.
std::string gridWordOf(const VariantPlan &plan, const LaunchPlan &launch);

/// A kernel with the plan of each of its variants, in the order of the variants.
struct KernelPlan {
  const KernelSpec *kernel = nullptr;
  std::string specName; ///< base name: "l4_fp16.fa"
  std::vector<VariantPlan> variants;
};

} // namespace fagen
