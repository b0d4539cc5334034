// fagen: barriers and waits that are left out, weakened or moved while a kernel runs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "emulator/emulator.h"

#include <fagen/device/ptx/site.h>
#include <vector>

namespace fagen::emulator {

class Cta;

/// Told of every call of the engine that has a site, by its thread. Idle unless the launch has mutations.
class Mutator {
public:
  void begin(const std::vector<Mutation> &mutations, unsigned threads);
  bool isIdle() const { return mutations.empty(); }
  /// Before any call: does what was moved to just before it.
  void passBy(Cta &cta, device::ptx::Site site);
  /// At a wait or barrier: true when it is not to be done as it stands; what is to be done instead has been.
  bool replaces(Cta &cta, device::ptx::Site site);

private:
  struct State {
    bool isDue = false;  ///< left out at its line, to be done after the target's calls
    bool isDone = false; ///< done before the target's calls, to be left out at its line
  };
  static void perform(Cta &cta, const Mutation &mutation, device::ptx::Site site);

  std::vector<Mutation> mutations;
  std::vector<State> states;  ///< of each thread those of all mutations
  std::vector<int> lastLines; ///< of each thread: from where its last call came
};

} // namespace fagen::emulator
