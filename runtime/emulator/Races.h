// fagen: which accesses to the same bytes nothing orders.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vector clocks (Lamport; Mattern), kept as FastTrack does (Flanagan and Freund, 2009): each access is an epoch of its
// warp, and each warp knows up to which epoch of every other warp it has been synchronised. Clocks of warps are enough,
// because whatever synchronises takes a warp's lanes together: it ends the warp's epoch. Between two such meetings
// nothing orders two lanes of a warp, and a lane's own accesses are in program order. Collectives (ldmatrix, mma,
// shuffles) order nothing. An asynchronous copy is a write by the thread that issued it, when it issued it and again
// when it waited for it; between the two its bytes are nobody's (Copies.cpp).
//
// Whether a race is found does not depend on the order in which the emulator runs the threads, only on what they do.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace fagen::emulator {

enum class RaceKind : uint8_t { kReadAfterWrite, kWriteAfterRead, kWriteAfterWrite };
const char *raceName(RaceKind kind); ///< RAW, WAR, WAW

/// Who accesses: one lane, or lanes of which it is unknown which one touches which byte.
struct Agent {
  unsigned warp;
  uint32_t lanes; ///< a bit each
};

/// What an access meets.
struct Race {
  RaceKind kind;
  Agent other;   ///< the earlier access
  int line;      ///< of the earlier access
  unsigned byte; ///< the first one both touch
};

/// The clocks of a CTA's warps.
class Clocks {
public:
  static constexpr unsigned kWarps = 32;
  /// A CTA of so many warps begins. What older CTAs did is forgotten: their epochs lie before all of this one's.
  void begin(unsigned warps);
  /// Those who come to a barrier leave there what they know.
  struct Joined {
    uint32_t epochs[kWarps] = {};
  };
  /// The warp comes: what it did so far is seen by whoever waits.
  void arrive(unsigned warp, Joined &joined);
  /// The warp, which came before, waited until all had.
  void learn(unsigned warp, const Joined &joined);
  /// The lanes of a warp wait for each other.
  void warpBarrier(unsigned warp) { known[warp * kWarps + warp] = epochs[warp]++; }

  uint32_t epoch(unsigned warp) const { return epochs[warp]; }
  uint32_t first() const { return firstEpoch; }
  /// Whether `agent` comes after what `other` did in its epoch `epoch`.
  bool isAfter(Agent agent, Agent other, uint32_t epoch) const {
    return known[agent.warp * kWarps + other.warp] >= epoch ||
           (agent.warp == other.warp && agent.lanes == other.lanes && (agent.lanes & (agent.lanes - 1)) == 0);
  }
  /// Up to which epoch of its own warp every lane comes after every other.
  uint32_t met(unsigned warp) const { return known[warp * kWarps + warp]; }

private:
  uint32_t firstEpoch = 1;
  uint32_t epochs[kWarps] = {};
  uint32_t known[kWarps * kWarps] = {}; ///< [w][v]: the last epoch of v that all of w comes after
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

private:
  static constexpr unsigned kBlockBytes = 16;
  struct Record {
    uint32_t epoch = 0;
    uint32_t lanes = 0;
    int line = 0;
  };
  struct Write : Record {
    unsigned warp = 0;
  };
  /// What is known about pieces of memory of one size.
  struct Pieces {
    unsigned bytes;
    std::vector<Write> writes = {};     ///< the last one
    std::vector<uint32_t> readers = {}; ///< a bit for each warp that read since
    /// By warp: the lanes that read since the warp last met, and when and where the last of them did.
    std::vector<std::vector<Record>> reads = {};

    void reserve(unsigned warps, size_t count);
  };

  bool isOrdered(Agent agent, Agent other, uint32_t epoch) const {
    return epoch < clocks.first() || clocks.isAfter(agent, other, epoch);
  }
  void readPiece(Pieces &pieces, size_t index, Agent agent, int line, std::optional<Race> &race);
  void checkWrite(const Pieces &pieces, size_t index, Agent agent, std::optional<Race> &race) const;
  void writePiece(Pieces &pieces, size_t index, Agent agent, int line) const;
  void split(size_t block);

  Pieces blocks{kBlockBytes}, granules{kGranuleBytes};
  std::vector<unsigned char> isSplit; ///< by block
};

/// The accesses of all CTAs of a launch to one buffer that the kernel may write. Within a launch nothing orders CTAs.
/// Between CTAs every race is found; within a CTA, those with the last thread that read and the last that wrote.
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
  /// What the access meets: another CTA's, or one of another thread of this CTA that `clocks` does not order.
  struct Meeting {
    RaceKind kind;
    Place other;
    size_t byte;
  };
  /// CTAs may call it side by side.
  std::optional<Meeting> access(bool isWrite, const Place &who, const Clocks &clocks, const void *address,
                                unsigned bytes);

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
                              size_t granule) const;

  static constexpr size_t kChunk = 4096; ///< granules that are made together, when the first of them is touched
  const unsigned char *begin;
  std::vector<std::atomic<Granule *>> chunks;
};

} // namespace fagen::emulator
