// fagen: a kernel set on disk for tests: a manifest with chosen rows and empty sources.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/kernel_set/manifest.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fagen::lab {

class FakeSet {
public:
  /// Two rows for f16, d 16, causal: `fake_f16_d16_causal`, which needs 16-byte alignment, and its fallback.
  FakeSet() {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    directory = std::filesystem::path(testing::TempDir()) / ("fagen-lab-" + name);
    std::filesystem::create_directories(directory / "sm_89");
    manifest = {{"abi", FAGEN_ABI},
                {"kernel", "fake"},
                {"spec", "fake.fa"},
                {"schedules", {"main", "unaligned"}},
                {"select", {{{"text", "otherwise"}, {"schedule", 0}, {"condition", nlohmann::json::array()}}}},
                {"rows", {row("fake_f16_d16_causal", 0), row("fake_unaligned_f16_d16_causal", 1)}}};
  }
  ~FakeSet() { std::filesystem::remove_all(directory); }

  std::unique_ptr<KernelSet> load() {
    std::ofstream(directory / "manifest.json") << manifest;
    return KernelSet::load(directory);
  }

  std::filesystem::path directory;
  nlohmann::json manifest;

private:
  nlohmann::json row(const std::string &variant, int fallback) {
    std::string source = "sm_89/" + variant + ".cu";
    std::ofstream(directory / source) << "// " << variant << "\n";
    return {
        {"variant", variant},
        {"target", "sm_89"},
        {"sm", 89},
        {"first_sm", 80},
        {"last_sm", 0},
        {"exact", false},
        {"pass", "forward"},
        {"dtype", "f16"},
        {"mask", "causal"},
        {"lse", true},
        {"head_dim_qk", 16},
        {"head_dim_v", 16},
        {"schedule", fallback},
        {"dispatch", fallback ? "fallback" : "dispatched"},
        {"order", fallback},
        {"alignment", fallback ? 2 : 16},
        {"tile_rows", 16},
        {"tile_keys", 32},
        {"launches",
         {{{"symbol", "fagen_" + variant + "_sm_89"}, {"grid", "tiles"}, {"threads", 128}, {"shared_bytes", 4096}}}},
        {"workspace", nlohmann::json::array()},
        {"source", source},
        {"plan", {{"schedule", {{"mma", "scalar"}, {"copy", "ld_st"}, {"warps", 4}, {"stages", 1}}}}}};
  }
};

} // namespace fagen::lab
