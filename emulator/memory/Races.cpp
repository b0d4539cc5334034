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
  case RaceKind::kUnfenced:
    return "no proxy fence";
  }
  return "";
}

void SharedRaces::Pieces::reserve(unsigned warps, size_t count) {
  if (writes.size() < count) {
    writes.resize(count);
    readers.resize(count);
  }
  if (reads.size() < Clocks::kWarps + kReadQueues)
    reads.resize(Clocks::kWarps + kReadQueues);
  for (unsigned w = 0; w < warps; ++w)
    if (reads[w].size() < count)
      reads[w].resize(count);
}

/// Queues get their place when they first read.
inline SharedRaces::Record &SharedRaces::Pieces::readOf(unsigned agent, size_t index) {
  if (reads[agent].size() < writes.size()) [[unlikely]]
    reads[agent].resize(writes.size());
  return reads[agent][index];
}

void SharedRaces::begin(unsigned warps, size_t sharedBytes) {
  clocks.begin(warps);
  const size_t count = (sharedBytes + kBlockBytes - 1) / kBlockBytes;
  blocks.reserve(warps, count);
  granules.reserve(warps, count * (kBlockBytes / kGranuleBytes));
  isSplit.assign(count, false);
  mixed.clear();
  for (std::vector<Fence> &ofThread : fences)
    ofThread.clear();
}

uint64_t SharedRaces::mixedKey(const Pieces &pieces, size_t index, unsigned warp) const {
  return (static_cast<uint64_t>(index) << 6 | warp) << 1 | (pieces.bytes == kGranuleBytes);
}

/// The agent's read joins those of its warp's other lanes that nothing has ordered before it.
inline void SharedRaces::addRead(const Pieces &pieces, size_t index, Agent agent, Record &own) {
  const uint32_t epoch = clocks.epoch(agent.warp);
  if (own.epoch <= clocks.met(agent.warp) || (own.lanes & ~agent.lanes) == 0) {
    own = {epoch, agent.lanes, own.line};
    return;
  }
  if (!own.isMixed && (own.epoch == epoch || !clocks.isFine())) {
    own = {epoch, own.lanes | agent.lanes, own.line};
    return;
  }
  LaneEpochs &epochs = mixed[mixedKey(pieces, index, agent.warp)];
  if (!own.isMixed)
    epochs.fill(own.epoch);
  for (uint32_t lanes = agent.lanes; lanes; lanes &= lanes - 1)
    epochs[static_cast<size_t>(std::countr_zero(lanes))] = epoch;
  own = {epoch, own.lanes | agent.lanes, own.line, true};
}

inline void SharedRaces::readPiece(Pieces &pieces, size_t index, Agent agent, int line, std::optional<Race> &race) {
  const Write &last = pieces.writes[index];
  if (!isOrdered(agent, {last.warp, last.lanes}, last.epoch) && !race) [[unlikely]]
    race = Race{
        RaceKind::kReadAfterWrite, {last.warp, last.lanes}, last.line, static_cast<unsigned>(index) * pieces.bytes};
  pieces.readers[index] |= uint64_t(1) << agent.warp;
  Record &own = pieces.reads[agent.warp][index];
  addRead(pieces, index, agent, own);
  own.line = line;
}

inline bool SharedRaces::isReadOrdered(const Pieces &pieces, size_t index, Agent agent, unsigned reader,
                                       const Record &read) const {
  if (!read.isMixed) [[likely]]
    return isOrdered(agent, {reader, read.lanes}, read.epoch);
  const auto epochs = mixed.find(mixedKey(pieces, index, reader));
  if (epochs == mixed.end())
    return true; // of an older CTA
  for (uint32_t lanes = read.lanes; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<size_t>(std::countr_zero(lanes));
    if (!isOrdered(agent, {reader, uint32_t(1) << lane}, epochs->second[lane]))
      return false;
  }
  return true;
}

inline void SharedRaces::checkWrite(const Pieces &pieces, size_t index, Agent agent, std::optional<Race> &race) const {
  const unsigned address = static_cast<unsigned>(index) * pieces.bytes;
  const Write &last = pieces.writes[index];
  if (!isOrdered(agent, {last.warp, last.lanes}, last.epoch) && !race)
    race = Race{RaceKind::kWriteAfterWrite, {last.warp, last.lanes}, last.line, address};
  for (uint64_t open = pieces.readers[index]; open && !race; open &= open - 1) {
    const unsigned reader = static_cast<unsigned>(std::countr_zero(open));
    const Record &other = pieces.reads[reader][index];
    if (!isReadOrdered(pieces, index, agent, reader, other))
      race = Race{RaceKind::kWriteAfterRead, {reader, other.lanes}, other.line, address};
  }
}

/// Who comes after this write comes after the reads before it, or else is in a race with it: they are forgotten.
inline void SharedRaces::writePiece(Pieces &pieces, size_t index, Agent agent, int line) const {
  pieces.readers[index] = 0;
  pieces.writes[index] = {{clocks.epoch(agent.warp), agent.lanes, line}, agent.warp, fenceCounts[agent.warp]};
}

void SharedRaces::fenceProxy(unsigned thread) {
  if (fences.size() <= thread)
    fences.resize(thread + 1);
  const unsigned warp = thread / 32;
  fences[thread].push_back({++fenceCounts[warp], clocks.epoch(warp)});
}

/// Whether each lane that wrote made a proxy fence later, and the agent has been told of it.
bool SharedRaces::isFenced(Agent agent, const Write &write) const {
  if (write.epoch < clocks.first() || write.warp >= Clocks::kFirstQueue)
    return true;
  for (uint32_t lanes = write.lanes; lanes; lanes &= lanes - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(lanes)), thread = write.warp * 32 + lane;
    if (thread >= fences.size())
      return false;
    const std::vector<Fence> &own = fences[thread];
    const auto next = std::upper_bound(own.begin(), own.end(), write.fences,
                                       [](uint32_t number, const Fence &fence) { return number < fence.number; });
    if (next == own.end() || !clocks.isAfter(agent, {write.warp, uint32_t(1) << lane}, next->epoch))
      return false;
  }
  return true;
}

inline void SharedRaces::checkProxy(const Pieces &pieces, size_t index, Agent agent, std::optional<Race> &race) const {
  const Write &last = pieces.writes[index];
  if (!race && !isFenced(agent, last))
    race = Race{RaceKind::kUnfenced, {last.warp, last.lanes}, last.line, static_cast<unsigned>(index) * pieces.bytes};
}

/// Calls visit(pieces, index) for the block, or for its granules once it is split.
template <class Visit> void SharedRaces::forPieces(size_t block, Visit visit) {
  if (!isSplit[block])
    return visit(blocks, block);
  constexpr size_t kGranules = kBlockBytes / kGranuleBytes;
  for (size_t g = kGranules * block; g < kGranules * (block + 1); ++g)
    visit(granules, g);
}

std::optional<Race> SharedRaces::readBlock(const Asynchronous &access, unsigned address) {
  std::optional<Race> race;
  const unsigned reader = Clocks::kFirstQueue + access.queue;
  forPieces(address / kBlockBytes, [&](Pieces &pieces, size_t index) {
    const Write &last = pieces.writes[index];
    if (!race && !isOrdered(access.issuer, {last.warp, last.lanes}, last.epoch))
      race = Race{
          RaceKind::kReadAfterWrite, {last.warp, last.lanes}, last.line, static_cast<unsigned>(index) * pieces.bytes};
    checkProxy(pieces, index, access.issuer, race);
    pieces.readers[index] |= uint64_t(1) << reader;
    pieces.readOf(reader, index) = {clocks.epochOf(access.entry), 1, access.line};
  });
  return race;
}

std::optional<Race> SharedRaces::writeBlock(const Asynchronous &access, unsigned address) {
  std::optional<Race> race;
  const size_t block = address / kBlockBytes;
  forPieces(block, [&](Pieces &pieces, size_t index) {
    checkWrite(pieces, index, access.issuer, race);
    checkProxy(pieces, index, access.issuer, race);
  });
  isSplit[block] = false;
  blocks.readers[block] = 0;
  blocks.writes[block] = {{clocks.epochOf(access.entry), 1, access.line}, Clocks::kFirstQueue + access.queue, 0};
  return race;
}

/// From now on each granule of the block goes its own way.
void SharedRaces::split(size_t block) {
  constexpr size_t kGranules = kBlockBytes / kGranuleBytes;
  isSplit[block] = true;
  for (size_t g = kGranules * block; g < kGranules * (block + 1); ++g) {
    granules.writes[g] = blocks.writes[block];
    granules.readers[g] = blocks.readers[block];
    for (uint64_t open = blocks.readers[block]; open; open &= open - 1) {
      const unsigned reader = static_cast<unsigned>(std::countr_zero(open));
      granules.readOf(reader, g) = blocks.reads[reader][block];
      const auto epochs = mixed.find(mixedKey(blocks, block, reader));
      if (blocks.reads[reader][block].isMixed && epochs != mixed.end())
        mixed[mixedKey(granules, g, reader)] = LaneEpochs(epochs->second);
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
                                                      const Clocks &clocks, const Heard &heard, size_t granule) const {
  const uint64_t by = other.by.load();
  if (by == 0)
    return std::nullopt;
  const unsigned cta = static_cast<unsigned>(by >> 32) - 1, thread = static_cast<unsigned>(by);
  const auto agent = [](unsigned t) { return Agent{t / 32, uint32_t(1) << t % 32}; };
  if (cta == who.cta ? clocks.isAfter(agent(who.thread), agent(thread), other.epoch)
                     : heard.isAfter(agent(who.thread), clocks, cta, thread, other.epoch))
    return std::nullopt;
  return Meeting{kind, {cta, thread, other.line}, granule * SharedRaces::kGranuleBytes};
}

std::optional<GlobalRaces::Meeting> GlobalRaces::access(bool isWrite, const Place &who, const Clocks &clocks,
                                                        const Heard &heard, const void *address, unsigned bytes) {
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
        found = meet(RaceKind::kWriteAfterWrite, Touch(before, by), who, clocks, heard, g);
      for (const Touch *reader : {&granule.reader, &granule.readerElsewhere})
        if (!found)
          found = meet(RaceKind::kWriteAfterRead, *reader, who, clocks, heard, g);
      continue;
    }
    if (by != 0 && by >> 32 != self >> 32)
      granule.readerElsewhere.set(Touch(before, by));
    if (!found)
      found = meet(RaceKind::kReadAfterWrite, granule.writer, who, clocks, heard, g);
  }
  return found;
}

} // namespace fagen::emulator
