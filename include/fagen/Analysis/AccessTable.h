// fagen: the accesses of a kernel's ops, and which of their instances meet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Next to shared memory two kinds of buffers are of interest. Fragments that a product uses after its op is past: each
// thread meets itself there. Global buffers that the kernel writes and uses elsewhere too: two ops of which Ops.td says
// that each warp has rows of its own (RowsOfWarps) meet within warps where they name the same rows; else all threads of
// the one meet all of the other.
#pragma once

#include "fagen/Analysis/Access.h"
#include "fagen/IR/Sync.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"

#include <deque>

namespace fagen {

/// One use of a buffer by an op.
struct Access {
  const ir::Op *op = nullptr;
  unsigned operand = 0;
  const ir::Buffer *buffer = nullptr;
  bool reads = false, writes = false;
  bool isAsync = false;        ///< may happen after the op
  bool isByAsyncProxy = false; ///< else by the generic one, where both meet a fence is needed
  const ir::OperandInfo &info() const { return ir::opInfo(op->kind).operands[operand]; }
  unsigned role = 0; ///< of those that the table was made for
  unsigned index = 0;
  ir::Means needsFence = ir::Means::AsyncFence; ///< before an access of the async proxy after it
};

/// The slot of a ring that a position stands for. Most rings need no division, which would be what this costs.
inline unsigned slotAt(const ir::Buffer &buffer, int64_t position) {
  const unsigned slots = buffer.stages;
  const int64_t stages = slots;
  return unsigned(llvm::has_single_bit(slots) ? position & (stages - 1) : (position % stages + stages) % stages);
}

/// An access in a slot of its buffer that meets another one, at least one of them a write.
struct Neighbour {
  unsigned access = 0, slot = 0;
  const Conflict *conflict = nullptr; ///< of it with the other one
};

/// The accesses of some roles, and who meets in any two of them.
class AccessTable {
public:
  AccessTable(const ir::Kernel &kernel, llvm::ArrayRef<const ir::Role *> roles);
  llvm::ArrayRef<Access> accesses() const { return all; }
  llvm::ArrayRef<Access> of(const ir::Op *op) const;
  /// The access at this position of its buffer (0 for a buffer that is no ring), as conflict() takes it.
  unsigned cellOf(const Access &access, int64_t position) const {
    return firstCell[access.index] + slotAt(*access.buffer, position);
  }
  /// Who meets on these two cells.
  const Conflict &conflict(unsigned a, unsigned b) {
    unsigned &number = known[size_t(a) * cells.size() + b];
    if (number == kNone)
      number = findConflict(a, b);
    return conflicts[number];
  }
  /// All that meet the access at this position, in the order of accesses and slots.
  llvm::ArrayRef<Neighbour> neighboursOf(const Access &access, int64_t position);
  /// Whether threads of the access's op meet on a byte in one run of the op.
  bool meetsItself(const Access &access) const;
  /// Whether it touches bytes that its buffer has not.
  bool leavesBuffer(const Access &access) const;
  /// All that the table tells, ops and buffers by their numbers: tables of two kernels with one text are the same to an
  /// analysis, whatever bytes lie after them.
  std::string text();

private:
  /// An access in a slot of its buffer. Ops that do the same share them.
  struct Cell {
    unsigned footprint; ///< kNone: not of shared memory
    uint64_t base;      ///< first byte of the slot
    unsigned access;    ///< one of them
  };
  static constexpr unsigned kNone = ~0u;

  void findOfInterest();
  void addCells(const Access &access);
  std::vector<Neighbour> findNeighbours(const Access &access, unsigned cell);
  const Footprint *footprintOf(const Access &access) const; ///< null: not of shared memory
  unsigned findConflict(unsigned a, unsigned b);            ///< its number
  Conflict compute(const Cell &a, const Cell &b) const;
  Conflict computeApart(const Access &first, const Access &second) const; ///< on no shared memory

  const ir::Kernel &kernel;
  const llvm::SmallVector<const ir::Role *, 4> roles;
  const SharedMap map;
  llvm::DenseSet<std::pair<unsigned, const ir::Buffer *>> ofInterest; ///< next to shared ones, by role
  std::vector<Access> all;
  llvm::DenseMap<const ir::Op *, std::pair<unsigned, unsigned>> ranges;
  std::vector<const Footprint *> footprints;
  std::vector<unsigned> firstCell; ///< by access: that of slot 0
  std::vector<Cell> cells;
  std::deque<Conflict> conflicts; ///< the first one is none
  std::vector<unsigned> known;    ///< by two cells: its number, or kNone
  struct Neighbours {
    bool areKnown = false;
    std::vector<Neighbour> list;
  };
  std::vector<std::vector<Neighbours>> neighbours; ///< by access and slot
};

} // namespace fagen
