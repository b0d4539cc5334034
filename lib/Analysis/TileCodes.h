// fagen: what ops do with tiles, looked up once: which slots they touch, and where they say that tiles begin.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "PlaceCode.h"

#include "fagen/Analysis/Timeline.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace fagen {

/// Where rows or columns of a tile begin, and who said so.
struct Coordinate {
  static constexpr int kNobody = -1;
  int64_t value = 0;
  int source = kNobody; ///< a number of TileCodes::sources
  bool isKnown() const { return source != kNobody; }
};

/// Where a tile begins.
struct Place {
  Coordinate rows, columns;
};

struct OperandCode {
  const ir::Buffer *buffer = nullptr; ///< null: none, or none that holds tiles
  unsigned firstSlot = 0;             ///< its number among those of all buffers
  bool reads = false, writes = false;
  bool isHanded = false; ///< several roles touch the buffer
};

struct TileCode {
  bool hasTiles = false;
  bool isForSteps = false; ///< a copy into a ring, but for what is copied for a whole turn, which may have no steps
  llvm::SmallVector<OperandCode, 4> operands;
  PlaceCode row, column; ///< of its first element
  int rowSource = Coordinate::kNobody, columnSource = Coordinate::kNobody;
  bool saysPlace() const { return row || column; }
};

/// Whether powers of scores weigh rows of another tensor than the scores are of, as in attention: then the row and key
/// of an op are those of scores.
bool weighsRows(const ir::Kernel &kernel);

class TileCodes {
public:
  explicit TileCodes(const ir::Kernel &kernel);
  /// Reads the ops of the roles.
  void encode(llvm::ArrayRef<const ir::Role *> roles, llvm::ArrayRef<Points> numberings, ExprValues &values);

  const TileCode &of(unsigned role, unsigned point) const { return codes[role][point]; }
  unsigned slots() const { return slotCount; }
  /// Whether some buffer is touched by several roles.
  bool hasHanded() const { return anyIsHanded; }
  /// The slots of other buffers that have bytes of this one.
  llvm::ArrayRef<unsigned> overlapping(unsigned slot) const { return overlaps[slot]; }
  /// "128, j * kTileKeys of copy_issue@9"
  std::string textOf(const Coordinate &coordinate, llvm::function_ref<std::string(const ir::Op *)> nameOf) const;

private:
  void addBuffers();
  void findOverlaps(llvm::ArrayRef<std::pair<uint64_t, uint64_t>> bytes);
  TileCode encode(const ir::Op &op, ExprValues &values);

  const ir::Kernel &kernel;
  const bool arePlacesAsked;
  llvm::DenseMap<const ir::Buffer *, unsigned> firstSlot; ///< of those that hold tiles
  llvm::DenseMap<const ir::Buffer *, bool> isHanded;
  unsigned slotCount = 0;
  bool anyIsHanded = false;
  std::vector<llvm::SmallVector<unsigned, 2>> overlaps; ///< by slot
  llvm::DenseSet<const ir::Op *> ofTurns;               ///< that stand in the body of a loop over turns
  llvm::StringSet<> steering;                           ///< lets that runs choose
  std::vector<std::vector<TileCode>> codes;             ///< by role and point
  std::vector<std::pair<const ir::Op *, ir::Expr>> sources;
};

} // namespace fagen
