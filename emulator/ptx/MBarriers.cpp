// fagen: barriers in shared memory that count arrivals and bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Single threads come to them, so from the first one on the clocks are those of threads. A wait that must wait blocks
// its thread; who else waits in a loop around it does not show. A GPU asks again and again, and sees one bit: a phase
// that could pass by unseen there is a finding, although the thread is woken here.
#include "emulator/engine/Cta.h"

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
  fresh.column = races.clocks.waits.addBarrier();
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
  advanceBarrier(address, *barrier, running->thread, site);
}

/// Ends the open phase if nothing is missing, by what the thread did at this place, and wakes who waits for it.
void Cta::advanceBarrier(unsigned address, MBarrier &barrier, unsigned thread, Site site) {
  if (barrier.missing || barrier.bytes)
    return;
  for (const BulkCopy &copy : loads)
    if (!copy.landed && copy.barrier == address && copy.phase == barrier.phase)
      found.add("byte-count", copy.site, [&] {
        return fmt::format("phase {} of {} completed while this copy was on its way: the phase expected too few bytes",
                           barrier.phase, sharedName(address));
      });
  for (const PassedWait &wait : barrier.passed)
    if (!WaitClocks::tells(barrier.open.waits, wait.thread, wait.passed))
      reportUnseen(address, int64_t(barrier.phase) - 1, wait.thread, wait.site, thread, site);
  barrier.passed.clear();
  races.clocks.joinQueue(barrier.open, barrier.queue, barrier.phase);
  WaitClocks::complete(barrier.open.waits, barrier.column, barrier.phase + 1);
  barrier.completed = barrier.open;
  barrier.completedFrom = thread;
  barrier.completedBy = site;
  barrier.missing = barrier.arrivals;
  ++barrier.phase;
  for (unsigned t = 0; t < threads(); ++t) {
    Lane &lane = lanes[t];
    if (lane.waitsAt != address || !(lane.warp->atPhase & lane.bit) || barrier.phase % 2 == lane.waitsFor)
      continue;
    lane.warp->atPhase &= ~lane.bit;
    lane.warp->ready |= lane.bit;
    pass(barrier, lane, lane.phaseSite);
  }
}

/// The phase with this parity that the running thread waits for: the first one that it does not know to be complete, or
/// the one before. -1: the phase before the first.
int64_t Cta::phaseMeant(const MBarrier &barrier, unsigned parity) const {
  const int64_t known = races.clocks.waits.phases(running->thread, barrier.column);
  return known % 2 == parity ? known : known - 1;
}

/// The lane goes on after the phase that completed last, and learns what that tells.
void Cta::pass(MBarrier &barrier, Lane &lane, Site site) {
  barrier.waited = barrier.phase;
  races.clocks.learnAlone(lane.thread, barrier.completed);
  barrier.passed.push_back({lane.thread, races.clocks.waits.pass(lane.thread), site});
}

/// The phase after the one that the thread `waiter` waits for completes, and nothing says that it has passed.
void Cta::reportUnseen(unsigned address, int64_t phase, unsigned waiter, Site wait, unsigned thread, Site site) {
  found.add("phase-unseen", wait,
            [&] {
              return fmt::format(
                  "{} waits for phase {} of {}, and nothing keeps phase {} from being complete before it has "
                  "seen that: thread {} completes it at {}",
                  nameOf({waiter / kWarpLanes, 1u << waiter % kWarpLanes}), phase, sharedName(address), phase + 1,
                  threadInCta(thread), place(site));
            },
            {site.line, static_cast<int>(threadInCta(waiter)), static_cast<int>(threadInCta(thread))});
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
  Lane &lane = *running;
  if (const int64_t meant = phaseMeant(*barrier, parity); barrier->phase > meant + 1)
    reportUnseen(address, meant, lane.thread, site, barrier->completedFrom, barrier->completedBy);
  if (barrier->phase % 2 == parity) {
    lane.waitsAt = address;
    lane.waitsFor = parity;
    lane.phaseSite = site;
    lane.warp->atPhase |= lane.bit;
    lane.warp->ready &= ~lane.bit;
    block(); // advanceBarrier() passes for it
  } else {
    pass(*barrier, lane, site);
  }
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
