// fagen: one CTA, or the CTAs of a cluster, while they run: threads, their warps, shared memory and what they did
// wrong. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CTAs of a cluster run as one: threads, warps and warp groups are numbered over all of them, and their shared memory
// lies side by side, a window each. Kernels name addresses of their own CTA; addressIn() says where they are. So
// whoever reaches into another CTA is ordered, or in a race, as within one.
//
// A CTA stays on one OS thread. A thread of the kernel runs until it must wait for others; then the next one that can
// run continues, of the same warp if there is one. Everything that a thread can do to memory or to other threads is a
// member function here, called through the table in Engine.cpp:
//   Cta.cpp          who runs next, the end, deadlock
//   Barriers.cpp     barriers of the CTA and named ones
//   Collectives.cpp  what a warp's lanes do together
//   Wmma.cpp         those of wmma, whose fragments nobody knows
//   Memory.cpp       global and shared memory, and what is known about each shared byte
//   Copies.cpp       asynchronous copies between issue and wait
//   Clusters.cpp     barriers of a cluster, and what may come after the end of a CTA
//   MBarriers.cpp    barriers in shared memory that count arrivals and bytes
//   BulkCopies.cpp   boxes of tensors between issue and landing
//   WarpGroups.cpp   products of warp groups, and the registers of groups
// Banks.h counts bank conflicts next to them, told by Engine.cpp.
#pragma once

#include "Fiber.h"
#include "Findings.h"
#include "Mutations.h"
#include "emulator/memory/AtomicOrder.h"
#include "emulator/memory/Banks.h"
#include "emulator/memory/Counts.h"
#include "emulator/memory/Races.h"
#include "emulator/ptx/Asynchronous.h"

#include <array>
#include <deque>
#include <fagen/device/ptx/engine.h>
#include <map>
#include <string>
#include <vector>

namespace fagen::emulator {

inline constexpr unsigned kWarpLanes = 32;

/// An asynchronous copy that was issued and not yet waited for.
struct Copy {
  const void *source; ///< null: zeros, or poison when `poisoned`
  unsigned target;
  unsigned bytes;
  Site site;
  bool landed;
  bool poisoned;
};

/// What the lanes of a warp do together, all of them at one place.
enum class Collective : uint8_t {
  kLoadMatrices,
  kLoadMatricesTransposed,
  kMultiplyF16,
  kMultiplyBf16,
  kWmmaLoad,
  kWmmaMultiply,
  kWmmaStore,
  kShuffleXor,
  kVoteAny,
  kWarpBarrier,
  kNamedBarrier,
  kNamedBarrierArrive,
  kStoreMatrices,
  kStoreMatricesTransposed,
  kElectOne,
  kWgmma,
  kWgmmaFence,
  kWgmmaCommit,
  kWgmmaWait,
  kSetMaxNReg,
  kClusterArrive,
  kClusterWait
};
const char *collectiveName(Collective collective);

/// One lane's part of a collective. `result` points into the lane's frame; the last lane to come writes it.
struct Operands {
  void *result = nullptr;
  const unsigned *a = nullptr;
  const unsigned *b = nullptr; ///< wmma: B
  unsigned b0 =
      0; ///< mma: B; ldmatrix, wmma: address; shuffle: value; named barrier: its number; setmaxnreg: registers
  unsigned b1 = 0; ///< mma: B; shuffle: mask; wmma: stride; named barrier: threads; setmaxnreg: whether they increase
  unsigned words = 0;                    ///< wmma: of a loaded fragment
  device::ptx::WmmaTypes types{};        ///< wmma
  std::array<uint64_t, 2> descriptors{}; ///< wgmma: of A and B
  device::ptx::WgmmaForm form{};         ///< wgmma
};

struct Warp;

/// A thread of the kernel.
struct Lane {
  Fiber fiber;
  Warp *warp = nullptr;
  unsigned thread = 0; ///< in the cluster
  unsigned bit = 0;    ///< in the warp's masks
  Site barrierSite{};  ///< of the CTA barrier where it waits
  /// Copies from `firstCopy` on are not yet waited for; groupEnds from `firstGroup` on are the ends of closed groups.
  std::vector<Copy> copies;
  std::vector<size_t> groupEnds;
  size_t firstCopy = 0;
  size_t firstGroup = 0;
  // In the barrier where it waits, if the warp's atPhase says so:
  unsigned waitsAt = 0;  ///< its address
  unsigned waitsFor = 0; ///< the parity
  Site phaseSite{};
  // Its bulk stores: those that it has not waited for, and the numbers after the last ones of closed groups.
  std::deque<BulkCopy> stores;
  std::vector<uint64_t> storeGroupEnds;
  uint64_t storesDone = 0;
  unsigned storeQueue = 0; ///< 0: none yet
  bool hasAwaited = false; ///< the launches before this one
  // What it knew at its last fence_device, and what it heard at additions since.
  TellsWho fenced;
  std::vector<TellsWho> heard;
  // Registers that it gave to products of its warp group, and when it last called wgmma_fence and wgmma_wait.
  std::vector<KnownRegisters> registers;
  uint64_t fencedAt = 0, waitedAt = 0;
};

/// Masks have a bit for each lane.
struct Warp {
  unsigned index = 0;
  unsigned present = 0;       ///< lanes that began
  unsigned exited = 0;        ///< lanes that returned
  unsigned ready = 0;         ///< lanes that can run, the running one among them
  unsigned arrived = 0;       ///< lanes that wait in `collective`
  unsigned atBarrier = 0;     ///< lanes that wait in a CTA barrier
  unsigned atPhase = 0;       ///< lanes that wait for a phase of a barrier in shared memory
  unsigned heldAt = 0;        ///< the named barrier where the whole warp waits (its place in Cta::named), or 0
  bool heldAtCluster = false; ///< the whole warp waits for the cluster
  unsigned clusterArrivals = 0, clusterWaits = 0; ///< at the cluster's barrier so far
  bool heldInGroup = false;    ///< the whole warp waits for the others of its group to come to a product
  unsigned registers = 0;      ///< of a thread
  unsigned wantsRegisters = 0; ///< so many, and waits for them; or 0
  unsigned lastLane = 0;       ///< that was switched to
  Collective collective{};
  Site site{};
  Operands operands[kWarpLanes];

  bool isHeld() const { return heldAt || heldAtCluster || heldInGroup || wantsRegisters; }
};

inline constexpr unsigned kNamedBarriers = 16; ///< the first is the CTA's

/// Who has come to a named barrier since it last let go.
struct NamedBarrier {
  unsigned threads = 0; ///< that must come
  uint32_t come = 0;    ///< a bit for each warp
  Clocks::Joined joined;
  unsigned count() const; ///< threads that came
};

/// Of one CTA.
struct CtaCounts {
  unsigned live = 0;          ///< threads that did not return
  unsigned atBarrier = 0;     ///< threads that wait in the CTA barrier
  unsigned freeRegisters = 0; ///< that no warp has
};

/// A launch as its CTAs see it.
struct Grid {
  const Launch &launch;
  const Options &options;
  void *kernel; ///< void (*)(Params)
  const void *params;
  size_t paramBytes;
  /// Of each buffer; null for those that are only read, and without Options::races.
  const std::vector<std::unique_ptr<GlobalRaces>> &races;
  AtomicOrder &atomics;
  Counts &counts;

  /// Whether a buffer of the launch holds all of these bytes.
  bool isReadable(const void *begin, size_t bytes) const { return holds(begin, bytes, false); }
  bool isWritable(const void *begin, size_t bytes) const { return holds(begin, bytes, true); }

private:
  bool holds(const void *begin, size_t bytes, bool writable) const;
};

class Cta {
public:
  Cta() = default;
  ~Cta();
  Cta(const Cta &) = delete;
  Cta &operator=(const Cta &) = delete;

  /// Makes room for the grid's CTAs. False when the system gives no memory.
  bool reserve(const Grid &grid);
  /// Runs CTA `index` of the grid, and those of its cluster after it, to their end.
  void run(const Grid &grid, unsigned index);

  const Findings &findings() const { return found; }
  uint64_t instructions() const { return instructionCount; }
  const BankSites &bankSites() { return banks.finish(); }
  const std::vector<bool> &linesRun() const { return ranLines; }

  // What threads of the kernel call.
  unsigned threadIndex() const { return running->thread % grid->launch.threads; }
  unsigned rank() const { return running->thread / grid->launch.threads; }
  unsigned clusterSize() const { return grid->launch.cluster; }
  unsigned index() const { return ctaIndex + rank(); }
  unsigned count() const { return grid->launch.grid; }
  void *sharedBase() const { return shared + rank() * window; }
  /// Where a byte of the shared memory of the cluster's CTA `rank` is; outside of all where it has no such byte.
  unsigned addressIn(unsigned rank, unsigned address) const {
    const unsigned ctas = grid->launch.cluster;
    return ctas == 1 ? address : address + static_cast<unsigned>(address < window ? rank * window : ctas * window);
  }
  void loadShared(void *to, unsigned address, unsigned bytes, Site site);
  void storeShared(unsigned address, const void *from, unsigned bytes, Site site);
  void loadGlobal(void *to, const void *from, unsigned bytes, Site site);
  void loadElement(void *to, const void *tensor, long long index, unsigned bytes, Site site);
  void storeGlobal(void *to, const void *from, unsigned bytes, Site site);
  unsigned atomicInc(unsigned *word, unsigned last, Site site);
  void fenceDevice(Site site);
  void awaitLaunches(Site site);
  [[noreturn]] void divideByZero(long long dividend, Site site);
  void issueCopy(unsigned target, const void *source, unsigned bytes, bool valid, Site site);
  void commitCopies(Site site);
  void waitForCopies(unsigned pending, Site site);
  void meet(Collective collective, const Operands &operands, Site site);
  void ctaBarrier(Site site);
  void initBarrier(unsigned address, int arrivals, Site site);
  void fenceBarrierInit(Site site);
  void arriveAtBarrier(unsigned address, int bytes, Site site);
  void arriveAtBarrierOf(unsigned rank, unsigned address, Site site);
  void waitAtBarrier(unsigned address, unsigned parity, Site site);
  void issueLoads(unsigned target, const device::TensorMap *map, const int *at, int rank, unsigned barrier,
                  unsigned ctas, Site site);
  void issueStore(const device::TensorMap *map, const int *at, int rank, unsigned source, Site site);
  void commitStores(Site site);
  void waitForStores(unsigned pending, Site site);
  void fenceProxy(Site site);
  /// Tells the bank counter of the running thread's access; `caller` is where the kernel's code goes on after it.
  void countBanks(BankAccess access, unsigned address, unsigned bytes, Site site, const void *caller) {
    if (grid->options.banks) [[unlikely]]
      banks.add(running->thread, access, address, bytes, site.line, caller);
  }
  /// The same for a matrix of the whole warp: its first lane speaks for all.
  void countMatrixBanks(BankAccess access, unsigned address, unsigned stride, unsigned elementBytes, Site site) {
    if (grid->options.banks && running->thread % kWarpLanes == 0) [[unlikely]]
      banks.addMatrix(access, address, stride, elementBytes, site.line);
  }

  /// Before each call that has a site: mutations that were moved here take place.
  void passBy(Site site) {
    if (!mutator.isIdle()) [[unlikely]]
      mutator.passBy(*this, site);
  }
  /// At waits and barriers: whether a mutation took their place.
  bool isReplaced(Site site) { return !mutator.isIdle() && mutator.replaces(*this, site); }

  /// The number of the running thread in its cluster.
  unsigned threadOfCluster() const { return running->thread; }

  /// The CTA whose thread calls; threads never move to another OS thread.
  static thread_local Cta *current;

private:
  enum class Access { kRead, kWrite, kAtomic };

  // Cta.cpp
  static void runThread();
  void begin();
  void finish();
  [[noreturn]] void exitThread();
  [[noreturn]] void abandon();
  Lane *next();
  Lane *nextReady();
  Lane *nextOfWarp(Warp &warp);
  void block();
  void perhapsYield();
  void count(Site site) {
    if (++instructionCount >= grid->options.maxInstructions) [[unlikely]]
      stop(site);
    if (grid->options.coverage) [[unlikely]]
      markLine(site);
  }
  void markLine(Site site);
  [[noreturn]] void stop(Site site);
  void reportDeadlock();
  struct Waiting;
  std::vector<Waiting> waiting() const;
  std::string roleOf(unsigned warp) const;
  /// A finding about the running thread; the other side is at `otherLine`.
  template <class Message>
  void report(const char *kind, Site site, Message message, int otherLine = 0, int otherThread = -1) {
    found.add(kind, site, message, {otherLine, static_cast<int>(threadIndex()), otherThread});
  }
  std::string describeThread() const;
  uint64_t random();
  std::string place(Site site) const;
  std::string placeAndOp(Site site) const;

  // Barriers.cpp
  void requireSameBarrier(const Warp &warp, Site site);
  void releaseBarrier(unsigned cta);
  std::string refusalAtBarrier(const Warp &warp) const;
  void comeToBarrier(Warp &warp);

  // Clusters.cpp
  void arriveAtCluster(Warp &warp);
  void waitAtCluster(Warp &warp);
  void releaseCluster();
  void reportExitedCtas();
  unsigned threads() const { return grid->launch.threads * grid->launch.cluster; }
  unsigned warpInCta(unsigned warp) const { return warp % ctaWarps; }
  unsigned ctaOfWarp(unsigned warp) const { return ctaIndex + warp / ctaWarps; }
  unsigned threadInCta(unsigned thread) const { return thread % grid->launch.threads; }
  unsigned inCta(unsigned address) const { return grid->launch.cluster == 1 ? address : address % window; }
  /// " of CTA 3", where there are several.
  std::string ofCta(unsigned rank) const;
  /// Whether it is shared memory of one CTA.
  bool isShared(unsigned address, uint64_t bytes) const {
    const uint64_t end = inCta(address) + bytes;
    return end <= sharedBytes && (grid->launch.cluster == 1 || address < grid->launch.cluster * window);
  }

  // Collectives.cpp
  void perform(Warp &warp);
  void multiplyFragments(Warp &warp, device::ptx::ElementType type);
  void shuffle(Warp &warp);
  void loadMatrices(Warp &warp, bool transpose);
  void reportMismatch(Warp &warp, Collective collective, Site site);

  void storeMatrices(Warp &warp, bool transpose);

  // Wmma.cpp
  void loadMatrix(Warp &warp);
  void multiplyMatrices(Warp &warp);
  void reportUninitialisedFragments(Warp &warp);
  void storeMatrix(Warp &warp);
  bool checkMatrix(Warp &warp, unsigned elementBytes);
  bool touchMatrix(Access access, Warp &warp, unsigned address);

  // Memory.cpp
  bool checkShared(Access access, unsigned address, unsigned bytes, Site site);
  bool checkState(Access access, unsigned address, unsigned bytes, Site site);
  /// Of a launch that may begin before the one before it has ended.
  void requireAwaited(Site site);
  bool checkGlobal(Access access, const void *address, unsigned bytes, Site site);
  void reportGlobal(Access access, const void *address, unsigned bytes, Site site);
  void reportInside(Access access, const Buffer &buffer, size_t offset, unsigned bytes, Site site);
  void reportUninitialised(Lane &lane, const char *what, Site site);
  const unsigned char *matrixRow(Lane &lane, unsigned address, Site site);
  void checkRace(Access access, Agent agent, unsigned address, unsigned bytes, Site site);
  void reportRace(Access access, const Race &race, Agent agent, const char *what, Site site);
  std::string nameOf(Agent agent, bool isAlone = false) const;
  int threadOf(Agent agent) const;
  void checkWritten(Access access, const Buffer &buffer, size_t offset, unsigned bytes, Site site);
  void checkGlobalRace(Access access, const Buffer &buffer, const void *address, unsigned bytes, Site site);
  Agent self() const { return {running->thread / kWarpLanes, running->bit}; }

  // Copies.cpp
  void land(Copy &copy);
  void landSome(Lane &lane);
  void complete(Lane &lane, size_t end);
  void reportUnwaitedCopies();
  /// Who is bringing something to these bytes, and its copy.
  struct Pending {
    unsigned thread;
    Site site; ///< of its copy
  };
  Pending findPending(unsigned address, unsigned bytes) const;

  // MBarriers.cpp
  MBarrier *barrierAt(unsigned address, const char *what, Site site);
  void advanceBarrier(unsigned address, MBarrier &barrier, unsigned thread, Site site);
  int64_t phaseMeant(const MBarrier &barrier, unsigned parity) const;
  void pass(MBarrier &barrier, Lane &lane, Site site);
  void reportUnseen(unsigned address, int64_t phase, unsigned waiter, Site wait, unsigned thread, Site site);
  std::string missingAt(unsigned address) const;
  std::string sharedName(unsigned global) const;
  void refineClocks();

  // BulkCopies.cpp
  void issueLoad(unsigned target, const device::TensorMap *map, const int *at, int rank, unsigned barrier, Site site);
  bool describeCopy(const device::TensorMap *map, const int *at, int rank, unsigned address, Site site, BulkCopy &copy);
  bool checkChunk(Access access, const char *tensor, unsigned begin, unsigned end, Site site);
  void checkAsynchronous(Access access, const SharedRaces::Asynchronous &by, unsigned address, Site site);
  void landLoad(BulkCopy &copy);
  bool landNext();
  void landSomeBulk();
  void landStore(BulkCopy &copy);
  void reportUnwaitedBoxes();
  const BulkCopy *findPendingBox(unsigned address) const;

  // WarpGroups.cpp
  void comeToProduct(Warp &warp);
  bool isSameProduct(unsigned first);
  KnownRegisters &knownRegisters(Lane &lane, const void *where, unsigned words);
  void checkFenced(Lane &lane, const void *where, unsigned words, const char *what, Site site);
  Flight &flightOf(WarpGroup &group, unsigned first, unsigned registers, bool accumulate, Site site);
  void issueProduct(WarpGroup &group, unsigned first);
  void checkOperands(WarpGroup &group, const Product64 &product, unsigned first);
  uint16_t sharedElement(unsigned address) const;
  uint8_t sharedByte(unsigned address) const;
  void computeProduct(const Product64 &product);
  void computeByteProduct(const Product64 &product);
  void computeProducts(WarpGroup &group, uint64_t end);
  void reportInFlight(Lane &lane, const char *what, Site site);
  void fenceProducts(Warp &warp);
  void commitProducts(Warp &warp);
  void waitForProducts(Warp &warp, unsigned pending);
  void deliver(Flight &flight, Warp &warp);
  void setRegisters(Warp &warp);
  void grantRegisters();
  void checkRegisters();

  const Grid *grid = nullptr;
  unsigned ctaIndex = 0; ///< of the cluster's first
  Lane *running = nullptr;
  Fiber home; ///< the worker
  Stacks stacks;
  std::vector<Lane> lanes;
  std::vector<Warp> warps;
  unsigned warpCount = 0, ctaWarps = 0; ///< of the cluster, of one CTA
  unsigned currentWarp = 0;
  unsigned live = 0; ///< threads that did not return
  std::vector<CtaCounts> ctas;
  std::vector<NamedBarrier> named; ///< those of each CTA
  unsigned clusterPhase = 0;       ///< how often the cluster's barrier let go
  Clocks::Joined clusterOpen, clusterDone;
  /// The last arrival of a thread in another CTA, by that CTA's rank and the thread.
  struct RemoteArrival {
    uint32_t epoch;
    unsigned barrier;
    Site site;
  };
  std::map<std::pair<unsigned, unsigned>, RemoteArrival> remoteArrivals;
  std::map<unsigned, MBarrier> barriers; ///< by address
  std::vector<BulkCopy> loads;           ///< in the order of issue; those that were waited for are left out at times
  unsigned storeQueues = 0;              ///< threads that issued bulk stores
  std::array<WarpGroup, 8> warpGroups;
  std::array<WarpProducts, kWarpLanes> warpProducts;
  uint64_t registerTime = 0; ///< counts fences of and waits for products
  bool abandoned = false;
  unsigned char *shared = nullptr;
  size_t sharedBytes = 0; ///< of a CTA
  size_t window = 1;      ///< from one CTA's to the next one's
  size_t sharedCapacity = 0;
  std::vector<unsigned char> state; ///< of each shared byte: what Memory.cpp's ByteState says
  size_t lastBuffer = 0;            ///< where the last global access hit
  uint64_t randomState = 0;
  uint64_t instructionCount = 0;
  Findings found;
  BankCounter banks;
  SharedRaces races;
  Heard heard;
  std::vector<bool> ranLines; ///< by line of the generated file
  Mutator mutator;
};

/// What is known about a byte of shared memory.
enum ByteState : unsigned char { kNeverWritten = 0, kWritten = 1, kCopyPending = 2, kBarrier = 3 };

/// Queues of the race detector: products by warp group, then bulk stores by thread, then bulk loads by barrier.
inline constexpr unsigned kFirstStoreQueue = 8;
inline constexpr unsigned kFirstBarrierQueue = SharedRaces::kReadQueues;

} // namespace fagen::emulator
