// fagen: which accesses to the same bytes nothing orders.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clocks.h says who has been told of whom; accesses are kept as FastTrack does (Flanagan and Freund, 2009): each is an
// epoch of its warp. Collectives (ldmatrix, mma, shuffles) order nothing. A cp.async is a write by the thread that
// issued it, when it issued it and again when it waited for it; between the two its bytes are nobody's (Copies.cpp).
//
// Bulk copies and products of warp groups are agents of their own, which read and write as entries of queues: a copy to
// shared memory in the queue of the barrier that counts it, a copy from it in that of its thread, a product in that of
// its warp group. They begin after what their issuer has been told of, and are over for those who waited for their
// entry. They see memory through another proxy than threads do: what a thread wrote they see only after a proxy fence
// of that thread.
//
// Whether a race is found does not depend on the order in which the emulator runs the threads, only on what they do. Of
// waits for phases that holds because a thread learns what its own phase tells, and a phase that it could miss is found
// by itself (MBarriers.cpp).
#pragma once

#include "Clocks.h"
#include "Counts.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace fagen::emulator {

/// kUnfenced: ordered, but written by a thread without a proxy fence before an asynchronous engine's access.
enum class RaceKind : uint8_t { kReadAfterWrite, kWriteAfterRead, kWriteAfterWrite, kUnfenced };
const char *raceName(RaceKind kind); ///< RAW, WAR, WAW

/// What an access meets.
struct Race {
  RaceKind kind;
  Agent other;   ///< the earlier access
  int line;      ///< of the earlier access
  unsigned byte; ///< the first one both touch
};

/// The accesses to a CTA's shared memory. They are known for blocks of 16 bytes, which is what copies and ldmatrix
/// access, and, once a smaller access has split a block, for each of its granules.
class SharedRaces {
public:
  /// The smallest access there is; no two threads share part of one.
  static constexpr unsigned kGranuleBytes = 2;

  void begin(unsigned warps, size_t sharedBytes);
  Clocks clocks;

  /// An aligned access of at most 16 bytes from generated line `line`; gives the first race.
  std::optional<Race> read(Agent agent, unsigned address, unsigned bytes, int line);
  std::optional<Race> write(Agent agent, unsigned address, unsigned bytes, int line);

  /// An access to a block by an entry of a queue, which `issuer` started.
  struct Asynchronous {
    Agent issuer;
    unsigned queue;
    uint32_t entry;
    int line;
  };
  static constexpr unsigned kReadQueues = 32; ///< these may read; the others only write
  static constexpr unsigned kBlockBytes = 16;
  /// `address` is a multiple of kBlockBytes.
  std::optional<Race> readBlock(const Asynchronous &access, unsigned address);
  std::optional<Race> writeBlock(const Asynchronous &access, unsigned address);

  /// The thread's writes so far are seen by asynchronous engines.
  void fenceProxy(unsigned thread);

private:
  struct Record {
    uint32_t epoch = 0;
    uint32_t lanes = 0;
    int line = 0;
    bool isMixed = false; ///< of a read: the lanes' epochs differ, and stand in `mixed`
  };
  struct Write : Record {
    unsigned warp = 0;
    uint32_t fences = 0; ///< of the warp's lanes, before it
  };
  using LaneEpochs = std::array<uint32_t, 32>;
  /// What is known about pieces of memory of one size.
  struct Pieces {
    unsigned bytes;
    std::vector<Write> writes = {};     ///< the last one
    std::vector<uint64_t> readers = {}; ///< a bit for each warp, then each queue, that read since
    /// By warp: the lanes that read since the warp last met, and when and where the last of them did. Then by queue.
    std::vector<std::vector<Record>> reads = {};

    void reserve(unsigned warps, size_t count);
    Record &readOf(unsigned agent, size_t index);
  };

  bool isOrdered(Agent agent, Agent other, uint32_t epoch) const {
    return epoch < clocks.first() || clocks.isAfter(agent, other, epoch);
  }
  void readPiece(Pieces &pieces, size_t index, Agent agent, int line, std::optional<Race> &race);
  void checkWrite(const Pieces &pieces, size_t index, Agent agent, std::optional<Race> &race) const;
  void writePiece(Pieces &pieces, size_t index, Agent agent, int line) const;
  void split(size_t block);
  void addRead(const Pieces &pieces, size_t index, Agent agent, Record &own);
  bool isReadOrdered(const Pieces &pieces, size_t index, Agent agent, unsigned reader, const Record &read) const;
  uint64_t mixedKey(const Pieces &pieces, size_t index, unsigned warp) const;
  bool isFenced(Agent agent, const Write &write) const;
  void checkProxy(const Pieces &pieces, size_t index, Agent agent, std::optional<Race> &race) const;
  template <class Visit> void forPieces(size_t block, Visit visit);

  Pieces blocks{kBlockBytes}, granules{kGranuleBytes};
  std::vector<unsigned char> isSplit; ///< by block
  std::unordered_map<uint64_t, LaneEpochs> mixed;
  /// Proxy fences of a thread: how many its warp's lanes had made with it, and in which epoch.
  struct Fence {
    uint32_t number, epoch;
  };
  std::vector<std::vector<Fence>> fences; ///< by thread, in order
  uint32_t fenceCounts[Clocks::kWarps] = {};
};

/// The accesses of all CTAs of a launch to one buffer that the kernel may write. Within a launch nothing orders CTAs
/// but what they tell each other by counting (Counts.h). Between CTAs every race is found, there those with the last
/// that wrote and the last two that read; within a CTA, those with the last thread that read and the last that wrote.
class GlobalRaces {
public:
  GlobalRaces(const void *begin, size_t bytes);
  ~GlobalRaces();
  GlobalRaces(const GlobalRaces &) = delete;
  GlobalRaces &operator=(const GlobalRaces &) = delete;

  struct Place {
    unsigned cta;
    unsigned thread;
    int line;
  };
  /// What the access meets: another CTA's that nobody was told of, or one of another thread of this CTA that `clocks`
  /// does not order.
  struct Meeting {
    RaceKind kind;
    Place other;
    size_t byte;
  };
  /// CTAs may call it side by side.
  std::optional<Meeting> access(bool isWrite, const Place &who, const Clocks &clocks, const Heard &heard,
                                const void *address, unsigned bytes);

private:
  /// Who touched a granule, and when; 0: nobody, else CTA + 1 in the upper half and the thread in the lower.
  struct Touch {
    std::atomic<uint64_t> by{0};
    std::atomic<uint32_t> epoch{0};
    std::atomic<int> line{0};

    Touch() = default;
    Touch(const Touch &other, uint64_t by) : by(by), epoch(other.epoch.load()), line(other.line.load()) {}
    explicit Touch(const Touch &other) : Touch(other, other.by.load()) {}
    void set(const Touch &other) {
      by = other.by.load();
      epoch = other.epoch.load();
      line = other.line.load();
    }
  };
  struct Granule {
    Touch writer, reader;  ///< the last ones
    Touch readerElsewhere; ///< the last one of another CTA than `reader`'s
  };
  Granule &granuleAt(size_t index);
  std::optional<Meeting> meet(RaceKind kind, const Touch &other, const Place &who, const Clocks &clocks,
                              const Heard &heard, size_t granule) const;

  static constexpr size_t kChunk = 4096; ///< granules that are made together, when the first of them is touched
  const unsigned char *begin;
  std::vector<std::atomic<Granule *>> chunks;
};

} // namespace fagen::emulator
