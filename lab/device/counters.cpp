// fagen: counters that kernels keep in their workspace, and leave as they found them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "counters.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <string_view>

namespace fagen::lab {

std::vector<char> makeWorkspace(const fagen_choice &choice) {
  std::vector<char> workspace(choice.workspace_bytes, char(0xFF)); // as f32 and f16: no number
  std::fill_n(workspace.begin(), fagen_choice_zero_bytes(&choice), char(0));
  return workspace;
}

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
