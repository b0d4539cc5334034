// fagen: which accesses to the same bytes nothing orders.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Races.h"

#include <algorithm>
#include <bit>

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

void Clocks::arrive(unsigned warp, Joined &joined) {
  for (unsigned v = 0; v < kWarps; ++v)
    joined.epochs[v] = std::max(joined.epochs[v], known[warp * kWarps + v]);
  joined.epochs[warp] = epochs[warp]++;
}

void Clocks::learn(unsigned warp, const Joined &joined) {
  for (unsigned v = 0; v < kWarps; ++v)
    known[warp * kWarps + v] = std::max(known[warp * kWarps + v], joined.epochs[v]);
}

void SharedRaces::Pieces::reserve(unsigned warps, size_t count) {
  if (writes.size() < count) {
    writes.resize(count);
    readers.resize(count);
  }
  if (reads.size() < warps)
    reads.resize(warps);
  for (std::vector<Record> &ofWarp : reads)
    if (ofWarp.size() < count)
      ofWarp.resize(count);
}

void SharedRaces::begin(unsigned warps, size_t sharedBytes) {
  clocks.begin(warps);
  const size_t count = (sharedBytes + kBlockBytes - 1) / kBlockBytes;
  blocks.reserve(warps, count);
  granules.reserve(warps, count * (kBlockBytes / kGranuleBytes));
  isSplit.assign(count, false);
}

inline void SharedRaces::readPiece(Pieces &pieces, size_t index, Agent agent, int line, std::optional<Race> &race) {
  const Write &last = pieces.writes[index];
  if (!isOrdered(agent, {last.warp, last.lanes}, last.epoch) && !race) [[unlikely]]
    race = Race{
        RaceKind::kReadAfterWrite, {last.warp, last.lanes}, last.line, static_cast<unsigned>(index) * pieces.bytes};
  pieces.readers[index] |= uint32_t(1) << agent.warp;
  Record &own = pieces.reads[agent.warp][index];
  own = {clocks.epoch(agent.warp), own.epoch > clocks.met(agent.warp) ? own.lanes | agent.lanes : agent.lanes, line};
}

inline void SharedRaces::checkWrite(const Pieces &pieces, size_t index, Agent agent, std::optional<Race> &race) const {
  const unsigned address = static_cast<unsigned>(index) * pieces.bytes;
  const Write &last = pieces.writes[index];
  if (!isOrdered(agent, {last.warp, last.lanes}, last.epoch) && !race)
    race = Race{RaceKind::kWriteAfterWrite, {last.warp, last.lanes}, last.line, address};
  for (uint32_t open = pieces.readers[index]; open && !race; open &= open - 1) {
    const unsigned warp = static_cast<unsigned>(std::countr_zero(open));
    const Record &other = pieces.reads[warp][index];
    if (!isOrdered(agent, {warp, other.lanes}, other.epoch))
      race = Race{RaceKind::kWriteAfterRead, {warp, other.lanes}, other.line, address};
  }
}

/// Who comes after this write comes after the reads before it, or else is in a race with it: they are forgotten.
inline void SharedRaces::writePiece(Pieces &pieces, size_t index, Agent agent, int line) const {
  pieces.readers[index] = 0;
  pieces.writes[index] = {{clocks.epoch(agent.warp), agent.lanes, line}, agent.warp};
}

/// From now on each granule of the block goes its own way.
void SharedRaces::split(size_t block) {
  constexpr size_t kGranules = kBlockBytes / kGranuleBytes;
  isSplit[block] = true;
  for (size_t g = kGranules * block; g < kGranules * (block + 1); ++g) {
    granules.writes[g] = blocks.writes[block];
    granules.readers[g] = blocks.readers[block];
    for (uint32_t open = blocks.readers[block]; open; open &= open - 1) {
      const size_t warp = static_cast<size_t>(std::countr_zero(open));
      granules.reads[warp][g] = blocks.reads[warp][block];
    }
  }
}

std::optional<Race> SharedRaces::read(Agent agent, unsigned address, unsigned bytes, int line) {
  std::optional<Race> race;
  const size_t block = address / kBlockBytes;
  if (!isSplit[block]) {
    if (bytes == kBlockBytes) {
      readPiece(blocks, block, agent, line, race);
      return race;
    }
    split(block);
  }
  for (unsigned g = address / kGranuleBytes; g < (address + bytes) / kGranuleBytes; ++g)
    readPiece(granules, g, agent, line, race);
  return race;
}

std::optional<Race> SharedRaces::write(Agent agent, unsigned address, unsigned bytes, int line) {
  std::optional<Race> race;
  const size_t block = address / kBlockBytes;
  const bool isWhole = bytes == kBlockBytes;
  if (isSplit[block] || !isWhole) {
    if (!isSplit[block])
      split(block);
    for (unsigned g = address / kGranuleBytes; g < (address + bytes) / kGranuleBytes; ++g) {
      checkWrite(granules, g, agent, race);
      if (!isWhole)
        writePiece(granules, g, agent, line);
    }
  } else {
    checkWrite(blocks, block, agent, race);
  }
  if (isWhole) {
    isSplit[block] = false;
    writePiece(blocks, block, agent, line);
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
