// fagen: what a kernel needs of an SM.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "resources.h"
#include "lab/support/json_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace fagen::lab {

static std::optional<ResourceFigures> fromPtxas(const KernelSet &set, const fagen_row &row) {
  std::filesystem::path path = set.directory() / "resources.json";
  if (std::error_code error; !std::filesystem::exists(path, error))
    return std::nullopt;
  return readJsonFile(
      path.string(), "what fagen --check-resources writes", [&](const Json &entries) -> std::optional<ResourceFigures> {
        for (const Json &entry : entries)
          if (entry.at("variant") == row.variant && entry.at("target") == row.target)
            return ResourceFigures{entry.at("registers"), entry.at("spill_bytes"), entry.at("shared_bytes"),
                                   entry.value("ctas_per_sm", int64_t(-1)), "ptxas (resources.json)"};
        return std::nullopt;
      });
}

static int64_t sharedOf(const fagen_row &row) {
  int64_t most = 0;
  for (uint32_t i = 0; i < row.launch_count; ++i)
    most = std::max<int64_t>(most, row.launches[i].shared_bytes);
  return most;
}

ResourceFigures resourcesOf(const KernelSet &set, const fagen_row &row, const Built &built, uint32_t sm) {
  if (built.registers >= 0 && sm == row.sm)
    return {built.registers, built.localBytes, sharedOf(row), -1, fmt::format("the driver, for sm_{}", sm)};
  if (auto figures = fromPtxas(set, row))
    return *figures;
  return {-1, -1, sharedOf(row), -1, "the manifest"};
}

} // namespace fagen::lab
