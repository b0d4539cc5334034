// fagen: global buffers that a program writes, and what orders those who use them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A global buffer of one name is one buffer in all kernels of a program: results, or a workspace by which a launch
// hands something to a later one. Four things may order two uses of it:
//
//   - the launch: a kernel begins when all CTAs of the one before it have ended and their writes are seen
//   - the CTA: uses of the CTA's own rows are its threads' business, hazards like those on shared memory (Hazards.h)
//   - a count: of CTAs that store parts of the same rows, only the last to come goes on to merge them (combine_last)
//   - nothing: two CTAs of one launch run at any time, in any order
//
// A CTA's own rows are the tile of kTileRows rows from row_begin, of its batch and head, or K/V head where packed. An
// op that may reach over them meets the ops of other CTAs.
#pragma once

#include "fagen/Analysis/Hazards.h"

namespace fagen {

/// One use of a global buffer that some kernel of the program writes.
struct GlobalAccess {
  unsigned launch = 0; ///< from 0, of launchesOf
  const ir::Role *role = nullptr;
  const ir::Op *op = nullptr;
  const ir::Let *let = nullptr; ///< in place of an op: a value that each CTA reads before its body, or judges tiles by
  const ir::Buffer *buffer = nullptr;
  bool reads = false, writes = false;
  bool isIndex = false; ///< an element that says where what the op names lies
  bool isOwn = false;   ///< only the CTA's own rows
};

/// Uses by two CTAs, at least one a write.
struct GlobalHazard {
  HazardKind kind = HazardKind::Raw;
  GlobalAccess first, second;
  bool isCounted = false; ///< the splits of a tile count themselves between the two
  /// Whether a launch or a count stands between; else the two CTAs are of one launch, and nothing orders them.
  bool isOrdered() const { return first.launch != second.launch || isCounted; }
};

/// Kernels in the order in which they begin: those that classify key tiles come before all others.
std::vector<const ir::Kernel *> launchesOf(const ir::Program &program);

/// Those whose second use is of that launch, in the order of the program.
std::vector<GlobalHazard> findGlobalHazards(const ir::Program &program, const ir::Kernel &kernel);

} // namespace fagen
