// fagen: CTAs of a cluster: their barrier, arrivals in each other's shared memory, and how long that is there.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// To the barrier of a cluster warps come as a whole (barrier.cluster.*.aligned), and arrive before they wait. Threads
// that returned are not waited for.
#include "emulator/engine/Cta.h"

#include <fmt/format.h>

namespace fagen::emulator {

std::string Cta::ofCta(unsigned rank) const {
  return grid->launch.cluster == 1 ? "" : fmt::format(" of CTA {}", ctaIndex + rank);
}

void Cta::arriveAtCluster(Warp &warp) {
  if (warp.clusterArrivals > warp.clusterWaits) {
    report("barrier-mismatch", warp.site,
           [&] { return fmt::format("{} arrives at the cluster's barrier twice without a wait", describeThread()); });
    abandon();
  }
  ++warp.clusterArrivals;
  races.clocks.arrive(warp.index, clusterOpen);
  releaseCluster();
}

void Cta::waitAtCluster(Warp &warp) {
  if (warp.clusterArrivals == warp.clusterWaits) {
    report("barrier-mismatch", warp.site,
           [&] { return fmt::format("{} waits for the cluster, where it did not arrive", describeThread()); });
    abandon();
  }
  ++warp.clusterWaits;
  if (clusterPhase < warp.clusterArrivals)
    warp.heldAtCluster = true;
  else
    races.clocks.learn(warp.index, clusterDone);
}

/// Lets go if all warps that did not return have arrived once more than it did so far.
void Cta::releaseCluster() {
  bool hasAny = false;
  for (unsigned w = 0; w < warpCount; ++w) {
    if (warps[w].present == warps[w].exited)
      continue;
    if (warps[w].clusterArrivals <= clusterPhase)
      return;
    hasAny = true;
  }
  if (!hasAny)
    return;
  ++clusterPhase;
  clusterDone = std::move(clusterOpen);
  clusterOpen = {};
  for (unsigned w = 0; w < warpCount; ++w) {
    if (!warps[w].heldAtCluster)
      continue;
    races.clocks.learn(w, clusterDone);
    warps[w].heldAtCluster = false;
    warps[w].ready = ~0u;
  }
}

void Cta::arriveAtBarrierOf(unsigned rank, unsigned address, Site site) {
  if (rank >= clusterSize()) {
    count(site);
    report("mbarrier", site, [&] {
      return fmt::format("{} arrives in CTA {} of its cluster, which has {}", describeThread(), rank, clusterSize());
    });
    return;
  }
  const unsigned barrier = addressIn(rank, address);
  if (rank != this->rank()) {
    refineClocks();
    remoteArrivals[{rank, running->thread}] = {races.clocks.epoch(running->thread / kWarpLanes), barrier, site};
  }
  arriveAtBarrier(barrier, 0, site);
}

/// Whose shared memory is reached into may not end before: one of its threads must have been told of the access. Copies
/// are waited for, which reportUnwaitedBoxes() looks at.
void Cta::reportExitedCtas() {
  for (const auto &[key, arrival] : remoteArrivals) {
    const auto [rank, thread] = key;
    const auto agentOf = [](unsigned t) { return Agent{t / kWarpLanes, 1u << t % kWarpLanes}; };
    const unsigned first = rank * grid->launch.threads;
    bool isKnown = false;
    for (unsigned t = first; t < first + grid->launch.threads && !isKnown; ++t)
      isKnown = races.clocks.isAfter(agentOf(t), agentOf(thread), arrival.epoch);
    if (!isKnown)
      found.add("exited-cta", arrival.site,
                [&] {
                  return fmt::format(
                      "{} arrives at {}, which may have ended by then: none of its threads is told of it",
                      nameOf(agentOf(thread)), sharedName(arrival.barrier));
                },
                {.thread = static_cast<int>(threadInCta(thread))});
  }
}

} // namespace fagen::emulator
