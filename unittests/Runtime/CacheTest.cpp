// fagen: the on-disk cache, and compiling by NVRTC into it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compile/cache.h"
#include "TestTable.h"
#include "compile/nvrtc.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>

using namespace fagen;
using namespace fagen::test;
namespace fs = std::filesystem;

namespace {

/// An empty directory for one test, also named by FAGEN_CACHE_DIR.
struct CacheTest : testing::Test {
  fs::path directory;
  std::string error;
  CacheTest() {
    std::string name = fs::temp_directory_path() / "fagen-cache-XXXXXX";
    directory = mkdtemp(name.data());
    setenv("FAGEN_CACHE_DIR", directory.c_str(), 1);
  }
  ~CacheTest() override {
    unsetenv("FAGEN_CACHE_DIR");
    fs::remove_all(directory);
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto &entry : fs::directory_iterator(directory))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
};

std::string contents(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string kKey = hashParts({"key"});

TEST(Hash, PartsAreKeptApart) {
  EXPECT_EQ(hashParts({"ab", "c"}).size(), 32u);
  EXPECT_NE(hashParts({"ab", "c"}), hashParts({"a", "bc"}));
  EXPECT_NE(hashParts({"ab"}), hashParts({"ab", ""}));
  EXPECT_EQ(hashParts({"ab"}), hashParts({"ab"}));
}

TEST_F(CacheTest, KeepsPayloadAndSource) {
  Cache cache(directory);
  std::string payload;
  EXPECT_FALSE(cache.read("k", kKey, payload));
  ASSERT_TRUE(cache.write("k", kKey, "source", std::string("pay\0load", 8), error)) << error;
  ASSERT_TRUE(cache.read("k", kKey, payload));
  EXPECT_EQ(payload, std::string("pay\0load", 8));
  EXPECT_EQ(contents(cache.stem("k", kKey) + ".cu"), "source");
  EXPECT_EQ(files(), (std::vector<std::string>{"k-" + kKey + ".bin", "k-" + kKey + ".cu"})); // nothing temporary
}

TEST_F(CacheTest, EveryDamagedByteIsDetected) {
  Cache cache(directory);
  ASSERT_TRUE(cache.write("k", kKey, "source", "payload", error)) << error;
  const std::string path = cache.stem("k", kKey) + ".bin", whole = contents(path);
  std::string payload;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_FALSE(cache.read("k", kKey, payload)) << "byte " << i;
  }
  for (size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    EXPECT_FALSE(cache.read("k", kKey, payload)) << length << " bytes";
  }
  std::ofstream(path, std::ios::binary) << whole << "x";
  EXPECT_FALSE(cache.read("k", kKey, payload));
  std::ofstream(path, std::ios::binary) << whole;
  EXPECT_TRUE(cache.read("k", kKey, payload));
}

TEST_F(CacheTest, EntryUnderAnotherNameIsRefused) {
  Cache cache(directory);
  ASSERT_TRUE(cache.write("k", kKey, "source", "payload", error)) << error;
  const std::string other = hashParts({"other"});
  fs::copy_file(cache.stem("k", kKey) + ".bin", cache.stem("k", other) + ".bin");
  std::string payload;
  EXPECT_FALSE(cache.read("k", other, payload));
}

TEST_F(CacheTest, ReadersSeeWholeEntriesWhileWritersReplaceThem) {
  Cache cache(directory);
  const std::string a(100000, 'a'), b(200000, 'b');
  ASSERT_TRUE(cache.write("k", kKey, "source", a, error)) << error;
  std::thread writer([&] {
    std::string error;
    for (int i = 0; i < 50; ++i)
      cache.write("k", kKey, "source", i % 2 ? a : b, error);
  });
  for (int i = 0; i < 500; ++i) {
    std::string payload;
    ASSERT_TRUE(cache.read("k", kKey, payload));
    ASSERT_TRUE(payload == a || payload == b);
  }
  writer.join();
}

TEST_F(CacheTest, UnusableDirectoryIsNoCache) {
  std::ofstream(directory / "file") << "x";
  Cache cache(directory / "file" / "below");
  std::string payload;
  EXPECT_FALSE(cache.write("k", kKey, "source", "payload", error));
  EXPECT_FALSE(cache.read("k", kKey, payload));
  EXPECT_FALSE(Cache("").write("k", kKey, "source", "payload", error));
}

/// Compiling needs NVRTC but no GPU.
struct CompileTest : CacheTest {
  const char *source = "#include <fagen/device/params.h>\n"
                       "extern \"C\" __global__ void k(const __grid_constant__ fagen::device::AttentionParams p) {\n"
                       "  if (p.lse) *p.lse = p.scale;\n"
                       "}\n";
  fagen_code code = {source, "sm_89/k.cu", nullptr, 0};
  fagen_row row = makeRow("k");
  fagen_choice choice = fagen_choice_init();
  TestTable table{"k"};

  void SetUp() override {
    if (nvrtcVersion().empty())
      GTEST_SKIP() << fagen_last_error();
  }
  /// Queries and prepares on a fresh description; the origin of the code, or the status's name.
  std::string prepare(uint32_t sm) {
    TestTable table("k");
    row.code = &code;
    table.add(row);
    const fagen_table *tables[] = {table.get()};
    TestDevice device(sm);
    fagen_problem problem = makeProblem();
    fagen_status status = fagen_query(tables, 1, &problem, device, &choice);
    status = status ? status : fagen_prepare(&choice, device);
    fagen_choice_info info = fagen_choice_info_init();
    return status || fagen_choice_get_info(&choice, &info) ? fagen_status_name(status) : info.origin;
  }
};

TEST_F(CompileTest, CompilesOnceWithTheEmbeddedHeadersOnly) {
  EXPECT_EQ(prepare(89), "nvrtc") << fagen_last_error();
  ASSERT_EQ(files().size(), 2u);
  EXPECT_EQ(contents(directory / files()[1]), source);
  EXPECT_EQ(contents(directory / files()[0])
                    .find("\x7f"
                          "ELF") == std::string::npos,
            false);
  EXPECT_EQ(prepare(89), "cache");
}

TEST_F(CompileTest, DamagedEntryIsRebuilt) {
  ASSERT_EQ(prepare(89), "nvrtc") << fagen_last_error();
  const fs::path entry = directory / files()[0];
  const std::string whole = contents(entry);
  fs::resize_file(entry, whole.size() / 2);
  EXPECT_EQ(prepare(89), "nvrtc");
  EXPECT_EQ(contents(entry), whole);
  EXPECT_EQ(prepare(89), "cache");
}

TEST_F(CompileTest, KeyCoversSourceAndArchitecture) {
  EXPECT_EQ(prepare(89), "nvrtc") << fagen_last_error();
  EXPECT_EQ(prepare(90), "nvrtc") << fagen_last_error();
  const std::string changed = std::string(source) + "// changed\n";
  code.source = changed.c_str();
  EXPECT_EQ(prepare(89), "nvrtc") << fagen_last_error();
  EXPECT_EQ(files().size(), 6u);
}

TEST_F(CompileTest, UnknownNewGpuGetsPtx) {
  EXPECT_EQ(prepare(999), "nvrtc") << fagen_last_error();
  EXPECT_NE(contents(directory / files()[0]).find(".target sm_"), std::string::npos);
}

TEST_F(CompileTest, ArchitectureSpecificTarget) {
  row.target = "sm_90a";
  row.sm = row.first_sm = row.last_sm = 90;
  row.exact = 1;
  EXPECT_EQ(prepare(90), "nvrtc") << fagen_last_error();
}

TEST_F(CompileTest, ErrorsCarryTheCompilersWords) {
  code.source = "extern \"C\" __global__ void k() { undeclared = 1; }\n";
  EXPECT_EQ(prepare(89), "COMPILE");
  EXPECT_NE(std::string(fagen_last_error()).find("identifier \"undeclared\" is undefined"), std::string::npos)
      << fagen_last_error();
  code.source = "#include <cuda_fp16.h>\n";
  EXPECT_EQ(prepare(89), "COMPILE"); // no toolkit header is found
  EXPECT_TRUE(files().empty());
}

TEST_F(CompileTest, PreparedDescriptionDoesNotRun) {
  TestTable table("k");
  row.code = &code;
  table.add(row);
  const fagen_table *tables[] = {table.get()};
  TestDevice device(89), other(89);
  fagen_problem problem = makeProblem();
  ASSERT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_OK);
  EXPECT_EQ(fagen_prepare(&choice, other), FAGEN_INVALID);
  ASSERT_EQ(fagen_prepare(&choice, device), FAGEN_OK) << fagen_last_error();
  fagen_tensors tensors = fagen_tensors_init();
  tensors.q = tensors.k = tensors.v = tensors.o = reinterpret_cast<void *>(0x1000);
  EXPECT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_CUDA);
}

TEST(PreparedRows, ManyRowsAreFound) {
  TestTable table("k");
  for (uint32_t i = 0; i < 300; ++i) {
    fagen_row row = makeRow("k");
    row.head_dim_qk = 8 * (i + 1);
    table.add(row);
  }
  static const fagen_binary cubin = {FAGEN_BINARY_CUBIN, 89, 0, 0, "x", 1};
  static const fagen_code linked = {nullptr, "k.cu", &cubin, 1};
  const fagen_table *base = table.get();
  std::vector<fagen_row> rows(base->rows, base->rows + base->row_count);
  for (fagen_row &row : rows)
    row.code = &linked;
  fagen_table own = *base;
  own.rows = rows.data();
  const fagen_table *tables[] = {&own};
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  problem.head_dim_v = 64;
  auto origin = [&](uint32_t i, bool prepare) {
    fagen_choice choice = fagen_choice_init();
    fagen_choice_info info = fagen_choice_info_init();
    problem.head_dim_qk = 8 * (i + 1);
    EXPECT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
    EXPECT_EQ(prepare ? fagen_prepare(&choice, device) : FAGEN_OK, FAGEN_OK);
    EXPECT_EQ(fagen_choice_get_info(&choice, &info), FAGEN_OK);
    return std::string(info.origin ? info.origin : "");
  };
  for (uint32_t i = 0; i < 300; i += 2)
    EXPECT_EQ(origin(i, true), "cubin");
  for (uint32_t i = 0; i < 300; ++i)
    EXPECT_EQ(origin(i, false), i % 2 ? "" : "cubin");
}

} // namespace
