// fagen: one run of a kernel's roles, executed on paper.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CTAs of a cluster run together, all with the same steps: each has its warps, its shared memory with its mbarriers,
// and its barriers. What an op does in all of them has the attribute `cluster`.
#pragma once

#include "Encounters.h"
#include "OrderGap.h"
#include "fagen/Analysis/Order.h"

#include <deque>

namespace fagen {

/// What an execution tells.
struct ExecutionObserver {
  /// Two instances that meet; `open` as in OrderedPair.
  llvm::function_ref<void(const Access &first, const Access &second, int64_t firstPosition, int64_t secondPosition,
                          llvm::StringRef open, Known by)>
      meet;
  llvm::function_ref<void(const ir::Op &op, std::string message)> fail;
  /// A read of another position than the slot holds. Where accesses are not in order that says nothing.
  llvm::function_ref<void(const ir::Op &op, std::string message)> misread;
  llvm::function_ref<std::string(const ir::Op *)> nameOf;
};

/// Whether no timeline is further than in `limit`.
bool isWithin(const Progress &progress, const Progress &limit);

/// Executes one run after the other. Where a run begins as the one before did, it goes on from there: what threads know
/// depends on what they did only, not on who was faster.
class Execution {
public:
  /// Of timelines of the pool.
  Execution(ExecutionPlan &plan, const TimelinePool &pool, const ExecutionObserver &observer);
  /// `shared`: up to where all is as in the run before. `newPlaces`: where others will go on, each further than the one
  /// before and than where this run goes on.
  /// `isLast`: no other run will go on from where this one does.
  void run(llvm::ArrayRef<const Timeline *> timelines, const Progress &shared, llvm::ArrayRef<Progress> newPlaces,
           bool isLast);
  /// Where a run that shares so much with the one before goes on; nothing: at its beginning.
  const Progress *resumesAt(const Progress &shared);
  /// Of the last run.
  const Encounters &encounters() const { return met; }

private:
  struct Warp {
    unsigned number = 0, role = 0, timeline = 0; ///< in its CTA
    unsigned cta = 0, agent = 0;                 ///< its number among the warps of all CTAs
    unsigned event = 0;                          ///< of the timeline: its next one, or what is executed
    bool hasEntered = false;                     ///< its op was begun, and waits
    bool lanesAgree = true;                      ///< on Layer::Executed
    LaneClocks clocks;
    unsigned asyncFence = 0, initFence = 0; ///< event after the last fence of each kind
    unsigned products = 0, stores = 0;      ///< groups closed
    bool hasOpenStores = false;
    const ir::Op *lastStore = nullptr;
    std::vector<unsigned> lastIssue{0}; ///< by group of products: the event after its last one
    std::vector<unsigned> generations;  ///< by barrier
  };
  /// That threads waited for a phase.
  struct Passed {
    const ir::Op *op;
    unsigned agent, event;
    int64_t phase;
  };
  struct Slot {
    const ir::Buffer *buffer = nullptr;
    unsigned number = 0, cta = 0;
    bool countsBytes = false; ///< of copies
    unsigned needed = 0, arrived = 0;
    int64_t announced = 0, copied = 0;
    Clock gathered;
    Clock last;         ///< of the last complete phase
    int64_t phases = 0; ///< complete
    std::vector<Passed> passed;
    const ir::Op *lastArrival = nullptr, *lastCopy = nullptr;
    int64_t lastCopyPhase = 0;
    int64_t phase() const { return phases; }
  };
  struct Barrier {
    unsigned expected = 0, arrived = 0;
    Clock gathered;
    Clock complete; ///< of the last generation
    unsigned generations = 0;
    const ir::Op *last = nullptr;
  };
  /// The last time that the first or the other lanes of a warp arrived in another CTA.
  struct Remote {
    const ir::Op *op = nullptr;
    unsigned event = 0;
  };
  /// The last time that a warp made an access in a slot.
  struct Instance {
    int64_t position = 0;
    unsigned entry : 24 = 0; ///< of a clock, which says that it is complete; 0: that the op is past says so
    unsigned lanes : 8 = 0;  ///< none: there was no such time
    unsigned done = 0;       ///< the value of that entry; of 0 the event by which it is done
    unsigned event = 0;
  };

  /// What was written last in a slot.
  struct Filled {
    const ir::Op *by = nullptr;
    int64_t position = 0;
  };

  /// All that changes while roles are executed.
  struct State {
    std::vector<Warp> warps;
    std::vector<Slot> slots;
    std::vector<Barrier> barriers;
    std::vector<Remote> remote;      ///< by CTA, then by agent
    std::vector<Instance> instances; ///< in the memory of each CTA
    std::vector<Filled> filled;      ///< likewise
  };

  void assignTimelines();
  void goOn(const Progress &limits);
  void save(const Progress &progress);
  bool step(Warp &warp, unsigned limit);
  bool execute(Warp &warp, const Event &event, const PlannedOp &op, Lanes lanes);
  void begin(Warp &warp, const Event &event, const PlannedOp &op);
  bool acquire(Warp &warp, const Event &event, const PlannedOp &op, Lanes lanes);
  void release(Warp &warp, const Event &event, const PlannedOp &op, Lanes lanes);
  void issueProduct(Warp &warp);
  void waitForProducts(Warp &warp, const PlannedOp &op);
  bool comeToBarrier(Warp &warp, const PlannedOp &op, bool isFirstTry);
  bool isBlocked(Warp &warp, const PlannedOp &op);
  const Event &eventOf(const Warp &warp) const { return events[timelines[warp.timeline]->numbers[warp.event]]; }
  bool isAtEnd(const Warp &warp) const { return warp.event == timelines[warp.timeline]->numbers.size(); }
  void fail(const ir::Op &op, std::string message);
  void reportHang();
  std::string whatFor(const Warp &warp) const;
  void checkEnd();
  void checkSlotAtEnd(const Slot &slot);
  void checkRemoteAtEnd();
  void addCta(unsigned cta);
  /// " of CTA 1", in a cluster.
  std::string ofCta(unsigned cta) const;
  /// The CTAs in whose memory a warp's op takes effect, from the first one to past the last.
  std::pair<unsigned, unsigned> ctasOf(const Warp &warp, const PlannedOp &op) const {
    return op.isShared ? std::pair(0u, plan.ctas) : std::pair(warp.cta, warp.cta + 1);
  }
  /// Of the lanes that execute the op those that reach this CTA: the n-th lane arrives in the n-th CTA; one thread's
  /// copy reaches all.
  static Lanes lanesFor(const PlannedOp &op, Lanes lanes, unsigned cta) {
    const bool isByNeighbours = op.isShared && op.sync.releases == ir::Means::Phases;
    return !isByNeighbours ? lanes : cta == 0 ? kFirstLane : kAllLanes & ~kFirstLane;
  }

  // Clocks.
  void release(Clock &to, const Warp &warp, Lanes lanes, const PlannedOp &op) const;
  void acquire(Warp &warp, Lanes lanes, const Clock &clock, const PlannedOp &op);
  void meetLanes(Warp &warp, const PlannedOp &op, bool isMemoryToo);
  static bool isKnown(const Warp &warp, Lanes lanes, unsigned entry, unsigned value) {
    const bool isFirstSure = warp.clocks[0].value(entry) >= value;
    return warp.clocks.areOne() ? isFirstSure
                                : (!(lanes & kFirstLane) || isFirstSure) &&
                                      (lanes == kFirstLane || warp.clocks[1].value(entry) >= value);
  }

  // mbarriers.
  const Slot &slotOf(unsigned cta, const PlannedOp &op, const Event &event) const;
  Slot &slotOf(unsigned cta, const PlannedOp &op, const Event &event);
  unsigned numberOf(const Slot &slot) const { return unsigned(&slot - state.slots.data()); }
  static int64_t phaseOf(const PlannedOp &op, const Event &event);
  /// That the phase is complete too early for a wait for the one before.
  std::string overtaken(const Slot &slot, int64_t phase, const ir::Op *wait) const;
  std::string textOf(const Slot &slot, int64_t phase) const;
  void initialise(const Warp &warp, const PlannedOp &op, const Event &event);
  void arrive(unsigned cta, Warp &warp, const PlannedOp &op, const Event &event, Lanes lanes);
  bool wait(Warp &warp, const PlannedOp &op, const Event &event, Lanes lanes);
  void copyInBulk(unsigned cta, Warp &warp, const PlannedOp &op, const Event &event);
  void tellOfIssue(Slot &slot, const Warp &warp, const PlannedOp &op) const;
  bool isTimely(Warp &warp, const ir::Op &op, Slot &slot, int64_t phase, Lanes lanes);
  void completeIfDone(Slot &slot, const PlannedOp &op);

  // CTA and named barriers.
  bool arriveAtBarrier(Warp &warp, const PlannedOp &op); ///< false where that is a mistake, which is reported
  unsigned idOf(const Warp &warp, const PlannedOp &op) const;
  std::string nameOfBarrier(unsigned id) const;

  // Accesses.
  /// An access that these lanes of a warp are about to make.
  struct Coming {
    const Warp &warp;
    const Access &access;
    int64_t position;
    Lanes lanes;
  };
  /// One that it meets, which a warp of number `agent` among those of all CTAs made.
  struct Earlier {
    const Rival &rival;
    const Instance &instance;
    unsigned agent;
    bool isSameThread;
  };
  void checkFilled(const Warp &warp, const Access &access, int64_t position);
  void checkAccesses(Warp &warp, const Event &event, const PlannedOp &op, Lanes lanes);
  // Inline, but defined where they are used: this is done so often that calls would show.
  inline void checkAgainst(const Coming &second, unsigned memory, const Rival &rival);
  inline void compare(const Coming &second, const Earlier &first);
  inline void remember(const Coming &second, const Earlier &first);
  inline bool isNews(const Rival &rival, int64_t distance);
  inline Gap missing(const Coming &second, const Earlier &first, Known *by) const;
  inline Gap missingOrder(const Coming &second, const Earlier &first, Known *by) const;
  void remember(Warp &warp, const Event &event, const PlannedOp &op, Lanes lanes);

  ExecutionPlan &plan;
  const TimelinePool &events;
  const ClockShape &shape;
  const ExecutionObserver &observer;
  llvm::ArrayRef<const Timeline *> timelines;
  State state;
  State initial;
  struct Place {
    Progress progress;
    State state;
  };
  size_t places = 0;               ///< how many of `saved` there are now
  std::deque<Place> saved;         ///< on the way of the last run, each further than the one before
  std::vector<int64_t> told;       ///< by rival: the smallest distance that the observer knows of
  std::vector<uint8_t> timelineOf; ///< by agent
  Encounters met;
  bool hasFailed = false;
};

} // namespace fagen
