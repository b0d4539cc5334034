// fagen: barriers of the CTA, and of some of its warps by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// To a named barrier warps come as a whole (barrier.cta.*.aligned): comeToBarrier() is done by the last lane for all.
#include "emulator/engine/Cta.h"

#include <bit>
#include <fmt/format.h>

namespace fagen::emulator {

void Cta::ctaBarrier(Site site) {
  count(site);
  if (grid->options.landing == Options::Random)
    landSome(*running);
  Warp &warp = *running->warp;
  requireSameBarrier(warp, site);
  running->barrierSite = site;
  warp.atBarrier |= running->bit;
  warp.ready &= ~running->bit;
  CtaCounts &cta = ctas[rank()];
  if (++cta.atBarrier == cta.live) {
    releaseBarrier(rank());
    perhapsYield();
  } else {
    block();
  }
}

/// A warp comes to a barrier of the CTA as a whole (barrier.cta.*.aligned): its lanes wait at one place.
void Cta::requireSameBarrier(const Warp &warp, Site site) {
  if (!warp.atBarrier)
    return;
  const Lane &other = lanes[warp.index * kWarpLanes + std::countr_zero(warp.atBarrier)];
  if (other.barrierSite.line == site.line)
    return;
  report(
      "lane-mismatch", site,
      [&] {
        return fmt::format("{} comes to cta_barrier, but other lanes of its warp wait in cta_barrier at {}",
                           describeThread(), place(other.barrierSite));
      },
      other.barrierSite.line, static_cast<int>(other.thread));
  abandon();
}

/// All threads that did not return are there. Those that returned have left the count, as on the GPU.
void Cta::releaseBarrier(unsigned cta) {
  Clocks::Joined joined;
  const unsigned first = cta * ctaWarps, end = first + ctaWarps;
  for (unsigned w = first; w < end; ++w)
    if (warps[w].atBarrier)
      races.clocks.arrive(w, joined);
  for (unsigned w = first; w < end; ++w) {
    if (warps[w].atBarrier)
      races.clocks.learn(w, joined);
    warps[w].ready |= warps[w].atBarrier;
    warps[w].atBarrier = 0;
    if (grid->options.banks)
      banks.meet(w);
  }
  ctas[cta].atBarrier = 0;
}

unsigned NamedBarrier::count() const { return static_cast<unsigned>(std::popcount(come)) * kWarpLanes; }

/// What is wrong with a warp's coming; empty when nothing is.
std::string Cta::refusalAtBarrier(const Warp &warp) const {
  const Operands &first = warp.operands[0];
  const int id = static_cast<int>(first.b0), threads = static_cast<int>(first.b1);
  for (const Operands &own : warp.operands)
    if (own.b0 != first.b0 || own.b1 != first.b1)
      return "its lanes give different numbers";
  if (id < 1 || id >= static_cast<int>(kNamedBarriers))
    return fmt::format("named barriers are 1 to {}, there is no {}", kNamedBarriers - 1, id);
  if (threads < 1 || threads % static_cast<int>(kWarpLanes) != 0 || threads > static_cast<int>(grid->launch.threads))
    return fmt::format("{} threads are not 1 to {} whole warps", threads, ctaWarps);
  const NamedBarrier &barrier = named[warp.index / ctaWarps * kNamedBarriers + static_cast<unsigned>(id)];
  if (barrier.come && barrier.threads != static_cast<unsigned>(threads))
    return fmt::format("it expects {} threads at barrier {}, those who came before {}", threads, id, barrier.threads);
  if (barrier.come >> warp.index & 1)
    return fmt::format("it came to barrier {} before, and only {} of {} threads did since", id, barrier.count(),
                       barrier.threads);
  return {};
}

void Cta::comeToBarrier(Warp &warp) {
  if (const std::string refusal = refusalAtBarrier(warp); !refusal.empty()) {
    report("barrier-mismatch", warp.site, [&] {
      return fmt::format("warp {} of CTA {} at {}: {}", warpInCta(warp.index), ctaOfWarp(warp.index), place(warp.site),
                         refusal);
    });
    abandon();
  }
  const unsigned id = warp.index / ctaWarps * kNamedBarriers + warp.operands[0].b0;
  NamedBarrier &barrier = named[id];
  barrier.threads = warp.operands[0].b1;
  barrier.come |= 1u << warp.index;
  races.clocks.arrive(warp.index, barrier.joined);
  if (warp.collective == Collective::kNamedBarrier)
    warp.heldAt = id;
  if (barrier.count() < barrier.threads)
    return;
  for (unsigned w = 0; w < warpCount; ++w) {
    if (warps[w].heldAt != id)
      continue;
    races.clocks.learn(w, barrier.joined);
    if (grid->options.banks)
      banks.meet(w);
    warps[w].heldAt = 0;
    warps[w].ready = ~0u;
  }
  barrier = {};
}

} // namespace fagen::emulator
