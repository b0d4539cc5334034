// fagen: what a kernel needs of an SM.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "resources.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace fagen::lab {

static std::optional<ResourceFigures> fromPtxas(const KernelSet &set, const fagen_row &row) {
  std::filesystem::path path = set.directory() / "resources.json";
  std::ifstream file(path);
  if (!file)
    return std::nullopt;
  try {
    for (const auto &entry : nlohmann::json::parse(file))
      if (entry.at("variant") == row.variant && entry.at("target") == row.target)
        return ResourceFigures{entry.at("registers"), entry.at("spill_bytes"), entry.at("shared_bytes"),
                               entry.value("ctas_per_sm", int64_t(-1)), "ptxas (resources.json)"};
  } catch (const nlohmann::json::exception &error) {
    throw UserError(fmt::format("{} is not what fagen --check-resources writes: {}", path.string(), error.what()));
  }
  return std::nullopt;
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
