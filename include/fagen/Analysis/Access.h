// fagen: which thread touches which bytes of shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles are constants, so accesses are enumerated, not reasoned about: forEachAccess() visits what every thread does
// in one op, by the same address maths as the kernels (device/tile/layout.h). A Footprint keeps of that who owns each
// granule; comparing two footprints says how far apart the threads are that meet on the same bytes.
#pragma once

#include "fagen/IR/IR.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/bit.h"

#include <array>
#include <compare>

namespace fagen {

/// Threads of the CTA that touch the same bytes together; or one of them does, and nobody knows which: fragments of
/// wmma. That one does not meet itself in the same op, but whoever else touches the bytes must be ordered with all.
struct ThreadRange {
  unsigned first = 0, count = 1;
  bool isUnknownOne = false;
};

/// The threads that an op's `by` names, or the one that issues a bulk copy: all of the role, or the first lane of
/// each warp, of each group of four warps, or of the role.
llvm::SmallVector<ThreadRange, 4> threadsOf(const ir::Role &role, const ir::Op &op);

/// Called with bytes from the start of the buffer's slot; accesses of one thread come in its program order.
using AccessVisitor = llvm::function_ref<void(ThreadRange threads, unsigned byte, unsigned bytes)>;

/// Visits every access of `op` to the shared buffer that is its operand number `operand`. What a predicate may skip
/// (rows beyond a limit, masked elements) is visited: a superset. So is an op that a backend has no enumeration for:
/// every thread, every byte.
void forEachAccess(const ir::Kernel &kernel, const ir::Role &role, const ir::Op &op, unsigned operand,
                   AccessVisitor visit);

/// What the op does to the operand: as Ops.td says, but a product that does not accumulate only writes, and an mbarrier
/// that counts or is waited for is read: no such two race, and all of them with what else touches its bytes.
ir::Effect effectOn(const ir::Op &op, unsigned operand);

/// How far apart threads are that meet on some byte; what orders them must reach as far.
enum class Scope : uint8_t { None, Thread, Warp, Group, Cta };
llvm::StringRef toString(Scope scope); ///< none, thread, warp, group, cta

/// The warps of a role in groups of equal size: neighbours, or interleaved, where warp w is of group w mod count.
struct Grouping {
  uint8_t count = 1;
  bool isInterleaved = false;
  /// Whether each of the other's groups lies in one of these.
  bool contains(const Grouping &other) const {
    return count == 1 || (isInterleaved == other.isInterleaved && other.count % count == 0);
  }
  auto operator<=>(const Grouping &) const = default;
};

inline constexpr unsigned kMaxWarps = 32;

struct Conflict {
  Scope scope = Scope::None;
  Grouping grouping;  ///< the smallest groups that hold together who meets, where the scope is Group
  uint32_t warps = 0; ///< all that take part, a bit each
  /// By warp of the first access: the warps of the second that it meets; itself where other lanes do.
  std::array<uint32_t, kMaxWarps> meets{};
};

/// The grouping of a role's warps that keeps together who meets, of most groups; one group when there is none.
Grouping findGrouping(const ir::Role &role, const Conflict &conflict);

/// Who touches each granule of one slot of a buffer.
class Footprint {
public:
  Footprint(const ir::Kernel &kernel, const ir::Role &role, const ir::Op &op, unsigned operand);
  /// Who meets when this slot starts at byte `base` of shared memory and the other's at `otherBase`; of no role in
  /// particular, so that warps are never grouped.
  Conflict conflictWith(uint64_t base, const Footprint &other, uint64_t otherBase) const;
  /// Whether threads of the op meet on a byte among themselves.
  bool meetsItself() const;
  /// Whether the op touches bytes after the slot: buffer and kernel do not go together.
  bool leavesBuffer() const { return isOutside; }
  uint64_t bytes() const { return size; }

  /// Bytes that each access touches as a whole, or not at all.
  struct Granule {
    uint32_t warps = 0;
    uint16_t thread = 0;  ///< the only one, unless `several`
    bool several = false; ///< more threads than one, or one of several
    bool meets = false;   ///< more threads than one in the same op
    /// All of it at once: it has no gaps.
    bool operator==(const Granule &other) const {
      return llvm::bit_cast<uint64_t>(*this) == llvm::bit_cast<uint64_t>(other);
    }
  };

private:
  /// Granules alike.
  struct Run {
    uint64_t begin = 0, end = 0; ///< bytes
    uint64_t endOfWarps = 0;     ///< where the last of those after it ends that are of the same warps
    Granule granule;
  };
  struct Piece {
    ThreadRange threads;
    unsigned byte, bytes;
  };
  void addRuns(llvm::ArrayRef<Granule> granules, unsigned granuleBytes);
  const Run *runAt(uint64_t byte) const;

  std::vector<Run> runs;
  uint64_t size = 0;
  bool isOutside = false;
};

/// The footprint of an operand. Kernels share it: it depends on shapes and on the warps alone.
const Footprint &footprintOf(const ir::Kernel &kernel, const ir::Role &role, const ir::Op &op, unsigned operand);

/// What conflictWith gives; of footprints that kernels share, computed once.
Conflict conflictOf(const Footprint &first, uint64_t base, const Footprint &second, uint64_t otherBase);

/// The first byte of each shared buffer: its offset, or before allocate-shared one as that pass would give: apart from
/// all others unless it overlays one.
class SharedMap {
public:
  explicit SharedMap(const ir::Kernel &kernel);
  uint64_t baseOf(const ir::Buffer *buffer, uint64_t slot) const {
    return bases.lookup(buffer) + slot * buffer->stageBytes();
  }

private:
  llvm::DenseMap<const ir::Buffer *, uint64_t> bases;
};

} // namespace fagen
