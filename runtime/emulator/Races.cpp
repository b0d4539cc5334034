// fagen: which accesses to the same bytes nothing orders.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Races.h"

#include <algorithm>

namespace fagen::emulator {

const char *raceName(RaceKind kind) {
  switch (kind) {
  case RaceKind::kReadAfterWrite:
    return "RAW";
  case RaceKind::kWriteAfterRead:
    return "WAR";
  case RaceKind::kWriteAfterWrite:
    return "WAW";
  }
  return "";
}

void Clocks::begin(unsigned warps) {
  for (unsigned w = 0; w < kWarps; ++w)
    firstEpoch = std::max(firstEpoch, epochs[w] + 1);
  std::fill_n(epochs, kWarps, firstEpoch);
  std::fill_n(known, kWarps * std::max(1u, std::min(warps, kWarps)), firstEpoch - 1);
}

void Clocks::barrier(uint32_t warps) {
  uint32_t joined[kWarps] = {};
  for (unsigned w = 0; w < kWarps; ++w) {
    if (!(warps >> w & 1))
      continue;
    for (unsigned v = 0; v < kWarps; ++v)
      joined[v] = std::max(joined[v], known[w * kWarps + v]);
    joined[w] = std::max(joined[w], epochs[w]);
  }
  for (unsigned w = 0; w < kWarps; ++w) {
    if (!(warps >> w & 1))
      continue;
    std::copy_n(joined, kWarps, &known[w * kWarps]);
    ++epochs[w];
  }
}

void SharedRaces::begin(unsigned warps, size_t sharedBytes) {
  clocks.begin(warps);
  const size_t granules = (sharedBytes + kGranuleBytes - 1) / kGranuleBytes;
  warpCount = warps;
  if (writes.size() < granules)
    writes.resize(granules);
  if (reads.size() < warps)
    reads.resize(warps);
  for (unsigned w = 0; w < warps; ++w)
    if (reads[w].size() < granules)
      reads[w].resize(granules);
}

std::optional<Race> SharedRaces::read(Agent agent, unsigned address, unsigned bytes, int line) {
  std::optional<Race> race;
  const uint32_t epoch = clocks.epoch(agent.warp);
  const Write *ordered = nullptr; // the write that the access was last seen to come after
  for (unsigned g = address / kGranuleBytes; g < (address + bytes) / kGranuleBytes; ++g) {
    const Write &last = writes[g];
    if (!(ordered && last.isOfSameAs(*ordered)) && !race) {
      if (isLive(last) && !clocks.isAfter(agent, {last.warp, last.lanes}, last.epoch))
        race = Race{RaceKind::kReadAfterWrite, {last.warp, last.lanes}, last.line, g * kGranuleBytes};
      ordered = &last;
    }
    Record &own = reads[agent.warp][g];
    own.lanes = own.epoch == epoch ? own.lanes | agent.lanes : agent.lanes;
    own.epoch = epoch;
    own.line = line;
  }
  return race;
}

std::optional<Race> SharedRaces::write(Agent agent, unsigned address, unsigned bytes, int line) {
  const unsigned first = address / kGranuleBytes, end = (address + bytes) / kGranuleBytes;
  std::optional<Race> race;
  for (unsigned g = first; g < end && !race; ++g)
    if (const Write &last = writes[g]; isLive(last) && !clocks.isAfter(agent, {last.warp, last.lanes}, last.epoch))
      race = Race{RaceKind::kWriteAfterWrite, {last.warp, last.lanes}, last.line, g * kGranuleBytes};
  for (unsigned w = 0; w < warpCount; ++w)
    for (unsigned g = first; g < end && !race; ++g)
      if (const Record &other = reads[w][g]; isLive(other) && !clocks.isAfter(agent, {w, other.lanes}, other.epoch))
        race = Race{RaceKind::kWriteAfterRead, {w, other.lanes}, other.line, g * kGranuleBytes};
  for (unsigned g = first; g < end; ++g) {
    Write &own = writes[g];
    own.epoch = clocks.epoch(agent.warp);
    own.lanes = agent.lanes;
    own.warp = agent.warp;
    own.line = line;
  }
  return race;
}

GlobalRaces::GlobalRaces(const void *begin, size_t bytes)
    : begin(static_cast<const unsigned char *>(begin)), chunks(bytes / SharedRaces::kGranuleBytes / kChunk + 1) {}

GlobalRaces::~GlobalRaces() {
  for (const std::atomic<Granule *> &chunk : chunks)
    delete[] chunk.load();
}

GlobalRaces::Granule &GlobalRaces::granuleAt(size_t index) {
  std::atomic<Granule *> &chunk = chunks[index / kChunk];
  Granule *granules = chunk.load(std::memory_order_acquire);
  if (!granules) [[unlikely]] {
    Granule *fresh = new Granule[kChunk];
    if (chunk.compare_exchange_strong(granules, fresh))
      granules = fresh;
    else
      delete[] fresh; // another CTA was faster
  }
  return granules[index % kChunk];
}

/// What one that touched a granule meets in an earlier one.
std::optional<GlobalRaces::Meeting> GlobalRaces::meet(RaceKind kind, const Touch &other, const Place &who,
                                                      const Clocks &clocks, size_t granule) const {
  const uint64_t by = other.by.load();
  if (by == 0)
    return std::nullopt;
  const unsigned cta = static_cast<unsigned>(by >> 32) - 1, thread = static_cast<unsigned>(by);
  const auto agent = [](unsigned t) { return Agent{t / 32, uint32_t(1) << t % 32}; };
  if (cta == who.cta && clocks.isAfter(agent(who.thread), agent(thread), other.epoch))
    return std::nullopt;
  return Meeting{kind, {cta, thread, other.line}, granule * SharedRaces::kGranuleBytes};
}

std::optional<GlobalRaces::Meeting> GlobalRaces::access(bool isWrite, const Place &who, const Clocks &clocks,
                                                        const void *address, unsigned bytes) {
  std::optional<Meeting> found;
  const uint64_t self = uint64_t(who.cta + 1) << 32 | who.thread;
  const uint32_t epoch = clocks.epoch(who.thread / 32);
  const size_t first = static_cast<size_t>(static_cast<const unsigned char *>(address) - begin);
  for (size_t g = first / SharedRaces::kGranuleBytes; g < (first + bytes) / SharedRaces::kGranuleBytes; ++g) {
    Granule &granule = granuleAt(g);
    // Each first leaves its own trace and then looks for others': of two CTAs at least one sees the other.
    Touch &own = isWrite ? granule.writer : granule.reader;
    const Touch before(own);
    const uint64_t by = own.by.exchange(self);
    own.epoch = epoch;
    own.line = who.line;
    if (isWrite) {
      if (by != 0 && !found)
        found = meet(RaceKind::kWriteAfterWrite, Touch(before, by), who, clocks, g);
      for (const Touch *reader : {&granule.reader, &granule.readerElsewhere})
        if (!found)
          found = meet(RaceKind::kWriteAfterRead, *reader, who, clocks, g);
      continue;
    }
    if (by != 0 && by >> 32 != self >> 32)
      granule.readerElsewhere.set(Touch(before, by));
    if (!found)
      found = meet(RaceKind::kReadAfterWrite, granule.writer, who, clocks, g);
  }
  return found;
}

} // namespace fagen::emulator
