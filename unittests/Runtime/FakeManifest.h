// fagen: a kernel set on disk, as text that a test changes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/table.h>

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace fagen::test {

/// Rows `fake` and its fallback `plain`, for forward f16, head dim 64, no mask.
class FakeManifest {
public:
  FakeManifest() {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    directory = std::filesystem::path(testing::TempDir()) / ("fagen-runtime-" + name);
    std::filesystem::create_directories(directory / "sm_89");
    for (const char *variant : {"fake", "plain"})
      std::ofstream(directory / "sm_89" / (std::string(variant) + ".cu")) << "// " << variant << "\n";
    text = "{\n\"abi\": 1,\n\"kernel\": \"k\",\n\"spec\": \"k.fa\",\n\"schedules\": [\"main\", \"other\"],\n"
           "\"select\": [\n{\"text\": \"seq_q <= 32\", \"schedule\": 1, \"condition\": [\"seq_q\", 32, \"le\"]},\n"
           "{\"text\": \"otherwise\", \"schedule\": 0, \"condition\": []}],\n\"rows\": [\n" +
           row("fake", "dispatched", 0, 16) + ",\n" + row("plain", "fallback", 1, 2) + "]}\n";
  }
  ~FakeManifest() {
    fagen_table_release(table);
    std::filesystem::remove_all(directory);
  }

  /// Puts `to` in the place of the first `from`, which must be there.
  FakeManifest &change(const std::string &from, const std::string &to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return *this;
  }

  fagen_status load() {
    std::ofstream(directory / "manifest.json", std::ios::binary) << text;
    fagen_table_release(table);
    return fagen_table_load(directory.c_str(), &table);
  }

  /// What fagen_last_error says, without the directory; empty where the set is loaded.
  std::string error() {
    if (load() == FAGEN_OK)
      return "";
    const std::string error = fagen_last_error(), prefix = directory.string() + "/";
    return error.rfind(prefix, 0) == 0 ? error.substr(prefix.size()) : error;
  }

  std::filesystem::path directory;
  std::string text;
  const fagen_table *table = nullptr;

private:
  static std::string row(const std::string &variant, const std::string &dispatch, int order, int alignment) {
    return "{\"variant\": \"" + variant + "\", \"target\": \"sm_89\", \"sm\": 89, \"first_sm\": 80, \"last_sm\": 0,\n" +
           "\"exact\": false, \"pass\": \"forward\", \"dtype\": \"f16\", \"mask\": \"none\", \"lse\": true,\n" +
           "\"head_dim_qk\": 64, \"head_dim_v\": 64, \"schedule\": 0, \"dispatch\": \"" + dispatch +
           "\", \"order\": " + std::to_string(order) + ",\n\"alignment\": " + std::to_string(alignment) +
           ", \"tile_rows\": 64, \"tile_keys\": 32, \"source\": \"sm_89/" + variant + ".cu\",\n" +
           "\"launches\": [{\"symbol\": \"k_" + variant +
           "\", \"grid\": \"splits\", \"splits\": 2, \"threads\": 128, \"shared_bytes\": 4096}],\n" +
           "\"workspace\": [{\"name\": \"splits\", \"bytes\": [\"splits\", \"seq_q\", \"mul\"], \"alignment\": 16}]}";
  }
};

} // namespace fagen::test
