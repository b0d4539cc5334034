// fagen: what CTAs of a launch tell each other by counting at a word of global memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Counts.h"

#include <algorithm>

namespace fagen::emulator {

void Counts::meet(const unsigned *word, const TellsWho &told, std::vector<TellsWho> &heard) {
  const std::lock_guard lock(mutex);
  std::vector<TellsWho> &here = said[word];
  heard.insert(heard.end(), here.begin(), here.end());
  if (told)
    here.push_back(told);
}

bool Heard::isAfter(Agent agent, const Clocks &clocks, unsigned cta, unsigned thread, uint32_t epoch) const {
  const auto ofCta = entries.find(cta);
  if (ofCta == entries.end())
    return false;
  return std::any_of(ofCta->second.begin(), ofCta->second.end(), [&](const Entry &entry) {
    const std::vector<uint32_t> &known = entry.told->known.fine;
    const Agent listener{entry.thread / 32, uint32_t(1) << entry.thread % 32};
    return thread < known.size() && known[thread] >= epoch && clocks.isAfter(agent, listener, entry.epoch);
  });
}

} // namespace fagen::emulator
