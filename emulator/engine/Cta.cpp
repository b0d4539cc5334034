// fagen: who runs next, the end of a CTA, deadlock.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Cta.h"
#include "Compile.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

namespace fagen::emulator {

thread_local Cta *Cta::current = nullptr;

namespace {

/// Shared memory is filled with it: a NaN in f16, bf16 and f32.
constexpr unsigned char kPoison = 0xff;

/// Of an SM, all of them one CTA's; a thread has at most so many.
constexpr unsigned kRegistersOfSm = 65536, kMostRegisters = 256;

/// A kernel takes its parameters by value. In the ABIs of x86-64 and AArch64 a longer structure may stand for a
/// shorter one, so these two serve all kernels.
template <size_t kBytes> struct alignas(16) Parameters {
  unsigned char bytes[kBytes];
};

template <size_t kBytes> void call(const Grid &grid) {
  Parameters<kBytes> parameters;
  std::memcpy(parameters.bytes, grid.params, grid.paramBytes);
  reinterpret_cast<void (*)(Parameters<kBytes>)>(grid.kernel)(parameters);
}

constexpr size_t kWindowUnit = 1024; // where any swizzle pattern may begin

size_t windowOf(const Launch &launch) { return (launch.sharedBytes + kWindowUnit) / kWindowUnit * kWindowUnit; }

} // namespace

bool Grid::holds(const void *begin, size_t bytes, bool writable) const {
  const auto first = reinterpret_cast<uintptr_t>(begin);
  for (const Buffer &buffer : launch.buffers) {
    const uintptr_t offset = first - reinterpret_cast<uintptr_t>(buffer.begin);
    if (offset < buffer.bytes && buffer.bytes - offset >= bytes && (buffer.writable || !writable))
      return true;
  }
  return false;
}

Cta::~Cta() { std::free(shared); }

bool Cta::reserve(const Grid &g) {
  const unsigned threads = g.launch.threads * g.launch.cluster;
  if (!stacks.reserve(threads))
    return false;
  if (lanes.size() < threads) {
    lanes.resize(threads);
    warps.resize((threads + kWarpLanes - 1) / kWarpLanes);
  }
  const size_t bytes = windowOf(g.launch) * g.launch.cluster;
  if (bytes > sharedCapacity || !shared) {
    std::free(shared);
    sharedCapacity = bytes;
    shared = static_cast<unsigned char *>(std::aligned_alloc(kWindowUnit, sharedCapacity));
  }
  state.resize(std::max(state.size(), bytes));
  return shared != nullptr;
}

void Cta::begin() {
  const unsigned threads = this->threads();
  sharedBytes = grid->launch.sharedBytes;
  window = windowOf(grid->launch);
  const size_t bytes = grid->launch.cluster == 1 ? sharedBytes : grid->launch.cluster * window;
  std::memset(shared, kPoison, bytes);
  std::memset(state.data(), kNeverWritten, bytes);
  warpCount = (threads + kWarpLanes - 1) / kWarpLanes;
  ctaWarps = warpCount / grid->launch.cluster;
  for (unsigned w = 0; w < warpCount; ++w) {
    Warp &warp = warps[w];
    const unsigned count = std::min(kWarpLanes, threads - w * kWarpLanes);
    warp.index = w;
    warp.present = warp.ready = count == kWarpLanes ? ~0u : (1u << count) - 1;
    warp.exited = warp.arrived = warp.atBarrier = warp.atPhase = warp.heldAt = 0;
    warp.heldInGroup = warp.heldAtCluster = false;
    warp.clusterArrivals = warp.clusterWaits = 0;
    warp.registers = grid->launch.registers ? grid->launch.registers
                                            : std::min(kMostRegisters, kRegistersOfSm / grid->launch.threads / 8 * 8);
    warp.wantsRegisters = 0;
    warp.lastLane = kWarpLanes - 1;
  }
  for (unsigned t = 0; t < threads; ++t) {
    Lane &lane = lanes[t];
    lane.warp = &warps[t / kWarpLanes];
    lane.thread = t;
    lane.bit = 1u << t % kWarpLanes;
    lane.copies.clear();
    lane.groupEnds.clear();
    lane.firstCopy = lane.firstGroup = 0;
    lane.stores.clear();
    lane.storeGroupEnds.clear();
    lane.storesDone = lane.storeQueue = 0;
    lane.fenced.reset();
    lane.heard.clear();
    lane.registers.clear();
    lane.fencedAt = lane.waitedAt = 0;
    prepare(lane.fiber, stacks, t, runThread);
  }
  banks.begin(grid->options.banks ? threads : 0);
  races.begin(warpCount, grid->options.races ? bytes : 0);
  heard.clear();
  named.assign(grid->launch.cluster * kNamedBarriers, {});
  ctas.assign(grid->launch.cluster, {.live = grid->launch.threads});
  clusterPhase = 0;
  clusterOpen = clusterDone = {};
  remoteArrivals.clear();
  barriers.clear();
  loads.clear();
  storeQueues = 0;
  warpGroups.fill({});
  warpProducts.fill({});
  registerTime = 0;
  ranLines.clear();
  mutator.begin(grid->options.mutations, threads);
  running = nullptr;
  live = threads;
  currentWarp = 0;
  lastBuffer = 0;
  abandoned = false;
  instructionCount = 0;
  randomState = (grid->options.seed + 1) * 0x9e3779b97f4a7c15u ^ (ctaIndex + 1) * 0xbf58476d1ce4e5b9u;
  found = Findings(std::max<size_t>(1, grid->options.maxFindings));
}

void Cta::run(const Grid &g, unsigned index) {
  grid = &g;
  ctaIndex = index;
  current = this;
  begin();
  running = next();
  switchFibers(home, running->fiber);
  finish();
}

/// Back on the worker: every thread returned, or the CTA was abandoned.
void Cta::finish() {
  if (!abandoned && live > 0)
    reportDeadlock();
  if (!abandoned) {
    reportUnwaitedCopies();
    reportUnwaitedBoxes();
    checkRegisters();
    reportExitedCtas();
  }
  current = nullptr;
}

void Cta::runThread() {
  const Grid &grid = *current->grid;
  if (grid.paramBytes <= 512)
    call<512>(grid);
  else
    call<4096>(grid);
  current->exitThread();
}

void Cta::exitThread() {
  Warp &warp = *running->warp;
  warp.ready &= ~running->bit;
  warp.exited |= running->bit;
  --live;
  CtaCounts &cta = ctas[rank()];
  --cta.live;
  if (warp.arrived) {
    report("exited-lane", warp.site, [&] {
      return fmt::format("{} returned while other lanes of its warp wait in {}", describeThread(),
                         collectiveName(warp.collective));
    });
    abandon();
  }
  if (cta.live > 0 && cta.atBarrier == cta.live)
    releaseBarrier(rank());
  releaseCluster();
  Lane *lane = next();
  Fiber &self = running->fiber;
  running = lane;
  switchFibers(self, lane ? lane->fiber : home);
  __builtin_unreachable();
}

void Cta::abandon() {
  abandoned = true;
  switchFibers(running->fiber, home);
  __builtin_unreachable();
}

uint64_t Cta::random() { // xorshift64*
  randomState ^= randomState >> 12;
  randomState ^= randomState << 25;
  randomState ^= randomState >> 27;
  return randomState * 0x2545f4914f6cdd1du >> 32;
}

/// The next lane of the warp after the one that ran last, in a circle.
Lane *Cta::nextOfWarp(Warp &warp) {
  const unsigned start = (warp.lastLane + 1) % kWarpLanes;
  const unsigned lane = (start + std::countr_zero(std::rotr(warp.ready, static_cast<int>(start)))) % kWarpLanes;
  warp.lastLane = lane;
  return &lanes[warp.index * kWarpLanes + lane];
}

/// Who runs next; null when nobody can, and nothing that is on its way could change that.
Lane *Cta::next() {
  for (;;) {
    if (Lane *lane = nextReady())
      return lane;
    if (!landNext())
      return nullptr;
  }
}

/// Of the threads that can run.
Lane *Cta::nextReady() {
  if (warps[currentWarp].ready && running)
    return nextOfWarp(warps[currentWarp]);
  const bool drawn = grid->options.seed != 0;
  const unsigned start = drawn ? static_cast<unsigned>(random() % warpCount) : running ? currentWarp + 1 : 0;
  for (unsigned i = 0; i < warpCount; ++i) {
    const unsigned index = (start + i) % warpCount;
    Warp &warp = warps[index];
    if (!warp.ready)
      continue;
    currentWarp = index;
    if (drawn)
      warp.lastLane = static_cast<unsigned>(random() % kWarpLanes);
    return nextOfWarp(warp);
  }
  return nullptr;
}

/// The running thread, no longer ready, waits until somebody makes it ready and its turn comes.
void Cta::block() {
  Fiber &self = running->fiber;
  Lane *lane = next();
  if (lane == running)
    return;
  running = lane;
  switchFibers(self, lane ? lane->fiber : home);
}

/// With a seed: now and then another warp goes first.
void Cta::perhapsYield() {
  if (grid->options.seed == 0 || random() % 4 != 0)
    return;
  Lane *self = running;
  running = nullptr;
  Lane *lane = next();
  running = lane;
  if (lane != self)
    switchFibers(self->fiber, lane->fiber);
}

void Cta::markLine(Site site) {
  const size_t line = static_cast<size_t>(site.line);
  if (ranLines.size() <= line)
    ranLines.resize(line + 1);
  ranLines[line] = true;
}

void Cta::divideByZero(long long dividend, Site site) {
  report("division-by-zero", site,
         [&] { return fmt::format("{} divides {} by 0, and the CTA ends", describeThread(), dividend); });
  abandon();
}

void Cta::stop(Site site) {
  report("instruction-limit", site,
         [&] { return fmt::format("CTA {} was stopped after {} instructions", index(), instructionCount); });
  abandon();
}

namespace {

/// "0-3, 8"
std::string numberList(unsigned mask) {
  std::string text;
  for (unsigned number = 0; number < 32; ++number) {
    if (!(mask >> number & 1))
      continue;
    unsigned end = number;
    while (end + 1 < 32 && (mask >> (end + 1) & 1))
      ++end;
    text += text.empty() ? "" : ", ";
    text += end == number ? fmt::format("{}", number) : fmt::format("{}-{}", number, end);
    number = end;
  }
  return text;
}

std::string withPlural(const char *word, unsigned mask) {
  return fmt::format("{}{} {}", word, std::popcount(mask) == 1 ? "" : "s", numberList(mask));
}

} // namespace

std::string Cta::place(Site site) const {
  const char *slash = std::strrchr(site.file, '/');
  return fmt::format("{}:{}", slash ? slash + 1 : site.file, site.line);
}

/// The same with the op and the place in the spec, where the launch says what stands there.
std::string Cta::placeAndOp(Site site) const {
  const bool isKernel = !std::strcmp(site.file, kKernelFile);
  const LineInfo *info = isKernel ? infoOf(grid->launch.lines, site.line) : nullptr;
  return info ? fmt::format("{} ({})", place(site), describe(*info)) : place(site);
}

std::string Cta::describeThread() const {
  return fmt::format("thread {} (warp {} lane {}) of CTA {}", threadIndex(), threadIndex() / kWarpLanes,
                     threadIndex() % kWarpLanes, index());
}

/// Warps of which the same lanes wait in the same place, or returned.
struct Cta::Waiting {
  unsigned warps; ///< a bit for each
  unsigned lanes;
  bool isWhole; ///< these are all the warp has
  Site site;    ///< line 0 for those that returned
  std::string text;
  unsigned rank; ///< of their CTA

  int firstThread() const { return static_cast<int>(kWarpLanes) * std::countr_zero(warps) + std::countr_zero(lanes); }
};

/// Everybody, warp by warp.
std::vector<Cta::Waiting> Cta::waiting() const {
  std::vector<Waiting> groups;
  const auto add = [&](const Warp &warp, unsigned lanes, Site site, std::string text) {
    for (Waiting &group : groups)
      if (group.rank == warp.index / ctaWarps && group.lanes == lanes && group.site.line == site.line &&
          group.text == text) {
        group.warps |= 1u << warpInCta(warp.index);
        return;
      }
    groups.push_back(
        {1u << warpInCta(warp.index), lanes, lanes == warp.present, site, std::move(text), warp.index / ctaWarps});
  };
  for (unsigned w = 0; w < warpCount; ++w) {
    const Warp &warp = warps[w];
    if (warp.arrived)
      add(warp, warp.arrived, warp.site,
          fmt::format("{} at {}, which needs all 32 lanes", collectiveName(warp.collective), placeAndOp(warp.site)));
    if (warp.atBarrier) {
      const Site site = lanes[w * kWarpLanes + std::countr_zero(warp.atBarrier)].barrierSite;
      add(warp, warp.atBarrier, site,
          fmt::format("cta_barrier at {}, where {} of {} threads are", placeAndOp(site), ctas[w / ctaWarps].atBarrier,
                      ctas[w / ctaWarps].live));
    }
    if (warp.heldAt)
      add(warp, ~0u, warp.site,
          fmt::format("named_barrier {} at {}, where {} of {} threads are", warp.heldAt % kNamedBarriers,
                      placeAndOp(warp.site), named[warp.heldAt].count(), named[warp.heldAt].threads));
    if (warp.heldAtCluster)
      add(warp, ~0u, warp.site,
          fmt::format("cluster_wait at {}, where others have not arrived", placeAndOp(warp.site)));
    if (warp.heldInGroup)
      add(warp, ~0u, warp.site,
          fmt::format("wgmma at {}, where warps {} of its group are", placeAndOp(warp.site),
                      numberList(warpGroups[w / 4].come)));
    if (warp.wantsRegisters)
      add(warp, ~0u, warp.site,
          fmt::format("setmaxnreg_inc<{}> at {}, which needs {} more registers a thread; {} are free for a warp",
                      warp.wantsRegisters, placeAndOp(warp.site), warp.wantsRegisters - warp.registers,
                      ctas[w / ctaWarps].freeRegisters / kWarpLanes));
    for (unsigned waiting = warp.atPhase; waiting;) {
      const Lane &lane = lanes[w * kWarpLanes + std::countr_zero(waiting)];
      unsigned same = 0;
      for (unsigned rest = waiting; rest; rest &= rest - 1) {
        const Lane &other = lanes[w * kWarpLanes + std::countr_zero(rest)];
        if (other.waitsAt == lane.waitsAt && other.phaseSite.line == lane.phaseSite.line)
          same |= other.bit;
      }
      waiting &= ~same;
      add(warp, same, lane.phaseSite,
          fmt::format("{}mbarrier_wait for phase {} of {} at {}, which lacks {}", roleOf(w),
                      barriers.at(lane.waitsAt).phase, sharedName(lane.waitsAt), placeAndOp(lane.phaseSite),
                      missingAt(lane.waitsAt)));
    }
    if (warp.exited)
      add(warp, warp.exited, {"", 0}, "returned");
  }
  return groups;
}

/// "load: ", where the launch names the warp's role.
std::string Cta::roleOf(unsigned warp) const {
  for (const Role &role : grid->launch.roles)
    if (warpInCta(warp) >= role.firstWarp && warpInCta(warp) < role.firstWarp + role.warps)
      return role.name + ": ";
  return "";
}

void Cta::reportDeadlock() {
  const std::vector<Waiting> groups = waiting();
  const auto waits = [](const Waiting &group) { return group.site.line != 0; };
  const auto first = std::find_if(groups.begin(), groups.end(), waits);
  const auto other = std::find_if(
      first, groups.end(), [&](const Waiting &group) { return waits(group) && group.site.line != first->site.line; });
  Findings::Pair pair{0, first->firstThread(), -1};
  if (other != groups.end())
    pair = {other->site.line, first->firstThread(), other->firstThread()};
  found.add(
      "deadlock", first->site,
      [&] {
        const unsigned others = grid->launch.cluster - 1;
        std::string text =
            fmt::format("CTA{} {}{}: nobody can go on; {} of {} threads wait", others ? "s" : "", ctaIndex,
                        others ? fmt::format(" to {}", ctaIndex + others) : "", live, threads());
        for (const Waiting &group : groups)
          text +=
              fmt::format("\n  {}{}{}: {}", withPlural("warp", group.warps),
                          group.isWhole ? "" : " " + withPlural("lane", group.lanes), ofCta(group.rank), group.text);
        return text;
      },
      pair);
  abandoned = true;
}

} // namespace fagen::emulator
