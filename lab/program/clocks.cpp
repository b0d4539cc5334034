// fagen: where the warps of a program were: what they left in its memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.h"

#include <algorithm>

namespace fagen::lab {

namespace {

/// Of a role whose first thread works for it the other warps leave nothing.
void readRole(const unsigned char *records, int64_t ctas, int64_t warps, const ProgramRole &role,
              std::vector<WarpTimes> &found, std::vector<Failure> &failures) {
  for (int64_t cta = 0; cta < ctas; ++cta)
    for (int warp = role.firstWarp; warp < role.firstWarp + role.warps; ++warp) {
      const auto times = readRecord(records + (cta * warps + warp) * sizeof(device::WarpRecord), cta, warp, failures);
      if (times)
        found.push_back(*times);
      if (!times || times->loads)
        break;
    }
}

} // namespace

std::vector<RoleClocks> readClocks(const ProgramPlan &plan, const Sizes &sizes, const ProgramMemory &memory,
                                   std::vector<Failure> &failures) {
  std::vector<RoleClocks> all;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const auto launch = std::find_if(plan.launches.begin(), plan.launches.end(), [&](const ProgramLaunch &each) {
      return each.symbol == plan.buffers[i].clocksOf;
    });
    if (launch == plan.launches.end())
      continue;
    for (const ProgramRole &role : launch->roles) {
      RoleClocks clocks{launch->symbol, role.name, {}};
      readRole(memory[i].data(), ctasOf(*launch, sizes), launch->threads / 32, role, clocks.breakdown.warps, failures);
      all.push_back(std::move(clocks));
    }
  }
  return all;
}

} // namespace fagen::lab
