// fagen: who runs next, the end of a CTA, deadlock.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Cta.h"

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

} // namespace

Cta::~Cta() { std::free(shared); }

bool Cta::reserve(const Grid &g) {
  const unsigned threads = g.launch.threads;
  if (!stacks.reserve(threads))
    return false;
  if (lanes.size() < threads) {
    lanes.resize(threads);
    warps.resize((threads + kWarpLanes - 1) / kWarpLanes);
  }
  if (g.launch.sharedBytes > sharedCapacity || !shared) {
    std::free(shared);
    sharedCapacity = (g.launch.sharedBytes + 1024) / 1024 * 1024;
    shared = static_cast<unsigned char *>(std::aligned_alloc(1024, sharedCapacity));
  }
  state.resize(std::max(state.size(), g.launch.sharedBytes));
  return shared != nullptr;
}

void Cta::begin() {
  const unsigned threads = grid->launch.threads;
  sharedBytes = grid->launch.sharedBytes;
  std::memset(shared, kPoison, sharedBytes);
  std::memset(state.data(), kNeverWritten, sharedBytes);
  warpCount = (threads + kWarpLanes - 1) / kWarpLanes;
  for (unsigned w = 0; w < warpCount; ++w) {
    Warp &warp = warps[w];
    const unsigned count = std::min(kWarpLanes, threads - w * kWarpLanes);
    warp.index = w;
    warp.present = warp.ready = count == kWarpLanes ? ~0u : (1u << count) - 1;
    warp.exited = warp.arrived = warp.atBarrier = warp.heldAt = 0;
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
    prepare(lane.fiber, stacks, t, runThread);
  }
  banks.begin(grid->options.banks ? threads : 0);
  races.begin(warpCount, grid->options.races ? sharedBytes : 0);
  named.fill({});
  ranLines.clear();
  mutator.begin(grid->options.mutations, threads);
  running = nullptr;
  live = threads;
  barrierCount = 0;
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
  if (!abandoned)
    reportUnwaitedCopies();
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
  if (warp.arrived) {
    found.add("exited-lane", warp.site, [&] {
      return fmt::format("{} returned while other lanes of its warp wait in {}", describeThread(),
                         collectiveName(warp.collective));
    });
    abandon();
  }
  if (live > 0 && barrierCount == live)
    releaseBarrier();
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

/// Who runs next; null when nobody can.
Lane *Cta::next() {
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

void Cta::stop(Site site) {
  found.add("instruction-limit", site,
            [&] { return fmt::format("CTA {} was stopped after {} instructions", ctaIndex, instructionCount); });
  abandon();
}

namespace {

/// "lanes 0-3, 8"
std::string laneList(unsigned mask) {
  std::string text;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    unsigned end = lane;
    while (end + 1 < kWarpLanes && (mask >> (end + 1) & 1))
      ++end;
    text += text.empty() ? "" : ", ";
    text += end == lane ? fmt::format("{}", lane) : fmt::format("{}-{}", lane, end);
    lane = end;
  }
  return (std::popcount(mask) == 1 ? "lane " : "lanes ") + text;
}

} // namespace

std::string Cta::place(Site site) const {
  const char *slash = std::strrchr(site.file, '/');
  return fmt::format("{}:{}", slash ? slash + 1 : site.file, site.line);
}

std::string Cta::describeThread() const {
  return fmt::format("thread {} (warp {} lane {}) of CTA {}", running->thread, running->thread / kWarpLanes,
                     running->thread % kWarpLanes, ctaIndex);
}

/// One line for each group of a warp's lanes that wait at one place.
std::string Cta::describeWaiting() const {
  std::string text;
  for (unsigned w = 0; w < warpCount; ++w) {
    const Warp &warp = warps[w];
    if (warp.arrived)
      text += fmt::format("\n  warp {} {}: {} at {}, which needs all 32 lanes", w, laneList(warp.arrived),
                          collectiveName(warp.collective), place(warp.site));
    unsigned open = warp.atBarrier;
    while (open) {
      const Site site = lanes[w * kWarpLanes + std::countr_zero(open)].barrierSite;
      unsigned same = 0;
      for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
        const Site other = lanes[w * kWarpLanes + lane].barrierSite;
        if ((open >> lane & 1) && other.line == site.line && !std::strcmp(other.file, site.file))
          same |= 1u << lane;
      }
      text += fmt::format("\n  warp {} {}: cta_barrier at {}, where {} of {} threads are", w, laneList(same),
                          place(site), barrierCount, live);
      open &= ~same;
    }
    if (warp.heldAt)
      text += fmt::format("\n  warp {}: named_barrier {} at {}, where {} of {} threads are", w, warp.heldAt,
                          place(warp.site), named[warp.heldAt].count(), named[warp.heldAt].threads);
    if (warp.exited)
      text += fmt::format("\n  warp {} {}: returned", w, laneList(warp.exited));
  }
  return text;
}

void Cta::reportDeadlock() {
  Site site{"", 0};
  for (unsigned w = warpCount; w-- > 0;) {
    if (warps[w].atBarrier)
      site = lanes[w * kWarpLanes + std::countr_zero(warps[w].atBarrier)].barrierSite;
    if (warps[w].arrived || warps[w].heldAt)
      site = warps[w].site;
  }
  found.add("deadlock", site, [&] {
    return fmt::format("CTA {}: nobody can go on; {} of {} threads wait{}", ctaIndex, live, grid->launch.threads,
                       describeWaiting());
  });
  abandoned = true;
}

} // namespace fagen::emulator
