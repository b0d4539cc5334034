// fagen: counters that kernels keep in their workspace, and leave as they found them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "counters.h"

#include <cstring>
#include <fmt/format.h>
#include <string_view>

namespace fagen::lab {

bool isCounter(const fagen_row &row) {
  return row.workspace_count == 1 && std::string_view(row.workspace[0].name).ends_with("counter");
}

std::vector<Failure> checkCounter(const fagen_row &row, const std::vector<char> &workspace) {
  uint32_t value = 0;
  if (!isCounter(row) || workspace.size() < sizeof(value))
    return {};
  std::memcpy(&value, workspace.data(), sizeof(value));
  if (value == 0)
    return {};
  return {{"workspace", fmt::format("{} leaves {} at {}, where the next launch takes it for 0", row.variant,
                                    row.workspace[0].name, value)}};
}

} // namespace fagen::lab
