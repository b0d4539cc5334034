// fagen: asynchronous copies between issue and wait.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From issue to the wait that completes it a copy's target is pending: whoever touches it is reported, whenever the
// copy lands. Landing late also poisons the target at issue, so that a missing wait shows in the results as well.
#include "emulator/engine/Cta.h"

#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

namespace fagen::emulator {

void Cta::issueCopy(unsigned target, const void *source, unsigned bytes, bool valid, Site site) {
  count(site);
  if (valid)
    requireAwaited(site);
  const bool readable = !valid || checkGlobal(Access::kRead, source, bytes, site);
  if (!checkShared(Access::kWrite, target, bytes, site))
    return;
  checkRace(Access::kWrite, self(), target, bytes, site);
  Copy copy = {valid && readable ? source : nullptr, target, bytes, site, false, !readable};
  std::memset(&state[target], kCopyPending, bytes);
  if (grid->options.landing == Options::Earliest)
    land(copy);
  else if (grid->options.landing == Options::Latest)
    std::memset(shared + target, 0xff, bytes);
  running->copies.push_back(copy);
}

void Cta::land(Copy &copy) {
  unsigned char *target = shared + copy.target;
  if (copy.source)
    std::memcpy(target, copy.source, copy.bytes);
  else
    std::memset(target, copy.poisoned ? 0xff : 0, copy.bytes);
  copy.landed = true;
}

/// Of a lane's outstanding copies each lands with a chance of one in four.
void Cta::landSome(Lane &lane) {
  for (size_t i = lane.firstCopy; i < lane.copies.size(); ++i)
    if (!lane.copies[i].landed && random() % 4 == 0)
      land(lane.copies[i]);
}

void Cta::commitCopies(Site site) {
  count(site);
  if (grid->options.landing == Options::Random)
    landSome(*running);
  running->groupEnds.push_back(running->copies.size());
}

void Cta::waitForCopies(unsigned pending, Site site) {
  count(site);
  Lane &lane = *running;
  const size_t groups = lane.groupEnds.size() - lane.firstGroup;
  if (groups <= pending)
    return;
  lane.firstGroup = lane.groupEnds.size() - pending;
  complete(lane, lane.groupEnds[lane.firstGroup - 1]);
}

/// Copies before `end` are waited for. Once most of the list is past, it is cut.
void Cta::complete(Lane &lane, size_t end) {
  for (; lane.firstCopy < end; ++lane.firstCopy) {
    Copy &copy = lane.copies[lane.firstCopy];
    if (!copy.landed)
      land(copy);
    std::memset(&state[copy.target], kWritten, copy.bytes);
    checkRace(Access::kWrite, {lane.thread / kWarpLanes, lane.bit}, copy.target, copy.bytes, copy.site);
  }
  if (end < 64 || end < lane.copies.size() / 2)
    return;
  lane.copies.erase(lane.copies.begin(), lane.copies.begin() + static_cast<ptrdiff_t>(end));
  lane.groupEnds.erase(lane.groupEnds.begin(), lane.groupEnds.begin() + static_cast<ptrdiff_t>(lane.firstGroup));
  for (size_t &groupEnd : lane.groupEnds)
    groupEnd -= end;
  lane.firstCopy = lane.firstGroup = 0;
}

/// Copies that fetch nothing are let pass: a kernel may leave the last, empty steps of its pipeline unwaited.
void Cta::reportUnwaitedCopies() {
  for (unsigned t = 0; t < threads(); ++t) {
    Lane &lane = lanes[t];
    for (size_t i = lane.firstCopy; i < lane.copies.size(); ++i) {
      const Copy &copy = lane.copies[i];
      if (!copy.source && !copy.poisoned)
        continue;
      found.add("copy-never-waited", copy.site,
                [&] {
                  return fmt::format(
                      "thread {} of CTA {} returned without waiting for its copy of {} bytes to shared address {}",
                      threadInCta(t), ctaOfWarp(t / kWarpLanes), copy.bytes, inCta(copy.target));
                },
                {.thread = static_cast<int>(threadInCta(t))});
    }
  }
}

/// There is one: bytes are pending from a copy's issue to its completion.
Cta::Pending Cta::findPending(unsigned address, unsigned bytes) const {
  if (const BulkCopy *box = findPendingBox(address))
    return {box->thread, box->site};
  for (unsigned t = 0; t < threads(); ++t)
    for (size_t i = lanes[t].firstCopy; i < lanes[t].copies.size(); ++i) {
      const Copy &copy = lanes[t].copies[i];
      if (copy.target < address + bytes && address < copy.target + copy.bytes)
        return {threadInCta(t), copy.site};
    }
  std::abort();
}

} // namespace fagen::emulator
