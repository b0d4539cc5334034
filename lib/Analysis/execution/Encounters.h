// fagen: which events of a run meet.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "ExecutionPlan.h"

namespace fagen {

/// How far each timeline of a run is gone through, in events.
using Progress = llvm::SmallVector<unsigned, 4>;

/// By events, not by ops: the same in all runs that do the same.
class Encounters {
public:
  /// An access of an event: by its place among the op's.
  struct Place {
    unsigned event = 0;
    uint8_t timeline = 0, access = 0;
    bool operator==(const Place &) const = default;
  };

  /// Forgets what does not lie before.
  void backTo(const Progress &progress);
  void add(const Place &first, const Place &second);
  void forEach(llvm::function_ref<void(const Place &first, const Place &second)> visit) const;

private:
  struct Encounter {
    Place first;
    uint8_t access; ///< of the second one
    bool operator==(const Encounter &) const = default;
  };
  std::vector<std::vector<llvm::SmallVector<Encounter, 4>>> found; ///< by timeline and event of the second
};

} // namespace fagen
