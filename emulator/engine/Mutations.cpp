// fagen: barriers and waits that are left out, weakened or moved while a kernel runs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Mutations.h"

#include "Cta.h"

namespace fagen::emulator {

void Mutator::begin(const std::vector<Mutation> &given, unsigned threads) {
  mutations = given;
  states.assign(threads * mutations.size(), {});
  lastLines.assign(mutations.empty() ? 0 : threads, 0);
}

void Mutator::perform(Cta &cta, const Mutation &mutation, Site site) {
  site.line = mutation.line;
  switch (mutation.call) {
  case Mutation::CopyWait:
    return cta.waitForCopies(mutation.pending, site);
  case Mutation::CtaBarrier:
    return cta.ctaBarrier(site);
  case Mutation::WarpBarrier:
    return cta.meet(Collective::kWarpBarrier, {}, site);
  case Mutation::NamedBarrier:
    return cta.meet(Collective::kNamedBarrier, {.b0 = mutation.barrier, .b1 = mutation.threads}, site);
  case Mutation::NamedBarrierArrive:
    return cta.meet(Collective::kNamedBarrierArrive, {.b0 = mutation.barrier, .b1 = mutation.threads}, site);
  }
}

void Mutator::passBy(Cta &cta, Site site) {
  const unsigned thread = cta.threadOfCluster();
  const int last = lastLines[thread];
  lastLines[thread] = site.line;
  for (size_t i = 0; i < mutations.size(); ++i) {
    const Mutation &mutation = mutations[i];
    if (mutation.action != Mutation::Move)
      continue;
    State &state = states[thread * mutations.size() + i];
    if (mutation.later ? state.isDue && site.line != mutation.target
                       : site.line == mutation.target && last != mutation.target) {
      state = {false, !mutation.later};
      perform(cta, mutation, site);
    }
  }
}

bool Mutator::replaces(Cta &cta, Site site) {
  const unsigned thread = cta.threadOfCluster();
  for (size_t i = 0; i < mutations.size(); ++i) {
    const Mutation &mutation = mutations[i];
    if (mutation.line != site.line)
      continue;
    State &state = states[thread * mutations.size() + i];
    switch (mutation.action) {
    case Mutation::Disable:
      return true;
    case Mutation::Weaken:
      if (mutation.call == Mutation::CopyWait)
        cta.waitForCopies(mutation.pending, site);
      else if (mutation.call != Mutation::NamedBarrierArrive)
        cta.meet(Collective::kWarpBarrier, {}, site);
      return true;
    case Mutation::Move:
      if (mutation.later) {
        state.isDue = true;
        return true;
      }
      if (!state.isDone)
        return false; // nothing came from the target this time
      state.isDone = false;
      return true;
    }
  }
  return false;
}

} // namespace fagen::emulator
