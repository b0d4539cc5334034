// fagen: the IR verifier: registers that roles ask for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "VerifierState.h"

#include "fagen/IR/Measures.h"
#include "fagen/IR/Queries.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::Twine;

// PTX ISA, setmaxnreg; 240 is what a thread can use in addition to what the hardware keeps.
static constexpr unsigned kUnit = 8, kLeast = 24, kMost = 240, kOfSm = 65536;

static void verifyRegistersOf(const Role &role, VerifierState &state) {
  auto defect = [&](const Twine &message) { state.defect(state.kernel.location, "role " + role.name + message); };
  if (role.registers % kUnit != 0 || role.registers < kLeast || role.registers > kMost)
    defect(" asks for " + Twine(role.registers) + " registers; a thread may ask for a multiple of " + Twine(kUnit) +
           " from " + Twine(kLeast) + " to " + Twine(kMost));
  if (role.firstWarp % kGroupWarps != 0 || role.warps % kGroupWarps != 0)
    defect(" asks for registers, but is not groups of four warps, which get them together");
}

void ir::verifyRegisters(VerifierState &state) {
  const Kernel &kernel = state.kernel;
  const int64_t ofLaunch = registersOfLaunch(kernel);
  int64_t all = ofLaunch * kernel.threads;
  for (const Role &role : kernel.roles)
    if (role.registers != 0) {
      all += (role.registers - ofLaunch) * kLanes * role.warps;
      verifyRegistersOf(role, state);
    }
  if (all > kOfSm)
    state.defect(kernel.location, "the threads of all roles have " + Twine(all) + " registers; an SM has " +
                                      Twine(kOfSm) + ", and who waits for more would wait for ever");
}

unsigned ir::registersOfLaunch(const Kernel &kernel) {
  return kernel.threads == 0 ? 0 : std::min(kOfSm / kernel.threads / kUnit * kUnit, 255U);
}
