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
  if (writes.size() < granules)
    writes.resize(granules);
  if (warps != warpCount) // records are laid out by the number of warps
    reads.assign(std::max(reads.size(), granules * warps), {});
  else if (reads.size() < granules * warps)
    reads.resize(granules * warps);
  warpCount = warps;
}

std::optional<Race> SharedRaces::read(Agent agent, unsigned address, unsigned bytes, int line) {
  std::optional<Race> race;
  const uint32_t epoch = clocks.epoch(agent.warp);
  for (unsigned g = address / kGranuleBytes; g < (address + bytes) / kGranuleBytes; ++g) {
    Record &own = reads[g * warpCount + agent.warp];
    const Write &last = writes[g];
    if (isLive(last) && !race && !clocks.isAfter(agent, {last.warp, last.lanes}, last.epoch))
      race = Race{RaceKind::kReadAfterWrite, {last.warp, last.lanes}, last.line, g * kGranuleBytes};
    if (own.epoch == epoch && (own.lanes & agent.lanes) == agent.lanes)
      continue; // the line stays that of the access by which these lanes became known
    own.lanes = own.epoch == epoch ? own.lanes | agent.lanes : agent.lanes;
    own.epoch = epoch;
    own.line = line;
  }
  return race;
}

std::optional<Race> SharedRaces::write(Agent agent, unsigned address, unsigned bytes, int line) {
  std::optional<Race> race;
  for (unsigned g = address / kGranuleBytes; g < (address + bytes) / kGranuleBytes; ++g) {
    Write &last = writes[g];
    if (isLive(last) && !race && !clocks.isAfter(agent, {last.warp, last.lanes}, last.epoch))
      race = Race{RaceKind::kWriteAfterWrite, {last.warp, last.lanes}, last.line, g * kGranuleBytes};
    for (unsigned w = 0; w < warpCount && !race; ++w) {
      const Record &other = reads[g * warpCount + w];
      if (isLive(other) && !clocks.isAfter(agent, {w, other.lanes}, other.epoch))
        race = Race{RaceKind::kWriteAfterRead, {w, other.lanes}, other.line, g * kGranuleBytes};
    }
    last.epoch = clocks.epoch(agent.warp);
    last.lanes = agent.lanes;
    last.warp = agent.warp;
    last.line = line;
  }
  return race;
}

GlobalRaces::GlobalRaces(const void *begin, size_t bytes)
    : begin(static_cast<const unsigned char *>(begin)), count((bytes + 1) / SharedRaces::kGranuleBytes),
      granules(std::make_unique<Granule[]>(count)) {}

std::optional<GlobalRaces::Meeting> GlobalRaces::meet(RaceKind kind, uint64_t other, uint32_t epoch, int line,
                                                      const Place &who, const Clocks &clocks, size_t granule) const {
  if (other == 0)
    return std::nullopt;
  const unsigned cta = static_cast<unsigned>(other >> 32) - 1, thread = static_cast<unsigned>(other);
  const auto agent = [](unsigned t) { return Agent{t / 32, uint32_t(1) << t % 32}; };
  if (cta == who.cta && clocks.isAfter(agent(who.thread), agent(thread), epoch))
    return std::nullopt;
  return Meeting{kind, {cta, thread, line}, granule * SharedRaces::kGranuleBytes};
}

std::optional<GlobalRaces::Meeting> GlobalRaces::access(bool isWrite, const Place &who, const Clocks &clocks,
                                                        const void *address, unsigned bytes) {
  std::optional<Meeting> found;
  const uint64_t self = uint64_t(who.cta + 1) << 32 | who.thread;
  const uint32_t epoch = clocks.epoch(who.thread / 32);
  const size_t first = static_cast<size_t>(static_cast<const unsigned char *>(address) - begin);
  for (size_t g = first / SharedRaces::kGranuleBytes; g < (first + bytes) / SharedRaces::kGranuleBytes; ++g) {
    Granule &granule = granules[g];
    const uint64_t writer = isWrite ? granule.writer.exchange(self) : granule.writer.load();
    if (!found)
      found = meet(isWrite ? RaceKind::kWriteAfterWrite : RaceKind::kReadAfterWrite, writer, granule.writerEpoch,
                   granule.writerLine, who, clocks, g);
    if (isWrite && !found)
      found = meet(RaceKind::kWriteAfterRead, granule.reader, granule.readerEpoch, granule.readerLine, who, clocks, g);
    (isWrite ? granule.writerEpoch : granule.readerEpoch) = epoch;
    (isWrite ? granule.writerLine : granule.readerLine) = who.line;
    if (!isWrite)
      granule.reader = self;
  }
  return found;
}

} // namespace fagen::emulator
