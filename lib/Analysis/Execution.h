// fagen: one run of a kernel's roles, executed on paper.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Clocks.h"
#include "fagen/Analysis/Order.h"

#include <array>
#include <deque>

namespace fagen {

/// What an execution tells.
struct ExecutionObserver {
  /// Two instances that meet; `open` as in OrderedPair.
  llvm::function_ref<void(const Access &first, const Access &second, int64_t firstPosition, int64_t secondPosition,
                          std::string open, const Known &by)>
      meet;
  llvm::function_ref<void(const ir::Op &op, std::string message)> fail;
  llvm::function_ref<std::string(const ir::Op *)> nameOf;
};

class Execution {
public:
  Execution(const ir::Kernel &kernel, llvm::ArrayRef<const ir::Role *> roles, llvm::ArrayRef<Timeline> timelines,
            AccessTable &table, const ExecutionObserver &observer);
  void run();

private:
  /// The lanes of a warp that do something: bit 0 the first, bit 1 the others.
  using Lanes = unsigned;
  static constexpr Lanes kFirst = 1, kAll = 3;

  struct Warp {
    unsigned number = 0, role = 0;
    unsigned next = 0;                                    ///< event
    bool hasEntered = false;                              ///< its op was begun, and waits
    std::array<Clock, 2> clocks;                          ///< of the first lane, of the others
    unsigned asyncFence = 0, initFence = 0, mmaFence = 0; ///< event after the last fence of each kind
    unsigned products = 0, stores = 0;                    ///< groups closed
    bool hasOpenStores = false;
    const ir::Op *lastStore = nullptr;
    std::vector<unsigned> lastIssue{0}; ///< by group of products: the event after its last one
    std::array<unsigned, ClockShape::kBarriers> generations{};
  };
  /// That threads waited for a phase.
  struct Passed {
    const ir::Op *op;
    unsigned agent, event;
    int64_t phase;
  };
  struct Slot {
    const ir::Buffer *buffer = nullptr;
    unsigned number = 0;
    unsigned needed = 0, arrived = 0;
    int64_t announced = 0, copied = 0;
    Clock gathered;
    std::vector<Clock> complete; ///< of each phase
    std::vector<Passed> passed;
    const ir::Op *lastArrival = nullptr, *lastCopy = nullptr;
    int64_t lastCopyPhase = 0;
    int64_t phase() const { return int64_t(complete.size()); }
  };
  struct Barrier {
    unsigned expected = 0, arrived = 0;
    Clock gathered;
    std::vector<Clock> complete; ///< of each generation
    const ir::Op *last = nullptr;
  };
  /// The last time that a warp made an access in a slot.
  struct Instance {
    bool exists = false;
    unsigned event = 0; ///< by when it is done, for what has no entry of its own
    int64_t position = 0;
    Lanes lanes = 0;
    unsigned entry = 0, value = 0; ///< of a clock: what says that it is complete; 0: no more than that the op is past
  };

  bool step(Warp &warp);
  bool execute(Warp &warp, const Event &event);
  void checkTaken(const Event &event);
  void issueProduct(Warp &warp, const ir::Op &op);
  void waitForProducts(Warp &warp, const ir::Op &op);
  bool comeToBarrier(Warp &warp, const Event &event, bool isFirstTry);
  bool isBlocked(Warp &warp, const Event &event);
  Lanes lanesOf(const Warp &warp, const ir::Op &op) const;
  void fail(const ir::Op &op, std::string message);
  void reportHang();
  std::string whatFor(const Warp &warp) const;
  void checkEnd();

  // Clocks.
  Clock release(const Warp &warp, Lanes lanes, const ir::Op *op) const;
  void acquire(Warp &warp, Lanes lanes, const Clock &clock, const ir::Op *op);
  void meetLanes(Warp &warp, const ir::Op *op, bool isMemoryToo);
  bool isKnown(const Warp &warp, Lanes lanes, unsigned entry, unsigned value) const;

  // mbarriers.
  Slot &slotOf(const ir::Operand &operand, int64_t position);
  const Slot &slotOf(const ir::Operand &operand, int64_t position) const;
  static int64_t phaseOf(const ir::Operand &operand, int64_t position);
  /// That the phase is complete too early for a wait for the one before.
  std::string overtaken(const Slot &slot, int64_t phase, const ir::Op *wait) const;
  static std::string textOf(const Slot &slot, int64_t phase);
  void initialise(const Event &event);
  void arrive(Warp &warp, const Event &event, Lanes lanes);
  bool wait(Warp &warp, const Event &event, Lanes lanes);
  void copyInBulk(Warp &warp, const Event &event);
  bool isTimely(Warp &warp, const ir::Op &op, Slot &slot, int64_t phase, Lanes lanes);
  void completeIfDone(Slot &slot, const ir::Op &op);

  // CTA and named barriers.
  void arriveAtBarrier(Warp &warp, const ir::Op &op);
  unsigned idOf(const Warp &warp, const ir::Op &op) const;

  // Accesses.
  void checkAccesses(Warp &warp, const Event &event, Lanes lanes);
  void checkAgainst(Warp &warp, int64_t position, Lanes lanes, const Access &second, const Neighbour &first);
  void compare(Warp &warp, const Access &second, int64_t position, Lanes lanes, const Access &first, unsigned firstWarp,
               const Instance &instance, bool isSameThread);
  std::string missing(const Warp &warp, const Access &second, Lanes lanes, const Access &first, unsigned firstWarp,
                      const Instance &instance, bool isSameThread, Known &by) const;
  void remember(Warp &warp, const Event &event, Lanes lanes);
  Instance &instance(const Access &access, unsigned slot, unsigned warp) {
    return instances[firstInstance[access.index] + slot * shape.warps + warp];
  }

  const ir::Kernel &kernel;
  const llvm::ArrayRef<const ir::Role *> roles;
  const llvm::ArrayRef<Timeline> timelines;
  AccessTable &table;
  const ExecutionObserver &observer;
  ClockShape shape;
  std::vector<Warp> warps;
  std::vector<Slot> slots;
  llvm::DenseMap<const ir::Buffer *, unsigned> firstSlot;
  std::vector<Barrier> barriers;
  llvm::DenseMap<const ir::Buffer *, int64_t> handed; ///< the last position that hand_tile wrote
  std::vector<Instance> instances;
  std::vector<unsigned> firstInstance; ///< by access
  bool hasFailed = false;
};

} // namespace fagen
