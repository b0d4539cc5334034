// fagen: bulk copies of boxes between tensors and shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A load lands when the launch's options say: at issue; at a drawn moment; or as late as it can, which is when no
// thread can run without it. Until then its target is pending. A store reads when it is issued, at a drawn moment, or
// when its thread waits for it.
#include "emulator/engine/Cta.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fagen::emulator {

namespace {

constexpr unsigned kChunk = 16; // bytes that stay together under every swizzle
constexpr unsigned kAlignment = 128;

/// Rows of a box, all of its dimensions but the first unrolled.
unsigned boxRows(const device::TensorMapDescription &map) {
  unsigned rows = 1;
  for (unsigned n = 1; n < map.rank; ++n)
    rows *= map.box[n];
  return rows;
}

unsigned rowBytes(const device::TensorMapDescription &map) { return map.box[0] * map.element_bytes; }
unsigned boxBytes(const device::TensorMapDescription &map) { return boxRows(map) * rowBytes(map); }

/// The pattern permutes bits of the final address.
unsigned swizzled(device::BoxSwizzle swizzle, unsigned address) {
  const unsigned bits = swizzle == device::BoxSwizzle::k128B  ? 7
                        : swizzle == device::BoxSwizzle::k64B ? 3
                        : swizzle == device::BoxSwizzle::k32B ? 1
                                                              : 0;
  return address ^ (address >> 7 & bits) << 4;
}

/// Where row `row` of the box lies in the tensor, from its first column on; null outside the other dimensions.
const char *tensorRow(const BulkCopy &copy, unsigned row) {
  const char *address = static_cast<const char *>(copy.map.base);
  for (unsigned n = 1; n < copy.map.rank; ++n) {
    const int64_t index = copy.at[n] + static_cast<int64_t>(row % copy.map.box[n]);
    row /= copy.map.box[n];
    if (index < 0 || index >= copy.map.sizes[n])
      return nullptr;
    address += static_cast<uint64_t>(index) * copy.map.strides[n];
  }
  return address;
}

/// Calls visit(shared address, address in the tensor or null, first byte inside, after the last) for each chunk.
template <class Visit> void forChunks(const BulkCopy &copy, Visit visit) {
  const unsigned perChunk = kChunk / copy.map.element_bytes;
  for (unsigned row = 0; row < boxRows(copy.map); ++row) {
    const char *tensor = tensorRow(copy, row);
    for (unsigned chunk = 0; chunk < rowBytes(copy.map) / kChunk; ++chunk) {
      const int64_t column = copy.at[0] + static_cast<int64_t>(chunk * perChunk);
      const int64_t begin = std::clamp<int64_t>(-column, 0, perChunk);
      const int64_t end = std::clamp<int64_t>(copy.map.sizes[0] - column, 0, perChunk);
      const unsigned address = swizzled(copy.map.swizzle, copy.address + row * rowBytes(copy.map) + chunk * kChunk);
      const bool isInside = tensor && begin < end;
      visit(address, isInside ? tensor + column * copy.map.element_bytes : nullptr,
            static_cast<unsigned>(begin) * copy.map.element_bytes, static_cast<unsigned>(end) * copy.map.element_bytes);
    }
  }
}

} // namespace

/// The map's description, checked; false when the copy cannot be.
bool Cta::describeCopy(const device::TensorMap *map, const int *at, int rank, unsigned address, Site site,
                       BulkCopy &copy) {
  std::memcpy(&copy.map, map, sizeof(copy.map));
  std::copy_n(at, rank, copy.at);
  copy.address = address;
  copy.thread = threadIndex();
  copy.site = site;
  const device::TensorMapDescription &d = copy.map;
  const auto refuse = [&](const char *kind, const std::string &why) {
    report(kind, site, [&] { return fmt::format("{} copies a box: {}", describeThread(), why); });
    return false;
  };
  if (d.mark != device::kMapMark)
    return refuse("tensor-map", "its map is none");
  if (d.rank != rank)
    return refuse("tensor-map", fmt::format("it gives {} coordinates to a map of {} dimensions", rank, d.rank));
  const unsigned span = static_cast<unsigned>(d.swizzle);
  if (rowBytes(d) % kChunk || (span && rowBytes(d) != span))
    return refuse("tensor-map",
                  fmt::format("rows of {} bytes are not whole chunks of 16, or do not fill the {} bytes of "
                              "the swizzle",
                              rowBytes(d), span));
  if (copy.at[0] * d.element_bytes % static_cast<int>(kChunk))
    return refuse("misaligned", fmt::format("its first coordinate is {}, no multiple of 16 bytes", copy.at[0]));
  if (address % kAlignment)
    return refuse("misaligned", fmt::format("shared address {} is not a multiple of {}", inCta(address), kAlignment));
  if (!isShared(address, boxBytes(d)))
    return refuse("out-of-bounds", fmt::format("{} bytes at shared address {}; the CTA has {} bytes", boxBytes(d),
                                               inCta(address), sharedBytes));
  return true;
}

/// A chunk of the tensor may be outside of the launch's buffers, or among what may not be written.
bool Cta::checkChunk(Access access, const char *tensor, unsigned begin, unsigned end, Site site) {
  if (!tensor)
    return true;
  if (begin == 0 && end == kChunk && reinterpret_cast<uintptr_t>(tensor) % kChunk == 0)
    return checkGlobal(access, tensor, kChunk, site);
  bool isUsable = true;
  for (unsigned byte = begin; byte < end; byte += 2)
    isUsable &= checkGlobal(access, tensor + byte, 2, site);
  return isUsable;
}

/// To each of the CTAs it is a copy of its own: what lands, and where it is counted, are the CTA's.
void Cta::issueLoads(unsigned target, const device::TensorMap *map, const int *at, int rank, unsigned barrier,
                     unsigned ctas, Site site) {
  if (ctas >> clusterSize()) {
    report("multicast", site, [&] {
      return fmt::format("{} copies to CTAs of mask {:#x}; its cluster has {}", describeThread(), ctas, clusterSize());
    });
    return;
  }
  const unsigned wanted = ctas ? ctas : 1u << this->rank();
  for (unsigned cta = 0; cta < clusterSize(); ++cta)
    if (wanted >> cta & 1)
      issueLoad(addressIn(cta, target), map, at, rank, addressIn(cta, barrier), site);
}

void Cta::issueLoad(unsigned target, const device::TensorMap *map, const int *at, int rank, unsigned barrier,
                    Site site) {
  count(site);
  requireAwaited(site);
  refineClocks();
  BulkCopy copy;
  MBarrier *counter = barrierAt(barrier, "tma_load", site);
  if (!describeCopy(map, at, rank, target, site, copy) || !counter)
    return;
  if (!counter->isFenced)
    report(
        "missing-fence", site,
        [&] {
          return fmt::format("{} lets a copy count at {}, and thread {} that made it at {} called no "
                             "mbarrier_init_fence since",
                             describeThread(), sharedName(barrier), threadInCta(counter->maker), place(counter->site));
        },
        counter->site.line, static_cast<int>(threadInCta(counter->maker)));
  copy.barrier = barrier;
  copy.phase = counter->phase;
  races.clocks.waits.tell(running->thread, counter->open.waits);
  forChunks(copy, [&](unsigned address, const char *tensor, unsigned begin, unsigned end) {
    checkChunk(Access::kRead, tensor, begin, end, site);
    checkShared(Access::kWrite, address, kChunk, site);
    checkAsynchronous(Access::kWrite, {self(), counter->queue, copy.phase, site.line}, address, site);
    std::memset(&state[address], kCopyPending, kChunk);
    if (grid->options.landing == Options::Latest)
      std::memset(shared + address, 0xff, kChunk);
  });
  if (loads.size() >= 64)
    std::erase_if(loads,
                  [&](const BulkCopy &old) { return old.landed && old.phase < barriers.at(old.barrier).waited; });
  loads.push_back(copy);
  if (grid->options.landing == Options::Earliest)
    landLoad(loads.back());
}

void Cta::landLoad(BulkCopy &copy) {
  copy.landed = true;
  forChunks(copy, [&](unsigned address, const char *tensor, unsigned begin, unsigned end) {
    std::memset(shared + address, 0, kChunk);
    if (tensor && grid->isReadable(tensor + begin, end - begin))
      std::memcpy(shared + address + begin, tensor + begin, end - begin);
    else if (tensor)
      std::memset(shared + address, 0xff, kChunk);
    std::memset(&state[address], kWritten, kChunk);
  });
  MBarrier &barrier = barriers.at(copy.barrier);
  barrier.bytes -= boxBytes(copy.map);
  advanceBarrier(copy.barrier, barrier, copy.thread, copy.site);
}

/// Lands one load, the oldest or a drawn one. False when there is none.
bool Cta::landNext() {
  std::vector<BulkCopy *> open;
  for (BulkCopy &copy : loads)
    if (!copy.landed)
      open.push_back(&copy);
  if (open.empty())
    return false;
  landLoad(*open[grid->options.seed ? random() % open.size() : 0]);
  return true;
}

/// Of the loads on their way each lands with a chance of one in four.
void Cta::landSomeBulk() {
  for (BulkCopy &copy : loads)
    if (!copy.landed && random() % 4 == 0)
      landLoad(copy);
}

void Cta::issueStore(const device::TensorMap *map, const int *at, int rank, unsigned source, Site site) {
  count(site);
  requireAwaited(site);
  refineClocks();
  BulkCopy copy;
  if (!describeCopy(map, at, rank, source, site, copy))
    return;
  if (*std::min_element(at, at + rank) < 0) {
    report("out-of-bounds", site, [&] {
      return fmt::format("{} stores a box that begins before the tensor; only its end may be outside",
                         describeThread());
    });
    return;
  }
  Lane &lane = *running;
  if (lane.storeQueue == 0)
    lane.storeQueue = std::min(kFirstStoreQueue + storeQueues++, SharedRaces::kReadQueues - 1);
  const auto entry = static_cast<uint32_t>(lane.storesDone + lane.stores.size());
  forChunks(copy, [&](unsigned address, const char *tensor, unsigned begin, unsigned end) {
    checkShared(Access::kRead, address, kChunk, site);
    checkAsynchronous(Access::kRead, {self(), lane.storeQueue, entry, site.line}, address, site);
    checkChunk(Access::kWrite, tensor, begin, end, site);
  });
  lane.stores.push_back(copy);
  if (grid->options.landing == Options::Earliest)
    landStore(lane.stores.back());
}

void Cta::landStore(BulkCopy &copy) {
  copy.landed = true;
  forChunks(copy, [&](unsigned address, const char *tensor, unsigned begin, unsigned end) {
    if (tensor && grid->isWritable(tensor + begin, end - begin))
      std::memcpy(const_cast<char *>(tensor) + begin, shared + address + begin, end - begin);
  });
}

void Cta::commitStores(Site site) {
  count(site);
  Lane &lane = *running;
  lane.storeGroupEnds.push_back(lane.storesDone + lane.stores.size());
}

/// Until the wait a store may read; what it wrote is not followed further.
void Cta::waitForStores(unsigned pending, Site site) {
  count(site);
  Lane &lane = *running;
  if (lane.storeGroupEnds.size() <= pending)
    return;
  const uint64_t end = lane.storeGroupEnds[lane.storeGroupEnds.size() - pending - 1];
  lane.storeGroupEnds.erase(lane.storeGroupEnds.begin(), lane.storeGroupEnds.end() - static_cast<ptrdiff_t>(pending));
  for (; lane.storesDone < end; ++lane.storesDone) {
    if (!lane.stores.front().landed)
      landStore(lane.stores.front());
    lane.stores.pop_front();
  }
  if (end > 0 && lane.storeQueue)
    races.clocks.learnQueue(lane.thread, lane.storeQueue, static_cast<uint32_t>(end - 1));
}

void Cta::fenceProxy(Site site) {
  count(site);
  refineClocks();
  races.fenceProxy(running->thread);
}

void Cta::checkAsynchronous(Access access, const SharedRaces::Asynchronous &by, unsigned address, Site site) {
  if (!grid->options.races)
    return;
  const std::optional<Race> race =
      access == Access::kRead ? races.readBlock(by, address) : races.writeBlock(by, address);
  if (race) [[unlikely]]
    reportRace(access, *race, by.issuer, "what it started ", site);
}

/// The load that is bringing this byte; null when none is.
const BulkCopy *Cta::findPendingBox(unsigned address) const {
  for (const BulkCopy &copy : loads)
    if (!copy.landed && address - copy.address < boxBytes(copy.map))
      return &copy;
  return nullptr;
}

/// Loads that nobody waited for, and stores whose threads did not.
void Cta::reportUnwaitedBoxes() {
  for (const BulkCopy &copy : loads)
    if (barriers.at(copy.barrier).waited <= copy.phase)
      found.add("copy-never-waited", copy.site,
                [&] {
                  return fmt::format("nobody in CTA {} waited for phase {} of {}, which counts this copy",
                                     ctaIndex + (clusterSize() > 1 ? copy.barrier / window : 0), copy.phase,
                                     sharedName(copy.barrier));
                },
                {.thread = static_cast<int>(copy.thread)});
  for (unsigned t = 0; t < threads(); ++t)
    for (const BulkCopy &copy : lanes[t].stores)
      found.add("copy-never-waited", copy.site,
                [&] {
                  return fmt::format(
                      "thread {} of CTA {} returned without waiting for its store from shared address {}",
                      threadInCta(t), ctaOfWarp(t / kWarpLanes), inCta(copy.address));
                },
                {.thread = static_cast<int>(threadInCta(t))});
}

} // namespace fagen::emulator
