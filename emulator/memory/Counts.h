// fagen: what CTAs of a launch tell each other by counting at a word of global memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As the memory model of PTX has it for relaxed atomics of gpu scope between fences: who comes to a word sees the
// atomics before its own. What a thread knew at its last fence before an atomic is known to a thread that comes later
// to the same word, from its next fence on. Told is handed on to nobody else.
#pragma once

#include "Clocks.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace fagen::emulator {

/// What a thread of a CTA knew at a fence.
struct Told {
  unsigned cta;
  Clocks::Joined known;
};
using TellsWho = std::shared_ptr<const Told>;

/// The words of a launch where CTAs count.
class Counts {
public:
  /// Appends to `heard` what those said who came to the word before, and leaves `told`, which may be null.
  void meet(const unsigned *word, const TellsWho &told, std::vector<TellsWho> &heard);

private:
  std::mutex mutex;
  std::unordered_map<const unsigned *, std::vector<TellsWho>> said;
};

/// What the threads of one CTA heard of others.
class Heard {
public:
  void clear() { entries.clear(); }
  /// From its epoch `epoch` on `thread` knows.
  void add(const TellsWho &told, unsigned thread, uint32_t epoch) {
    entries[told->cta].push_back({told, thread, epoch});
  }
  /// Whether `agent` comes after what `thread` of `cta` did in its epoch `epoch`.
  bool isAfter(Agent agent, const Clocks &clocks, unsigned cta, unsigned thread, uint32_t epoch) const;

private:
  struct Entry {
    TellsWho told;
    unsigned thread;
    uint32_t epoch;
  };
  std::unordered_map<unsigned, std::vector<Entry>> entries; ///< by CTA
};

} // namespace fagen::emulator
