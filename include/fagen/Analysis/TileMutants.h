// fagen: a kernel that copies or reads another tile, and what the analysis says of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each op that touches a ring is changed so that it touches another position: the one before or after, or the one that
// lies in the same slot a round before or after, which no question of order tells apart. Of copies the row, the whole
// tile with its guard, and the guard alone are changed too.
#pragma once

#include "fagen/IR/IR.h"

#include <string>
#include <vector>

namespace fagen {

struct TileMutant {
  enum class Change : uint8_t {
    Positions, ///< of an operand; of a copy that of its mbarrier too
    Tile,      ///< of a copy of attention: what it brings, where it goes stays
    Both,      ///< of a copy: what it brings, where it goes and its guard, as one of another step
    Guard      ///< of a copy: up to one tile more or less
  };
  enum class Verdict : uint8_t {
    WrongTile,
    OutOfOrder,
    Same, ///< the guard lets the same copies happen
    Accepted
  };
  Change change = Change::Positions;
  std::string op;     ///< load.copy_issue@9
  std::string buffer; ///< the ring
  int64_t by = 0;     ///< positions, or tiles
  Verdict verdict = Verdict::Accepted;
  std::string why; ///< the first thing that the analysis says
};
llvm::StringRef toString(TileMutant::Change change);   ///< positions, tile, both, guard
llvm::StringRef toString(TileMutant::Verdict verdict); ///< wrong tile, out of order, same, accepted

/// Every mutant of a kernel with final barriers, which is left as it was.
std::vector<TileMutant> judgeTileMutants(ir::Kernel &kernel);

} // namespace fagen
