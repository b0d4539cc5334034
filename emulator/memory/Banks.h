// fagen: how often the 32 banks of shared memory make a warp wait: requests and their wavefronts, for each access site.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lanes run one after another, so a warp's request is put together again from what each lane does: the n-th access of
// every lane at one call in the machine code, counted from the last place where the whole warp met. Lanes that do not
// come there before the warp meets again were predicated off, and the request has the fewer lanes. The call's return
// address keeps accesses of one line apart that only some lanes make. docs/Conflicts.md has the rules.
#pragma once

#include "emulator/emulator.h"

#include <array>
#include <deque>
#include <map>

namespace fagen::emulator {

enum class BankAccess : uint8_t { kLoad, kStore, kLdmatrix, kCopyAsync, kWmmaLoad, kWmmaStore };
const char *bankAccessName(BankAccess access);

inline constexpr unsigned kBanks = 32;
inline constexpr unsigned kBankBytes = 4;
/// In place of a lane's address: the lane takes no part.
inline constexpr unsigned kNoAddress = ~0u;

/// What the lanes of a warp ask for with one instruction: `bytes` bytes each, at their addresses.
struct BankRequest {
  BankAccess access;
  unsigned bytes;
  std::array<unsigned, 32> addresses;
};

/// The lanes that are served together: a mask for each phase, none empty.
std::vector<unsigned> bankPhases(const BankRequest &request);
/// What ptxas makes of wmma on a 16 x 16 matrix whose lines, rows or columns, are `stride` bytes apart (seen in the
/// machine code for sm_89 and sm_90; PTX promises nothing): a load of 16-bit elements is one ldmatrix, a store is four
/// plain stores of two neighbouring elements a lane, in the layout of mma's result.
std::vector<BankRequest> wmmaRequests(BankAccess access, unsigned address, unsigned stride, unsigned elementBytes);
/// Wavefronts of one phase: the most different words that any bank must give. `words[b]` counts those of bank b.
unsigned phaseWavefronts(const BankRequest &request, unsigned lanes, std::array<unsigned, kBanks> &words);
/// Wavefronts of the whole request, and those it would have if no phase met a bank twice and lanes that take no more
/// than a wavefront together shared one.
unsigned bankWavefronts(const BankRequest &request);
unsigned idealWavefronts(const BankRequest &request);

/// The sites of one CTA or, merged, of a launch.
class BankSites {
public:
  void add(int line, const BankRequest &request);
  void merge(const BankSites &other);
  void clear() { sites.clear(); }
  bool empty() const { return sites.empty(); }
  /// In order of lines.
  std::vector<BankSite> list() const;

private:
  struct Key {
    int line;
    BankAccess access;
    unsigned bytes;
    auto operator<=>(const Key &) const = default;
  };
  struct Counts {
    uint64_t requests = 0, wavefronts = 0, ideal = 0;
    unsigned worstExcess = 0;
    BankRequest worst{};
  };
  void add(const Key &key, const Counts &counts);

  std::map<Key, Counts> sites;
};

/// Puts a CTA's requests together while it runs.
class BankCounter {
public:
  /// For a CTA of so many threads; forgets what was counted.
  void begin(unsigned threads);
  /// A thread's access: the line of its call, and the return address of the call in the machine code.
  void add(unsigned thread, BankAccess access, unsigned address, unsigned bytes, int line, const void *caller);
  /// A 16 x 16 matrix that a warp takes to or from fragments by wmma; `stride` is in bytes.
  void addMatrix(BankAccess access, unsigned address, unsigned stride, unsigned elementBytes, int line);
  /// All lanes of the warp that still run are at one place: open requests are whole.
  void meet(unsigned warp);
  /// The CTA ended.
  const BankSites &finish();

private:
  struct Call {
    const void *caller;
    int line;
    BankAccess access;
    unsigned bytes;
    auto operator<=>(const Call &) const = default;
  };
  /// Requests of one call that some lanes have made and others may yet make.
  struct Open {
    std::array<uint64_t, 32> made{}; ///< by each lane
    uint64_t first = 0;              ///< number of the oldest open request
    std::deque<BankRequest> requests;
    std::deque<unsigned> missing; ///< lanes that have yet to come, for each of them
  };
  struct WarpCalls {
    unsigned lanes = 0;
    std::map<Call, Open> open;
  };
  void flush(int line, Open &open, size_t count);

  std::vector<WarpCalls> warps;
  BankSites sites;
};

} // namespace fagen::emulator
