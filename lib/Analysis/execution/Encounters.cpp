// fagen: remembers which events of a run meet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Encounters.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;

void Encounters::backTo(const Progress &progress) {
  found.resize(progress.size());
  for (const auto &[events, end] : llvm::zip(found, progress)) {
    if (events.size() > end)
      events.resize(end);
    for (auto &encounters : events)
      llvm::erase_if(encounters, [&](const Encounter &encounter) {
        return encounter.first.event >= progress[encounter.first.timeline];
      });
  }
}

void Encounters::add(const Place &first, const Place &second) {
  std::vector<llvm::SmallVector<Encounter, 4>> &events = found[second.timeline];
  if (events.size() <= second.event)
    events.resize(second.event + 1);
  if (const Encounter encounter{first, second.access}; !llvm::is_contained(events[second.event], encounter))
    events[second.event].push_back(encounter);
}

void Encounters::forEach(llvm::function_ref<void(const Place &first, const Place &second)> visit) const {
  for (uint8_t timeline = 0; timeline < found.size(); ++timeline)
    for (unsigned event = 0; event < found[timeline].size(); ++event)
      for (const Encounter &encounter : found[timeline][event])
        visit(encounter.first, {event, timeline, encounter.access});
}
