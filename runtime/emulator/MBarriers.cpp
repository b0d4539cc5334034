// fagen: barriers in shared memory that count arrivals and bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Single threads come to them, so from the first one on the clocks are those of threads. A wait that must wait blocks
// its thread; who else waits in a loop around it does not show.
#include "Cta.h"

#include <cstring>
#include <fmt/format.h>

namespace fagen::emulator {

namespace {

constexpr unsigned kBarrierBytes = 8;
constexpr int64_t kMostBytes = (1 << 20) - 1; ///< that a phase can expect
constexpr unsigned kMostArrivals = (1 << 20) - 1;

} // namespace

void Cta::initBarrier(unsigned address, int arrivals, Site site) {
  count(site);
  refineClocks();
  const bool inside = address % kBarrierBytes == 0 && isShared(address, kBarrierBytes);
  if (!inside || arrivals < 1 || arrivals > static_cast<int>(kMostArrivals)) {
    report("mbarrier", site, [&] {
      return fmt::format("{} makes a barrier for {} arrivals at shared address {}: it is 8 bytes at a multiple of 8 "
                         "below {}, for 1 to {} arrivals",
                         describeThread(), arrivals, inCta(address), sharedBytes, kMostArrivals);
    });
    return;
  }
  MBarrier fresh;
  fresh.arrivals = fresh.missing = static_cast<unsigned>(arrivals);
  fresh.queue = kFirstBarrierQueue + static_cast<unsigned>(barriers.size());
  fresh.maker = running->thread;
  fresh.madeAt = races.clocks.epoch(running->thread / kWarpLanes);
  fresh.site = site;
  const auto old = barriers.find(address);
  if (old != barriers.end())
    fresh.queue = old->second.queue;
  barriers[address] = fresh;
  std::memset(&state[address], kBarrier, kBarrierBytes);
}

void Cta::fenceBarrierInit(Site site) {
  count(site);
  for (auto &[address, barrier] : barriers)
    barrier.isFenced |= barrier.maker == running->thread;
}

/// The barrier at the address, if there is one that the running thread knows of.
MBarrier *Cta::barrierAt(unsigned address, const char *what, Site site) {
  const auto found = barriers.find(address);
  if (found == barriers.end()) {
    report("mbarrier", site, [&] {
      return fmt::format("{} comes to {} of {}, where no barrier was made", describeThread(), what,
                         sharedName(address));
    });
    return nullptr;
  }
  MBarrier &barrier = found->second;
  const Agent maker{barrier.maker / kWarpLanes, 1u << barrier.maker % kWarpLanes};
  if (grid->options.races && !races.clocks.isAfter(self(), maker, barrier.madeAt))
    report(
        "race", site,
        [&] {
          return fmt::format("{} comes to {} of {}, which thread {} made at {}, and nothing orders the two",
                             describeThread(), what, sharedName(address), threadInCta(barrier.maker),
                             place(barrier.site));
        },
        barrier.site.line, static_cast<int>(threadInCta(barrier.maker)));
  return &barrier;
}

void Cta::arriveAtBarrier(unsigned address, int bytes, Site site) {
  count(site);
  MBarrier *barrier = barrierAt(address, "mbarrier_arrive", site);
  if (!barrier)
    return;
  if (barrier->missing == 0) {
    report("mbarrier", site, [&] {
      return fmt::format("{} is one arrival more than the {} of phase {} of {}", describeThread(), barrier->arrivals,
                         barrier->phase, sharedName(address));
    });
    return;
  }
  if (bytes < 0 || barrier->bytes + bytes > kMostBytes) {
    report("mbarrier", site, [&] {
      return fmt::format("{} lets phase {} of {} expect {} bytes; it can be {}", describeThread(), barrier->phase,
                         sharedName(address), barrier->bytes + bytes, kMostBytes);
    });
    return;
  }
  races.clocks.arriveAlone(running->thread, barrier->open);
  barrier->bytes += bytes;
  --barrier->missing;
  advanceBarrier(address, *barrier);
}

/// Ends the open phase if nothing is missing, and wakes who waits for it.
void Cta::advanceBarrier(unsigned address, MBarrier &barrier) {
  if (barrier.missing || barrier.bytes)
    return;
  for (const BulkCopy &copy : loads)
    if (!copy.landed && copy.barrier == address && copy.phase == barrier.phase)
      found.add("byte-count", copy.site, [&] {
        return fmt::format("phase {} of {} completed while this copy was on its way: the phase expected too few bytes",
                           barrier.phase, sharedName(address));
      });
  races.clocks.joinQueue(barrier.open, barrier.queue, barrier.phase);
  barrier.completed = barrier.open;
  barrier.missing = barrier.arrivals;
  ++barrier.phase;
  for (unsigned t = 0; t < threads(); ++t) {
    Lane &lane = lanes[t];
    if (lane.waitsAt != address || !(lane.warp->atPhase & lane.bit) || barrier.phase % 2 == lane.waitsFor)
      continue;
    lane.warp->atPhase &= ~lane.bit;
    lane.warp->ready |= lane.bit;
  }
}

/// A fresh barrier's phase before the first counts as completed.
void Cta::waitAtBarrier(unsigned address, unsigned parity, Site site) {
  count(site);
  if (grid->options.landing == Options::Random)
    landSomeBulk();
  MBarrier *barrier = barrierAt(address, "mbarrier_wait", site);
  if (!barrier)
    return;
  if (parity > 1) {
    report("mbarrier", site, [&] {
      return fmt::format("{} waits for parity {} of {}; it is 0 or 1", describeThread(), parity, sharedName(address));
    });
    return;
  }
  if (barrier->phase % 2 == parity) {
    Lane &lane = *running;
    lane.waitsAt = address;
    lane.waitsFor = parity;
    lane.phaseSite = site;
    lane.warp->atPhase |= lane.bit;
    lane.warp->ready &= ~lane.bit;
    block();
  }
  barrier->waited = barrier->phase;
  races.clocks.learnAlone(running->thread, barrier->completed);
}

/// Of a barrier that somebody waits at: what its open phase lacks.
std::string Cta::missingAt(unsigned address) const {
  const MBarrier &barrier = barriers.at(address);
  std::string text = fmt::format("{} of {} arrivals", barrier.missing, barrier.arrivals);
  if (barrier.bytes)
    text += fmt::format(" and {} bytes", barrier.bytes);
  return text;
}

/// A shared address by its name in the launch, "k_full[1]", in a cluster "k_full[1] of CTA 0"; else the byte.
std::string Cta::sharedName(unsigned global) const {
  const unsigned address = inCta(global);
  const std::string cta = ofCta(static_cast<unsigned>(global / window));
  for (const SharedName &name : grid->launch.names) {
    const unsigned offset = address - name.offset;
    if (address < name.offset || offset >= name.count * name.bytes || offset % name.bytes)
      continue;
    return (name.count == 1 ? name.name : fmt::format("{}[{}]", name.name, offset / name.bytes)) + cta;
  }
  return fmt::format("the barrier at byte {}", address) + cta;
}

/// From the first barrier, bulk copy or product of a warp group on.
void Cta::refineClocks() { races.clocks.refine(threads()); }

} // namespace fagen::emulator
